#include "cli/show/outputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/own_files.h"
#include "base/snapshot.h"
#include "learn/checkpoint_directory.h"
#include "learn/model.h"
#include "learn/state.h"
#include "store/core/manifest.h"

namespace linblock::cli {

namespace {

constexpr std::array<std::string_view, 2> kTraceBeginnings = {R"({"event":"begin","command":[)",
                                                              R"({"event":"resume","command":[)"};

std::string beginning_of(const std::string& path, size_t bytes) {
  std::string beginning(bytes, '\0');
  beginning.resize(File::open_read(path).read_at({reinterpret_cast<unsigned char*>(beginning.data()), bytes}, 0));
  return beginning;
}

bool has_beginning(const std::string& path, std::string_view beginning) {
  return path_kind(path) == PathKind::file && beginning_of(path, beginning.size()) == beginning;
}

// What a text must not take the place of; nothing where it may.
const char* precious_kind(const std::string& path) {
  constexpr std::array<std::string_view, 7> kStoreFiles = {
      format::kManifestMagic, format::kSegmentMagic, format::kFeatureMagic, format::kRemovedMagic,
      format::kRowFactsMagic, format::kForestMagic,  kSnapshotFamily};
  if (path_kind(path) != PathKind::file) return nullptr;
  if (is_model(path) || has_beginning(path, kModelJsonBeginning)) return "a model, or a part of one";
  for (const std::string_view beginning : kStoreFiles)
    if (has_beginning(path, beginning)) return "a part of a store or of a state";
  return nullptr;
}

[[noreturn]] void refuse(const char* option, const std::string& path, const char* what) {
  fail(ErrorKind::usage, "{}: '{}' exists and is no {}, so it is not overwritten: choose another name, or remove it",
       option, path, what);
}

// The same file, or a file that is to be, under the same name.
bool same_place(const std::string& a, const std::string& b) {
  if (same_file(a, b)) return true;
  const auto name = [](const std::string& path) { return path.substr(path.find_last_of('/') + 1); };
  return path_kind(a) == PathKind::absent && path_kind(b) == PathKind::absent && name(a) == name(b) &&
         same_file(parent_directory(a), parent_directory(b));
}

// `path` is this directory, or somewhere below it, whatever links and dots lead there.
bool is_within(const std::string& path, const std::string& directory) {
  std::error_code error;
  for (std::filesystem::path at = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error); !error;
       at = at.parent_path()) {
    if (same_file(at.string(), directory)) return true;
    if (at == at.parent_path()) break;
  }
  return false;
}

// Names that linblock makes of a model's name.
bool is_name_of_part(const std::string& path) {
  return path.ends_with(".new") || path.ends_with(".json") || path.ends_with(".state") || path.ends_with(".lock");
}

}  // namespace

bool is_model(const std::string& path) {
  return has_beginning(path, kModelBeginning) || has_beginning(path, kBinaryModelBeginning);
}

std::string model_lock_path(const std::string& model) { return model + ".lock"; }

void forget_state(const std::string& model) {
  const std::string state = state_path(model);
  if (path_kind(state) == PathKind::file && file_begins_as(state, kSnapshotFamily)) remove_file(state);
}

Outputs::Outputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    if (input == "-") {
      inputs_.emplace_back("/dev/stdin");  // the file that it was redirected from
      continue;
    }
    inputs_.push_back(input);
    if (is_model(input))
      for (const std::string& part : {model_json_path(input), state_path(input)}) inputs_.push_back(part);
  }
}

