#include "learn/stages.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"

namespace linblock {

namespace {

constexpr std::string_view kMemory = "memory";  // a line of an identity: prepare.cc

std::string stages_path(const Checkpoint& checkpoint) { return checkpoint.path + ".stages"; }

}  // namespace

std::string differences(const std::string& then, const std::string& now) {
  const auto lines = [](const std::string& text) {
    std::map<std::string, std::string> values;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      if (const size_t colon = line.find(": "); colon != std::string::npos)
        values[line.substr(0, colon)] = line.substr(colon + 2);
      at = end + 1;
    }
    return values;
  };
  std::map<std::string, std::pair<std::string, std::string>> then_and_now;
  constexpr const char* kAbsent = "not there";
  for (const auto& [name, value] : lines(then)) then_and_now[name] = {value, kAbsent};
  for (const auto& [name, value] : lines(now)) then_and_now.try_emplace(name, kAbsent, "").first->second.second = value;
  const auto shown = [](const std::string& name, const std::string& value) {
    const std::optional<uint64_t> bytes = name == kMemory ? Text<uint64_t>::read(value, {}) : std::nullopt;
    return bytes ? SizeText(*bytes).show() : value;  // as people write sizes
  };
  std::string different;
  for (const auto& [name, values] : then_and_now)
    if (values.first != values.second)
      different += fmt::format("\n  {}: {} then, {} now", name, shown(name, values.first), shown(name, values.second));
  return different;
}

namespace {

std::string without_stage(const std::string& identity) { return identity.substr(0, identity.rfind("stage: ")); }

std::string identity_in(const std::string& path) { return without_stage(SnapshotReader(path).take_text("identity")); }

[[noreturn]] void refuse_other_run(const std::string& path, const std::string& then, const std::string& now) {
  const std::string different = differences(then, now);
  const size_t line = different.find(fmt::format("\n  {}: ", kMemory));
  std::vector<Remedy> remedies = {say("give the same options"), start_over()};
  if (line == 0 && different.find('\n', 1) == std::string::npos) {
    const std::string size = different.substr(different.find(": ") + 2);
    remedies[0] = give_at_least(std::string(kMemory), size.substr(0, size.find(' ')));
    fail(ErrorKind::usage, std::move(remedies), "'{}' is a checkpoint of a run whose plan needs more memory:{}", path,
         different);
  }
  fail(ErrorKind::usage, std::move(remedies), "'{}' is a checkpoint of another run:{}", path, different);
}

}  // namespace

std::optional<std::string> saved_identity(const Checkpoint& checkpoint) {
  for (const std::string& path : {checkpoint.path, stages_path(checkpoint)})
    if (path_kind(path) == PathKind::file) return identity_in(path);
  return {};
}

Stages::Stages(const Checkpoint& checkpoint, std::string identity, bool fresh)
    : checkpoint_(checkpoint), path_(stages_path(checkpoint)) {
  checkpoint_.identity = std::move(identity);
  if (!checkpoint_.wanted()) return;
  for (const std::string& path : {checkpoint_.path, path_}) {
    if (path_kind(path) != PathKind::file) continue;
    if (fresh) {
      remove_file(path);
      continue;
    }
    const std::string then = identity_in(path);
    if (then != checkpoint_.identity) refuse_other_run(path, then, checkpoint_.identity);
    resumed_ = true;
  }
  if (path_kind(path_) == PathKind::file) {
    left_.emplace(path_);
    left_->take<std::string>("identity");  // compared above
    done_ = left_->take<uint64_t>("done");
  }
  // A kill between the end of a stage and the removal of its checkpoint leaves one that is no longer wanted.
  if (path_kind(checkpoint_.path) == PathKind::file &&
      SnapshotReader(checkpoint_.path).take_text("identity") != this->checkpoint().identity)
    remove_file(checkpoint_.path);
}

Checkpoint Stages::checkpoint() const {
  Checkpoint next = checkpoint_;
  next.identity += fmt::format("stage: {}\n", done_);
  return next;
}

bool Stages::restore(const std::function<void(FieldReader&)>& restore) {
  if (!left_) return false;
  restore(*left_);
  left_->finish();
  left_.reset();
  return true;
}

void Stages::finish(const std::function<void(FieldWriter&)>& save) {
  ++done_;
  if (!checkpoint_.wanted()) return;
  SnapshotWriter file(path_);
  FieldWriter to(file);
  to("identity", checkpoint_.identity);
  to("done", done_);
  save(to);
  file.commit();
  if (path_kind(checkpoint_.path) == PathKind::file) remove_file(checkpoint_.path);
}

SolveOptions with_time_left(const SolveOptions& options, const Stopwatch& since) {
  SolveOptions left = options;
  if (left.max_seconds > 0) left.max_seconds = std::max(1e-3, left.max_seconds - since.seconds());
  return left;
}

void add_summary(const Summary& part, Summary& whole) {
  if (whole.certificates.empty()) whole.plan = part.plan;
  whole.termination = std::max(whole.termination, part.termination);
  whole.has_dual = part.has_dual;
  whole.passes += part.passes;
  whole.certificates.insert(whole.certificates.end(), part.certificates.begin(), part.certificates.end());
  whole.costs += part.costs;
  whole.solve_seconds += part.solve_seconds;
  whole.certify_seconds += part.certify_seconds;
  whole.total_seconds += part.total_seconds;
  whole.column_steps += part.column_steps;
  whole.certificates_made += part.certificates_made;
  whole.changed_after = std::max(whole.changed_after, part.changed_after);
  whole.truncate = part.truncate;
  whole.truncated.insert(whole.truncated.end(), part.truncated.begin(), part.truncated.end());
  whole.support_vectors.insert(whole.support_vectors.end(), part.support_vectors.begin(), part.support_vectors.end());
}

}  // namespace linblock
