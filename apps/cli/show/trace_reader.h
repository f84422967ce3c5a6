// What `train --trace` wrote, read back and checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace linblock::cli {

// The numbers of a pass that a report is made of, as the trace names them; NaN where it has none.
enum PassColumn : size_t {
  kPass,
  kSeconds,
  kBytesRead,
  kPrimal,
  kDual,
  kGap,
  kCertified,
  kTestAccuracy,
  kObjective,  // of truncated losses, where the pass was a reading that found outliers
  kResident,
  kSolve,  // from here on: seconds, which add up
  kWait,
  kCertify,
  kRead,
  kDecode,
  kPassColumns
};
inline constexpr std::array<const char*, kPassColumns> kPassColumnNames = {
    "pass",          "seconds",      "bytes_read",      "primal",       "dual",
    "gap",           "certified",    "test_accuracy",   "objective",    "resident_bytes",
    "solve_seconds", "wait_seconds", "certify_seconds", "read_seconds", "decode_seconds"};
using PassNumbers = std::array<double, kPassColumns>;

struct TraceRun {
  std::string path;
  Json begin;                            // the line itself
  Json end = nullptr;                    // null: the run has not ended
  size_t groups = 1;                     // of tasks, trained one after another
  size_t resumed = 0;                    // how often it went on from a checkpoint
  std::vector<PassNumbers> passes = {};  // seconds and bytes go on where a run was resumed or a group began, passes too
  std::vector<std::pair<double, double>> memory = {};  // seconds, resident bytes; at most 400, peaks kept
};

// One run a `begin`. What is no trace is refused with its line.
std::vector<TraceRun> read_trace(const std::string& path);

}  // namespace linblock::cli
