#include "cli/outputs.h"

#include <fstream>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace linblock::cli {

namespace {

// An older one may go, and so may an empty file; anything else is not ours.
void check_older(const std::string& path, const char* option, std::string_view beginning, const char* what) {
  std::string found(beginning.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(found.data(), static_cast<std::streamsize>(found.size())) && file.gcount() == 0) return;
  if (found != beginning)
    fail(ErrorKind::usage, "{}: '{}' exists and is no {}, so it is not overwritten: choose another name, or remove it",
         option, path, what);
}

}  // namespace

void check_output(const std::string& path, const char* option, const std::vector<std::string>& inputs) {
  if (path_kind(path) == PathKind::directory) fail(ErrorKind::usage, "{}: '{}' is a folder: name a file", option, path);
  if (path_kind(parent_directory(path)) != PathKind::directory)
    fail(ErrorKind::io, "{}: cannot create '{}': the folder '{}' does not exist", option, path, parent_directory(path));
  check_not_read(path, option, inputs);
}

void check_model_output(const std::string& path, const std::vector<std::string>& inputs) {
  check_output(path, "--output", inputs);
  check_older(path, "--output", "solver_type", "model");
}

void check_trace_output(const std::string& path, const std::vector<std::string>& inputs) {
  check_output(path, "--trace", inputs);
  check_older(path, "--trace", "{\"event\":", "trace");
}

}  // namespace linblock::cli
