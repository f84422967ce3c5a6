// How a problem is minimised: a method's options in, weights with a certificate out.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/snapshot.h"
#include "objective/certificate.h"
#include "objective/duals.h"
#include "objective/problem.h"
#include "objective/sparse_duals.h"
#include "store/blocks/block_source.h"
#include "store/blocks/schedule.h"

namespace linblock {

// Dual coordinate descent on blocks of rows (dual_block.cc).
struct DualBlock {
  Schedule schedule = Schedule::recomposed;
  size_t blocks = 0;  // fixed: how many; 0: as many as the memory asks for
  BlockSequence sequence = BlockSequence::permuted;
  int inner = 0;                              // rounds over a block; 0: chosen from measured rates
  bool converge = false;                      // instead: until the block is solved, by LIBLINEAR's rule
  std::optional<double> cache_fraction = {};  // of the memory for rows, kept for rows near the margin
};

// Stochastic sub-gradient steps on the primal (pegasos.cc); hinge and squared hinge.
struct Pegasos {
  size_t step = 1;  // rows a step; 0: the whole block
};

// Each block solved on its own, and the models averaged (average.cc).
struct Average {};

// A random part that fits the memory, solved there (subsample.cc).
struct Subsample {
  static constexpr uint32_t kChunksPerBlock = 16;

  double share = 0;  // of the chunks; 0: what fits
};

// All classes at once, with the hinge loss of Crammer and Singer (crammer_singer.cc); blocks are recomposed each pass.
// A task's weights are interleaved, weights[feature * classes + class], and its duals are Solution::class_duals.
struct CrammerSinger {
  int inner = 1;  // rounds over a block
};

// Trust-region Newton steps from passes over the rows (newton.cc); squared hinge and logistic.
struct Newton {};

// In which order the methods below go over the features.
enum class ColumnOrder {
  permuted,  // drawn anew for each pass
  cyclic,    // as they are numbered
  once,      // drawn once, then the same in each pass
  online,    // each step draws a feature anew
};

// How the logistic loss comes by its exponentials.
enum class Exponential {
  automatic,  // stored where the first features have equal values, else fast
  library,
  fast,    // of a bounded error (base/exponential.h)
  stored,  // e^(w.x) is kept for each row: a feature whose values are equal needs but one
};

// Coordinate descent on the primal, feature by feature (primal_column.cc); squared hinge and logistic. Needs the
// store's columns.
struct PrimalColumn {
  ColumnOrder order = ColumnOrder::permuted;
  Exponential exponential = Exponential::automatic;
};

// The same with conservative steps, as Zhang and Oles take them (cmls.cc); squared hinge.
struct Cmls {
  ColumnOrder order = ColumnOrder::cyclic;  // or permuted
};

// Rows near the margin, found by the store's index (indexed_block.cc); hinge and squared hinge, truncated as the
// problem says.
struct IndexedBlock {
  size_t query = 1000;  // rows that a query is to find
  bool newton = false;  // on the primal of each block, instead of dual coordinate descent; squared hinge
};

using Method =
    std::variant<DualBlock, Pegasos, Average, Subsample, CrammerSinger, Newton, PrimalColumn, Cmls, IndexedBlock>;
std::string_view name_of(const Method& method);
std::string_view name_of_method(size_t number);  // in the list
// Minimises over w alone: any weights are a start, and there are no duals.
bool is_primal(const Method& method);
// Needs the store's feature columns.
bool goes_over_columns(const Method& method);
size_t weights_of_a_task(const Problem& problem, const Method& method);

struct SolveOptions {
  Method method = DualBlock{};
  double tolerance = 0.01;  // relative duality gap, certified
  int max_passes = 1000;
  double max_seconds = 0;  // 0: no limit
  uint64_t seed = 1;
  size_t chunks_per_block = 0;  // 0: as the plan finds best
  // After a warm start: chunks whose rows no dual knows of. They come first, and have a few rounds before the others.
  std::vector<uint32_t> new_chunks = {};
};

// Stalled: no step is better than none, as far as numbers of double precision can tell.
enum class Termination { converged, pass_limit, time_limit, interrupted, stalled };

// One a task: a warm start in, the answer out.
struct Solution {
  std::vector<float> weights = {};
  Duals duals = {};
  // Where `weights` are a mean that turned out better: those that belong to the duals, to go on from.
  std::vector<float> weights_of_duals = {};
  uint64_t steps = 0;            // Pegasos: how many were made
  SparseDuals class_duals = {};  // instead, where a task tells all classes apart at once
};

// Decided once, before training, from the options, the data and the memory; equal plans give equal bits.
struct Plan {
  size_t method = 0;  // its number in the list
  size_t tasks = 1;
  bool columns = false;  // what is read are feature columns, and `rows` speaks of those
  RowsHeld rows = RowsHeld::streamed;
  bool duals_in_file = false;
  uint64_t weights_bytes = 0;
  uint64_t duals_bytes = 0;
  uint64_t window_bytes = 0;          // rows in memory: all of them, or the block in work and those read ahead
  uint64_t cache_bytes = 0;           // rows kept across blocks
  uint64_t certify_bytes = 0;         // of v, while a certificate is made; where rows are streamed, out of the window
  uint64_t certify_window_bytes = 0;  // the rest of the window, meanwhile
  size_t chunks_per_block = 1;
  bool few_features = false;  // for so many rows that a mean of weights costs nothing and helps
  size_t inner = 1;           // rounds over a block
  double idle = 0;            // seconds that go by unused, reading, for each second of work
  bool settled = true;        // false: the last two are chosen after the first pass, from what it measured
  size_t lanes = 1;           // Newton: sums over rows that are made side by side, and added in a fixed order

