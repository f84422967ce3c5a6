// The plan: what the memory is used for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "objective/problem.h"
#include "store/blocks/block_source.h"

namespace linblock {

// A part of the plan: a copy of tasks' weights.
inline constexpr std::string_view kSideBySide = "weights side by side";
// Likewise: matrices that a method factorizes. With them, how features are scaled matters little.
inline constexpr std::string_view kFactors = "factors";

// One use of the memory. The plan adds parts up, prints, traces and saves them, and knows nothing of what they are.
struct MemoryPart {
  std::string name = {};  // "duals", "margins"
  uint64_t bytes = 0;
  std::vector<Remedy> remedies = {};  // where this part is the largest of a refusal
  std::string of = {};                // "300 rows", for a refusal
};

// Decided once, before training, from the options, the data and the memory; equal plans give equal bits.
struct Plan {
  size_t method = 0;  // its number in the list
  size_t tasks = 1;
  bool columns = false;  // what is read are feature columns, and `rows` speaks of those
  bool index = false;    // pages of the index are read as they are asked for
  RowsHeld rows = RowsHeld::streamed;
  bool duals_in_file = false;
  std::vector<MemoryPart> parts = {};
  uint64_t window_bytes = 0;          // rows in memory: all of them, or the block in work and those read ahead
  uint64_t cache_bytes = 0;           // rows kept across blocks: the working set, or pages and active rows
  uint64_t certify_bytes = 0;         // of v, while a certificate is made; where rows are streamed, out of the window
  uint64_t certify_window_bytes = 0;  // the rest of the window, meanwhile
  size_t chunks_per_block = 1;
  bool few_features = false;  // for so many rows that a mean of weights costs nothing and helps
  size_t inner = 1;           // inner iterations on a block
  double idle = 0;            // work that is free while the disk is waited for, for each unit of work
  uint64_t kept_rows = 0;     // in the working set of a task, at most
  size_t accumulators = 1;    // partial sums over rows, added in a fixed order
  bool batches = false;       // rows may be stepped along together
  bool crowded = false;       // fewer tasks at once would take fewer passes; says nothing of a run, and is not saved

  void add_part(std::string_view name, uint64_t bytes, std::vector<Remedy> remedies = {}, std::string of = {}) {
    parts.push_back({std::string(name), bytes, std::move(remedies), std::move(of)});
  }
  // 0 where there is no such part.
  uint64_t bytes(std::string_view part) const;
  std::string_view method_name() const;
  // Of so many weights: in ranges of how many features v is made, and of how many tasks in one pass.
  size_t features_at_once() const { return std::max<uint64_t>(1, certify_bytes / sizeof(double)); }
  size_t certified_at_once(size_t weights) const {
    return std::max<size_t>(1, features_at_once() / std::max<size_t>(1, weights));
  }
  std::string describe() const;

  // As it may come from a file.
  bool is_possible() const;
  static void visit_fields(auto& self, auto&& field) {
    field("method", self.method);
    field("tasks", self.tasks);
    field("columns", self.columns);
    field("index", self.index);
    field("rows", self.rows);
    field("duals_in_file", self.duals_in_file);
    std::string text = self.parts_text();
    field("parts", text);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>) self.set_parts(text);
    field("window_bytes", self.window_bytes);
    field("cache_bytes", self.cache_bytes);
    field("certify_bytes", self.certify_bytes);
    field("certify_window_bytes", self.certify_window_bytes);
    field("chunks_per_block", self.chunks_per_block);
    field("few_features", self.few_features);
    field("inner", self.inner);
    field("idle", self.idle);
    field("kept_rows", self.kept_rows);
    field("accumulators", self.accumulators);
    field("batches", self.batches);
  }
  // The parts as one text, in which a file keeps them.
  std::string parts_text() const;
  void set_parts(std::string_view text);
};

// "500,000 features for each of 4 classes"
std::string features_words(const Problem& problem, size_t classes = 1);

// Throws ErrorKind::memory: what the parts of the plan take, which of them is the largest, and what helps. `needed`: of
// all of them, with the program itself.
[[noreturn]] void refuse_memory(const Plan& plan, uint64_t needed, uint64_t allowed);

}  // namespace linblock
