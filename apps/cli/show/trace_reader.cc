#include "cli/show/trace_reader.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "store/text/line_reader.h"

namespace linblock::cli {

namespace {

constexpr size_t kLongestLine = size_t{4} << 20;  // a command may name many files
constexpr size_t kMemoryPoints = 400;
constexpr const char* kRemedy = "name files that 'linblock train --trace FILE' wrote";

// A count that begins again at 0, when a run is resumed or its next group of tasks begins, and is to go on.
class Onward {
 public:
  double at(double value) {
    if (value < last_) restart();
    last_ = value;
    return before_ + value;
  }
  void restart() {
    before_ += last_;
    last_ = 0;
  }

 private:
  double before_ = 0;
  double last_ = 0;
};

class TraceReader {
 public:
  explicit TraceReader(const std::string& path) : path_(path) {}

  std::vector<TraceRun> read() {
    if (path_kind(path_) == PathKind::directory) fail(ErrorKind::input, "'{}' is a folder: {}", path_, kRemedy);
    if (path_kind(path_) == PathKind::file && file_stamp(path_).bytes == 0)
      fail(ErrorKind::input, "'{}' is empty, where a trace has a line for its plan: {}", path_, kRemedy);
    LineReader lines(path_, fmt::format("event of a trace; {}", kRemedy), kLongestLine);
    std::string_view line;
    while (lines.next(line)) {
      number_ = lines.number();
      std::optional<Json> json = Json::try_parse(line);
      if (!json) {
        const bool ours = line.starts_with("{\"event\":\"");
        if (!ours || lines.next(line)) refuse("the line is not JSON");
        fail(ErrorKind::input,
             "{}:{}: the trace ends in the middle of this line: it is still being written, or was cut; wait for the "
             "end, or remove the line",
             path_, number_);
      }
      take(std::move(*json));
    }
    if (runs_.empty()) fail(ErrorKind::input, "'{}' has only blank lines: {}", path_, kRemedy);
    return std::move(runs_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::input, "{}:{}: this is no line of a trace: {}; {}", path_, number_, why, kRemedy);
  }

  const Json& member(const Json& json, const char* key) const {
    const Json* const value = json.find(key);
    if (value == nullptr) refuse(fmt::format("'{}' is missing", key));
    return *value;
  }
  double number(const Json& json, const char* key) const {
    const Json& value = member(json, key);
    if (!value.is_number()) refuse(fmt::format("'{}' is not a number", key));
    return value.number();
  }
  double number_or_null(const Json& json, const char* key) const {
    return member(json, key).is_null() ? NAN : number(json, key);
  }
  double number_if_there(const Json& json, const char* key) const {
    return json.contains(key) ? number_or_null(json, key) : NAN;
  }
  void need_words(const Json& json, const char* key) const {
    if (!member(json, key).is_text()) refuse(fmt::format("'{}' is no text", key));
  }

  void need_list_of_words(const Json& json, const char* key) const {
    const Json& list = member(json, key);
    if (!list.is_array()) refuse(fmt::format("'{}' is no list", key));
    for (const Json& word : list.items())
      if (!word.is_text()) refuse(fmt::format("'{}' has something that is no text", key));
  }

  void take(Json json) {
    if (!json.is_object() || !json.contains("event") || !json["event"].is_text())
      refuse("it is JSON, but no object with an 'event'");
    const std::string event = json["event"].text();
    if (event == "begin" || (event == "resume" && runs_.empty()))
      begin(std::move(json));
    else if (runs_.empty())
      refuse(fmt::format("the first event is '{}', and should be 'begin' or 'resume'", event));
    else if (event == "resume" || event == "group")
      go_on(event == "group");
    else if (event == "block")
      remember_memory(seconds_.at(number(json, "seconds")), number(json, "resident_bytes"));
    else if (event == "pass")
      pass(json);
    else if (event == "end")
      end(std::move(json));
    else
      refuse(fmt::format("no trace has an event '{}'", event));
  }