  // Of so many weights: in ranges of how many features v is made, and of how many tasks in one pass.
  size_t features_at_once() const { return std::max<uint64_t>(1, certify_bytes / sizeof(double)); }
  size_t certified_at_once(size_t weights) const {
    return std::max<size_t>(1, features_at_once() / std::max<size_t>(1, weights));
  }
  std::string describe() const;
  void save(SnapshotWriter& to) const;
  static Plan restore(const SnapshotReader& from);
};

struct BlockReport {
  int pass = 0;
  size_t block = 0;   // from 1
  size_t blocks = 0;  // of this pass
  uint64_t rows = 0;
  double seconds = 0;  // since the beginning
  ReadCosts costs = {};
  double solve_seconds = 0;
};

// Of losses that count as 1 + s at most; the objective is the true one, not that of a convex problem.
struct TruncatedResult {
  double objective = 0;
  uint64_t outliers = 0;     // rows whose loss is cut
  uint64_t outer_steps = 0;  // convex problems whose solution lowered the objective
};

struct PassReport {
  int pass = 0;
  double seconds = 0;  // since the beginning
  uint64_t rows = 0;
  // Of all tasks together.
  double primal_estimate = 0;                 // infinite where nothing is known
  double dual = 0;                            // of w as it is; not certified
  double largest_gap = 0;                     // what a task's gap would be if the estimates were right
  double gradient_norm = 0;                   // of all tasks together; 0 where a method does not know it
  double largest_slope = 0;                   // of a single feature in this pass, where features are stepped along
  size_t tasks_left = 0;                      // that are not certified within the tolerance
  uint64_t active_rows = 0;                   // of all tasks together, where a method looks for them: indexed
  std::optional<Certificate> certified = {};  // of the tasks that were certified now, the one with the largest gap
  ReadCosts costs = {};                       // of this pass, without its certificate
  double solve_seconds = 0;
  double certify_seconds = 0;
  ReadCosts certify_costs = {};
  uint64_t bytes_read = 0;  // since the beginning
  // Where losses are truncated: this was a reading that looked for outliers, and no pass of a convex solver. Of all
  // tasks together.
  std::optional<TruncatedResult> truncated = {};
  const std::vector<Solution>* solutions = nullptr;

  // A task's estimates; the gap is infinite where nothing is known.
  void add_task(double primal, double its_dual);
  double gap_estimate() const { return largest_gap; }
};

// Where a run keeps what it needs to be taken up again.
struct Checkpoint {
  std::string path = {};      // empty: none
  std::string identity = {};  // what the run is; the caller compares it before solving
  double every_seconds = 10;  // at the next end of a block

