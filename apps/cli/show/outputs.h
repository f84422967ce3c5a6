// Files that a command writes: one place decides what may be written over, before any work. Never anything that the
// same command reads; never a file that linblock wrote for another purpose (a model, a part of a store or of a
// checkpoint); and under names that linblock makes up itself, such as MODEL.json, only what linblock wrote. A text that
// the user names with -o may take the place of another text, as with any tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace linblock::cli {

class Outputs {
 public:
  // Files and directories that are read; - is standard input. What belongs to a model is read with it.
  explicit Outputs(const std::vector<std::string>& inputs);

  // Each throws a usage error that names the option and the file.
  void add_text(const std::string& path, const char* option);
  // A store or a checkpoint, in a directory.
  void add_directory(const std::string& path, const char* option);
  void add_model(const std::string& path, bool keeps_state);
  void add_trace(const std::string& path);
  void add_page(const std::string& path);

 private:
  void add(const std::string& path, const char* option);
  // A name that linblock makes up.
  void add_own(const std::string& path, std::string_view beginning);

  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
};

// How a page of 'report' begins.
inline constexpr std::string_view kPageBeginning = "<!doctype html>\n<!-- written by linblock report -->";

// By how it begins; false where there is nothing.
bool is_model(const std::string& path);
// Held while MODEL is trained: a second training of the same model is refused at its start, not at its end.
std::string model_lock_path(const std::string& model);
// A state that stands beside a model that was replaced is not this one's.
void forget_state(const std::string& model);

}  // namespace linblock::cli