  void begin(Json json) {
    for (const char* key : {"loss", "solver"}) need_words(json, key);
    for (const char* key : {"cost", "tolerance", "seed", "memory_bytes"}) number(json, key);
    number_or_null(json, "truncate");
    need_list_of_words(json, "inputs");
    if (json.contains("command")) need_list_of_words(json, "command");
    if (!member(json, "plan").is_object()) refuse("'plan' is no object");
    need_words(json["plan"], "words");
    runs_.push_back({.path = path_, .begin = std::move(json)});
    seconds_ = bytes_ = {};
    passes_before_ = last_pass_ = 0;
    stride_ = 1;
    merged_ = 0;
  }

  void go_on(bool next_group) {
    ++(next_group ? runs_.back().groups : runs_.back().resumed);
    if (next_group) passes_before_ += last_pass_;
    runs_.back().end = nullptr;
    seconds_.restart();
    bytes_.restart();
  }

  void pass(const Json& json) {
    PassNumbers numbers;
    numbers.fill(NAN);
    for (const PassColumn column : {kPass, kSolve, kWait, kRead, kDecode})
      numbers[column] = number(json, kPassColumnNames[column]);
    for (const PassColumn column : {kPrimal, kDual, kGap, kTestAccuracy})
      numbers[column] = number_or_null(json, kPassColumnNames[column]);
    last_pass_ = numbers[kPass];
    numbers[kPass] += passes_before_;
    numbers[kSeconds] = seconds_.at(number(json, "seconds"));
    numbers[kBytesRead] = bytes_.at(number(json, "bytes_read"));
    numbers[kResident] = number(json, "resident_bytes");
    numbers[kCertified] = member(json, "certified") == Json(true) ? 1 : 0;
    const double certify = number_if_there(json, "certify_seconds");
    numbers[kCertify] = std::isnan(certify) ? 0 : certify;
    if (json.contains("truncated")) {
      numbers[kObjective] = number(json.at("truncated"), "objective");
      numbers[kGap] = NAN;  // that of a convex problem which is no longer this one
    }
    runs_.back().passes.push_back(numbers);
    remember_memory(numbers[kSeconds], numbers[kResident]);
  }

  void end(Json json) {
    for (const char* key : {"seconds", "passes", "bytes_read", "peak_memory_bytes"}) number(json, key);
    for (const char* key : {"primal", "dual", "certified_gap", "test_accuracy"}) number_or_null(json, key);
    if (!member(json, "converged").is_flag()) refuse("'converged' is neither true nor false");
    number_if_there(json, "support_vectors");
    number_if_there(json, "processor_seconds");
    if (json.contains("threads")) {
      if (!json.at("threads").is_array()) refuse("'threads' is not a list");
      for (const Json& thread : json.at("threads").items())
        for (const char* key : {"shared_work_seconds", "reading_seconds"}) number(thread, key);
    }
    if (json.contains("truncated"))
      for (const char* key : {"objective", "outliers", "outer_steps"}) number(json["truncated"], key);
    runs_.back().end = std::move(json);
  }

  // Neighbors are merged into the larger where there are too many.
  void remember_memory(double seconds, double bytes) {
    std::vector<std::pair<double, double>>& memory = runs_.back().memory;
    if (merged_ == 0)
      memory.emplace_back(seconds, bytes);
    else if (bytes > memory.back().second)
      memory.back() = {seconds, bytes};
    merged_ = (merged_ + 1) % stride_;
    if (merged_ > 0 || memory.size() < kMemoryPoints) return;
    for (size_t i = 0; i < memory.size() / 2; ++i)
      memory[i] = memory[2 * i].second > memory[2 * i + 1].second ? memory[2 * i] : memory[2 * i + 1];
    memory.resize(memory.size() / 2);
    stride_ *= 2;
  }

  std::string path_;
  uint64_t number_ = 0;
  std::vector<TraceRun> runs_;
  Onward seconds_;
  Onward bytes_;
  double passes_before_ = 0;  // of earlier groups
  double last_pass_ = 0;
  size_t stride_ = 1;  // lines a point of memory
  size_t merged_ = 0;  // lines in the last one, while it is not full
};

}  // namespace

std::vector<TraceRun> read_trace(const std::string& path) { return TraceReader(path).read(); }

}  // namespace linblock::cli