  bool wanted() const { return !path.empty(); }
};

// Readings of the rows that are not a pass: what for ("to certify ..."), and how much of it is done.
using ReadingObserver = std::function<void(std::string_view purpose, double share)>;

// With which resources.
struct Context {
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t reserved_bytes = 0;  // of it, for what the caller holds meanwhile
  size_t threads = 1;
  std::function<void(const Plan&)> on_plan = [](const Plan&) {};
  std::function<void(const BlockReport&)> on_block = [](const BlockReport&) {};
  std::function<void(const PassReport&)> observer = [](const PassReport&) {};
  ReadingObserver on_reading = [](std::string_view, double) {};
  // What a method found out on the way and a user should know.
  std::function<void(const std::string&)> on_note = [](const std::string&) {};
  // Every certificate's v = sum of alpha y x of a task, from feature `begin` on.
  std::function<void(size_t task, size_t begin, std::span<const double> v)> on_v = {};
  // Wanted: one more pass over all rows when the answer stands, while those that are in memory still are.
  std::function<void(const Block&)> on_answer = {};
  const std::atomic<bool>* stop = nullptr;
  Checkpoint checkpoint = {};
  // Several problems on one store, one after another: rows that all stay in memory are handed on from each to the next.
  std::unique_ptr<BlockSource>* handed_on = nullptr;

  bool stopped() const { return stop != nullptr && *stop; }
};

// Of coordinate descent over features.
struct ColumnSteps {
  uint64_t steps = 0;        // that moved a weight
  uint64_t full = 0;         // of them, the whole way to where Newton's method points
  uint64_t evaluations = 0;  // of the objective along a feature
  uint64_t saved = 0;        // steps that needed none, or no further one: equation 15 vouches for them

  double full_share() const { return steps == 0 ? 1 : static_cast<double>(full) / static_cast<double>(steps); }
  ColumnSteps& operator+=(const ColumnSteps& other) {
    steps += other.steps;
    full += other.full;
    evaluations += other.evaluations;
    saved += other.saved;
    return *this;
  }
};

struct Summary {
  Termination termination = Termination::converged;
  Plan plan = {};
  int passes = 0;
  bool has_dual = true;                        // false for Pegasos, whose gap is not known
  std::vector<Certificate> certificates = {};  // one a task, of the weights in the solutions
  ColumnSteps column_steps = {};               // of all tasks
  // Where losses are truncated: at which s, and one a task. The certificates are of the last convex problem then.
  std::optional<double> truncate = {};
  std::vector<TruncatedResult> truncated = {};
  std::vector<uint64_t> support_vectors = {};  // one a task where they are known: rows that have a say in w
  ReadCosts costs = {};
  double solve_seconds = 0;
  double certify_seconds = 0;
  double total_seconds = 0;

  // Of all tasks together: the objectives and outliers added up, and the most steps.
  TruncatedResult truncated_total() const;
  uint64_t support_vectors_total() const;
  // Of all tasks together, and of the one that is farthest from the best.
  Certificate total() const;
  double largest_gap() const;
  // A finite bound is known for every task.
  bool certified() const { return has_dual && std::isfinite(largest_gap()); }
};

Summary solve(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
              const Context& context = {});

// The methods. Each states its problem and update above its code.
Summary solve_dual_block(const Problem& problem, const SolveOptions& options, const DualBlock& method,
                         std::vector<Solution>& solutions, const Context& context);
Summary solve_pegasos(const Problem& problem, const SolveOptions& options, const Pegasos& method,
                      std::vector<Solution>& solutions, const Context& context);
Summary solve_average(const Problem& problem, const SolveOptions& options, const Average& method,
                      std::vector<Solution>& solutions, const Context& context);
Summary solve_subsample(const Problem& problem, const SolveOptions& options, const Subsample& method,
                        std::vector<Solution>& solutions, const Context& context);
Summary solve_newton(const Problem& problem, const SolveOptions& options, const Newton& method,
                     std::vector<Solution>& solutions, const Context& context);
Summary solve_crammer_singer(const Problem& problem, const SolveOptions& options, const CrammerSinger& method,
                             std::vector<Solution>& solutions, const Context& context);

Summary solve_primal_column(const Problem& problem, const SolveOptions& options, const PrimalColumn& method,
                            std::vector<Solution>& solutions, const Context& context);
Summary solve_cmls(const Problem& problem, const SolveOptions& options, const Cmls& method,
                   std::vector<Solution>& solutions, const Context& context);
Summary solve_indexed_block(const Problem& problem, const SolveOptions& options, const IndexedBlock& method,
                            std::vector<Solution>& solutions, const Context& context);

}  // namespace linblock
