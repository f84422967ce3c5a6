#include "cli/outputs.h"

#include <fstream>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace linblock::cli {

namespace {

constexpr std::string_view kModelBeginning = "solver_type";

std::string beginning_of(const std::string& path, size_t bytes) {
  std::string found(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(found.data(), static_cast<std::streamsize>(bytes));
  found.resize(static_cast<size_t>(file.gcount()));
  return found;
}

// An older one may go, and so may an empty file; anything else is not ours.
void check_older(const std::string& path, const char* option, std::string_view beginning, const char* what) {
  const std::string found = beginning_of(path, beginning.size());
  if (!found.empty() && found != beginning)
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

bool is_model(const std::string& path) {
  return path_kind(path) == PathKind::file && beginning_of(path, kModelBeginning.size()) == kModelBeginning;
}

void check_model_output(const std::string& path, const std::vector<std::string>& inputs) {
  check_output(path, "--output", inputs);
  check_older(path, "--output", kModelBeginning, "model");
}

void check_trace_output(const std::string& path, const std::vector<std::string>& inputs) {
  check_output(path, "--trace", inputs);
  check_older(path, "--trace", "{\"event\":", "trace");
}

}  // namespace linblock::cli
