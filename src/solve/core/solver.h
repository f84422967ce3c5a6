// How a problem is minimized: a method's options in, weights with a certificate out.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/snapshot.h"
#include "base/team.h"
#include "objective/certificate.h"
#include "objective/duals.h"
#include "objective/problem.h"
#include "objective/sparse_duals.h"
#include "solve/core/plan.h"
#include "solve/methods.h"
#include "store/blocks/rows.h"
#include "store/blocks/schedule.h"

namespace linblock {

// Weights that a task has: those of all classes, where it tells them apart at once.
size_t weights_of_a_task(const Problem& problem, const AnyMethod& method);

struct SolveOptions {
  AnyMethod method = Dual{};
  double tolerance = 0.01;  // relative duality gap, certified
  int max_passes = 1000;
  double max_seconds = 0;  // 0: no limit
  uint64_t seed = 1;
  size_t chunks_per_block = 0;  // 0: as the plan finds best
  // After a warm start: chunks whose rows no dual knows of. They come first, and have a few rounds before the others.
  std::vector<uint32_t> new_chunks = {};
  // The method is dual, and gives way to newton where it is too slow (second_method).
  bool may_change = false;

  static constexpr auto options() {
    return std::tuple{
        option("tolerance", &SolveOptions::tolerance, "X", "Stop at this relative duality gap, certified",
               {.above = 0}),
        option("max_passes", &SolveOptions::max_passes, "N", "Stop after N passes", {.from = 1}, "auto", false),
        option_as<NumberOrNone<0>>("max_seconds", &SolveOptions::max_seconds, "X", "Stop after X seconds", {}, "auto",
                                   false),
        option("seed", &SolveOptions::seed, "N", "Random seed")};
  }
};

// Stalled: no step is better than none, as far as numbers of double precision can tell.
// `ended`: of a method that does not aim at a tolerance.
enum class Termination { converged, pass_limit, time_limit, interrupted, stalled, ended };
constexpr Termination last_of(Termination) { return Termination::ended; }
std::string_view name_of(Termination termination);

// One a task: a warm start in, the answer out.
struct Solution {
  std::vector<float> weights = {};
  Duals duals = {};
  // Where `weights` are a mean that turned out better: those that belong to the duals, to go on from.
  std::vector<float> weights_of_duals = {};
  uint64_t steps = 0;  // Pegasos: how many were made
  // In: a lower bound of the optimum that is known already, rounded down.
  double known_dual = -std::numeric_limits<double>::infinity();
  SparseDuals class_duals = {};  // instead, where a task tells all classes apart at once
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

  static void visit_fields(auto& self, auto&& field) {
    field("objective", self.objective);
    field("outliers", self.outliers);
    field("outer_steps", self.outer_steps);
  }
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
  std::vector<std::string> notes = {};               // what a method found out on the way and a user should know
  std::vector<std::span<const float>> weights = {};  // that would be the answer now, one per task; not for long

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

// What happens on the way, for whoever shows it. Observers change nothing and read no rows.
struct Observer {
  std::function<void(const Plan&)> plan = [](const Plan&) {};
  std::function<void(const BlockReport&)> block = [](const BlockReport&) {};
  std::function<void(const PassReport&)> pass = [](const PassReport&) {};
  ReadingObserver reading = [](std::string_view, double) {};
  // What a method found out on the way and a user should know.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

// With which resources.
struct Context {
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t reserved_bytes = 0;  // of it, for what the caller holds meanwhile
  Team team = 1;
  bool wants_v = false;      // the caller takes v = sum of alpha y x from the certificates
  bool rows_at_end = false;  // the caller reads all rows once more when the answer is complete: columns leave room
  Observer observer = {};
  const std::atomic<bool>* stop = nullptr;
  Checkpoint checkpoint = {};

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

  static void visit_fields(auto& self, auto&& field) {
    field("steps", self.steps);
    field("full", self.full);
    field("evaluations", self.evaluations);
    field("saved", self.saved);
  }
};

// Readings of all rows at fixed weights, one per task that was certified.
struct CertificatesMade {
  uint64_t all = 0;
  uint64_t without_v = 0;  // of them, from margins alone

  CertificatesMade& operator+=(const CertificatesMade& other) {
    all += other.all;
    without_v += other.without_v;
    return *this;
  }

  static void visit_fields(auto& self, auto&& field) {
    field("all", self.all);
    field("without_v", self.without_v);
  }
};

struct Summary {
  Termination termination = Termination::converged;
  Plan plan = {};
  int passes = 0;
  bool has_dual = true;                        // false for Pegasos, whose gap is not known
  std::vector<Certificate> certificates = {};  // one a task, of the weights in the solutions
  ColumnSteps column_steps = {};               // of all tasks
  CertificatesMade certificates_made = {};     // of methods that may do without v
  int changed_after = 0;                       // passes of dual, before newton took over; 0: it did not
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
  bool converged() const { return termination == Termination::converged; }

  static void visit_fields(auto& self, auto&& field) {
    field("termination", self.termination);
    field("plan", self.plan);
    field("passes", self.passes);
    field("has_dual", self.has_dual);
    field("certificates", self.certificates);
    field("column_steps", self.column_steps);
    field("certificates_made", self.certificates_made);
    field("changed_after", self.changed_after);
    field("truncate", self.truncate);
    field("truncated", self.truncated);
    field("support_vectors", self.support_vectors);
    field("costs", self.costs);
    field("solve_seconds", self.solve_seconds);
    field("certify_seconds", self.certify_seconds);
    field("total_seconds", self.total_seconds);
  }
};

}  // namespace linblock
