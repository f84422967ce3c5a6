// How a problem is minimised: a method's options in, weights with a certificate out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/snapshot.h"
#include "objective/certificate.h"
#include "objective/duals.h"
#include "objective/problem.h"
#include "store/block_source.h"
#include "store/schedule.h"

namespace linblock {

// Dual coordinate descent on blocks of rows (dual_block.cc).
struct DualBlock {
  Schedule schedule = Schedule::recomposed;
  size_t blocks = 0;  // fixed: how many; 0: as many as the memory asks for
  BlockSequence sequence = BlockSequence::permuted;
  int inner = 0;          // rounds over a block; 0: chosen from measured rates
  bool converge = false;  // instead: until the block is solved, by LIBLINEAR's rule
};

// Stochastic sub-gradient steps on the primal (pegasos.cc); hinge and squared hinge.
struct Pegasos {
  size_t step = 1;  // rows a step; 0: the whole block
};

// Each block solved on its own, and the models averaged (average.cc).
struct Average {};

// A random part that fits the memory, solved there (subsample.cc).
struct Subsample {
  double share = 0;  // of the chunks; 0: what fits
};

using Method = std::variant<DualBlock, Pegasos, Average, Subsample>;
std::string_view name_of(const Method& method);

struct SolveOptions {
  Method method = DualBlock{};
  double tolerance = 0.01;  // relative duality gap, certified
  int max_passes = 1000;
  double max_seconds = 0;  // 0: no limit
  uint64_t seed = 1;
};

enum class Termination { converged, pass_limit, time_limit, interrupted };

// Decided once, before training, from the options, the data and the memory; equal plans give equal bits.
struct Plan {
  RowsHeld rows = RowsHeld::streamed;
  uint64_t weights_bytes = 0;  // weights and the certificate's sums
  uint64_t duals_bytes = 0;
  uint64_t window_bytes = 0;  // rows in memory
  size_t chunks_per_block = 1;
  std::string describe() const;
  void save(SnapshotWriter& to) const;
  static Plan restore(const SnapshotReader& from);
};

struct PassReport {
  int pass = 0;
  double seconds = 0;  // since the beginning
  double primal_estimate = 0;
  double dual = 0;  // of w as it is; not certified
  std::optional<Certificate> certified = {};
  uint64_t bytes_read = 0;
  double wait_seconds = 0;
  double solve_seconds = 0;
  const std::vector<float>* weights = nullptr;
};

// Where a run keeps what it needs to be taken up again.
struct Checkpoint {
  std::string path = {};      // empty: none
  std::string identity = {};  // what the run is; the caller compares it before solving
  double every_seconds = 10;  // at the next end of a block
};

// With which resources.
struct Context {
  uint64_t memory_bytes = uint64_t{1} << 30;
  size_t threads = 1;
  std::function<void(const Plan&)> on_plan = [](const Plan&) {};
  std::function<void(const PassReport&)> observer = [](const PassReport&) {};
  const std::atomic<bool>* stop = nullptr;
  Checkpoint checkpoint = {};
};

// One a task: a warm start in, the answer out.
struct Solution {
  std::vector<float> weights = {};
  Duals duals = {};
};

struct Summary {
  Termination termination = Termination::converged;
  Plan plan = {};
  int passes = 0;
  bool certified = true;                       // Pegasos has no dual: its gap is not known
  std::vector<Certificate> certificates = {};  // one a task, of the weights in the solutions
  uint64_t bytes_read = 0;
  double read_wait_seconds = 0;
  double solve_seconds = 0;
  double certify_seconds = 0;
  double total_seconds = 0;
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

// Throws ErrorKind::memory, with the numbers and remedies, when the weights do not fit.
Plan make_plan(const Problem& problem, const Method& method, const Context& context);

// Primal, dual and gap of a solution over the rows of `order`, by one pass: all of them, to be a certificate.
Certificate certify(const Problem& problem, const Task& task, const Solution& solution, const BlockOrder& order,
                    BlockSource& blocks, std::vector<double>* dual_weights = nullptr);

}  // namespace linblock
