// From settings, as a front end collects them by name, to options of training: what was named, what follows from it,
// and what does not go together.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "learn/prepare.h"

namespace linblock {

inline constexpr std::string_view kOneVsRest = "one-vs-rest";

// What may be used. The number of threads changes no result.
struct Resources {
  uint64_t memory_bytes = 0;
  size_t threads = 1;

  static constexpr auto options() {
    return std::tuple{
        option_as<SizeText>("memory", &Resources::memory_bytes, "SIZE",
                            "Memory limit, such as 64M or 1G (default: half of what the machine or its "
                            "cgroup allows)"),
        option("threads", &Resources::threads, "N",
               "Threads (default: all processors that the machine or its cgroup allows); the result is the "
               "same for any number",
               {.from = 1, .to = 1024}, "auto", false)};
  }
  // Half of the memory, and all processors, of this machine or cgroup.
  static Resources usual();
};

// Where a run keeps what it needs to resume, and how often it saves that.
struct CheckpointOptions {
  std::string folder = {};  // empty: beside the model or the store
  double seconds = 10;

  static constexpr auto options() {
    return std::tuple{
        option("checkpoint", &CheckpointOptions::folder, "DIR",
               "Where to save what a resumed run needs (default: beside the model or the store)", {}, "auto", false),
        option("checkpoint_seconds", &CheckpointOptions::seconds, "X", "Seconds between two checkpoints", {.from = 0},
               "auto", false)};
  }
};

struct StateOptions {
  bool keep_state = false;

  static constexpr auto options() {
    return std::tuple{option("keep_state", &StateOptions::keep_state, "",
                             "Save MODEL.state, from which a warm start can begin ({state})")};
  }
};

struct LearnRequest {
  TrainOptions options = {};
  CheckpointOptions checkpoint = {};
  Resources resources = Resources::usual();
  std::string loss = {};    // empty: the usual one, or the one that has an option that was given
  std::string solver = {};  // empty: chosen from the data, or by an option that was given
  std::string multiclass = std::string(kOneVsRest);
  StateOptions state = {};
  std::set<std::string, std::less<>> given = {};                          // every setting that was set
  std::map<std::string, std::string, std::less<>> options_of_units = {};  // of methods and losses, as texts

  bool was_given(std::string_view setting) const { return given.contains(setting); }
};

// Settings of one heading in help.
struct SettingGroup {
  std::string name;
  std::vector<Setting> settings;
};

// Of the request, which outlives them. Options of methods and losses are among them, each under one name, whoever has
// it.
std::vector<SettingGroup> learn_settings(LearnRequest& request);

// What a model is started from and keeps; of train alone.
std::vector<Setting> model_settings(LearnRequest& request);

// Fills in the loss, the method and what they imply. Throws ErrorKind::usage for settings that do not go together:
// an option that would be ignored is refused, since whoever gave it expects something of it.
void resolve(LearnRequest& request);

}  // namespace linblock
