// A training run as lines of JSON: the plan, each block, each pass, the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "learn/train.h"

namespace linblock::cli {

class Trace {
 public:
  // An empty path: nothing is written.
  explicit Trace(const std::string& path) : path_(path) {}

  // A run that goes on from a checkpoint adds to what is there; called again, the next group of tasks begins.
  void begin(const std::vector<std::string>& command, const TrainOptions& options, const Plan& plan,
             uint64_t memory_bytes, bool resumed);
  void block(const BlockReport& report);
  void pass(const PassReport& report, std::optional<double> test_accuracy);
  // With what each thread of the team did, so that idle cores show.
  void end(const Summary& summary, double seconds, std::optional<double> test_accuracy, const Team& team);

 private:
  void write(const std::string& line);

  std::string path_;
  File file_;
  uint64_t size_ = 0;
};

}  // namespace linblock::cli