void Outputs::add(const std::string& path, const char* option) {
  if (path.empty()) fail(ErrorKind::usage, "{} is empty: name a file", option);
  if (path_kind(path) == PathKind::directory)
    fail(ErrorKind::usage, "{}: '{}' is a directory: name a file", option, path);
  // It would be replaced by a file: -o /dev/null as root must not be the end of /dev/null.
  if (path_kind(path) == PathKind::other)
    fail(ErrorKind::usage, "{}: '{}' is a device or a pipe: name a file", option, path);
  if (path_kind(parent_directory(path)) != PathKind::directory)
    fail(ErrorKind::io, "{}: cannot create '{}': the directory '{}' does not exist", option, path,
         parent_directory(path));
  if (is_link(path) && path_kind(path) == PathKind::absent)
    fail(ErrorKind::usage, "{}: '{}' is a symbolic link that leads nowhere: name a file", option, path);
  for (const std::string& input : inputs_) {
    if (same_file(path, input))
      fail(ErrorKind::usage, "{}: '{}' is read by this command, and would be lost: choose another name", option, path);
    if (path_kind(input) == PathKind::directory && is_within(path, input))
      fail(ErrorKind::usage, "{}: '{}' is in '{}', which is read by this command: choose another place", option, path,
           input);
  }
  const std::string directory = parent_directory(path);
  const bool in_store = has_beginning(manifest_path(directory), format::kManifestMagic);
  if (in_store || has_beginning(directory + "/" + kCheckpointName, kSnapshotFamily))
    fail(ErrorKind::usage, "{}: '{}' is in a {}, where only linblock's own files belong: choose another place", option,
         path, in_store ? "store" : "checkpoint");
  for (const std::string& output : outputs_)
    if (same_place(path, output))
      fail(ErrorKind::usage, "{}: '{}' is written by another option of this command: choose another name", option,
           path);
  outputs_.push_back(path);
}

void Outputs::add_own(const std::string& path, std::string_view beginning) {
  const PathKind kind = path_kind(path);
  if (kind == PathKind::directory || kind == PathKind::other || !file_begins_as(path, beginning)) refuse_foreign(path);
  add(path, "--output");
}

void Outputs::add_directory(const std::string& path, const char* option) {
  if (path.empty()) fail(ErrorKind::usage, "{} is empty: name a directory", option);
  for (const std::string& output : outputs_)
    if (same_place(path, output) || is_within(output, path))
      fail(ErrorKind::usage, "{}: '{}' is where '{}' is written: choose another place", option, path, output);
  outputs_.push_back(path);
}

void Outputs::add_text(const std::string& path, const char* option) {
  if (path_kind(path) == PathKind::other) return;  // a pipe, /dev/null
  add(path, option);
  if (const char* what = precious_kind(path))
    fail(ErrorKind::usage, "{}: '{}' is {}, so it is not overwritten: choose another name", option, path, what);
}

void Outputs::add_model(const std::string& path, bool keeps_state) {
  if (is_name_of_part(path))
    fail(ErrorKind::usage, "--output: '{}' ends as a file that linblock writes beside a model: choose another name",
         path);
  if (is_link(path))
    fail(ErrorKind::usage, "--output: '{}' is a symbolic link, which would be replaced: name the file itself", path);
  add(path, "--output");
  if (path_kind(path) != PathKind::absent && !may_be_model(path)) refuse("--output", path, "model");
  if (!may_be_model(temporary_path(path))) add_own(temporary_path(path), kModelBeginning);
  add_own(model_json_path(path), kModelJsonBeginning);
  add_own(temporary_path(model_json_path(path)), kModelJsonBeginning);
  add_own(model_lock_path(path), kLockBeginning);
  if (!keeps_state) return;
  add_own(state_path(path), kSnapshotFamily);
  add_own(temporary_path(state_path(path)), kSnapshotFamily);
}

void Outputs::add_trace(const std::string& path) {
  if (path_kind(path) == PathKind::other) return;
  add(path, "--trace");
  if (path_kind(path) != PathKind::file) return;
  const std::string beginning = beginning_of(path, 64);
  if (std::none_of(kTraceBeginnings.begin(), kTraceBeginnings.end(),
                   [&](auto trace_beginning) { return begins_as(beginning, trace_beginning); }))
    refuse("--trace", path, "trace");
}

void Outputs::add_page(const std::string& path) {
  if (is_link(path))
    fail(ErrorKind::usage, "--output: '{}' is a symbolic link, which would be replaced: name the file itself", path);
  add(path, "--output");
  if (path_kind(path) == PathKind::file) {
    const std::string beginning = beginning_of(path, kPageBeginning.size());
    if (!begins_as(beginning, kPageBeginning)) refuse("--output", path, "report of linblock");
  }
  add_own(temporary_path(path), kPageBeginning);
}

}  // namespace linblock::cli
