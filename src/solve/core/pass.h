// A method at work: a solver is asked for one pass after another and calls nobody. Reading, timing, checkpoints and
// reports belong to the loop that asks (pass_loop).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "solve/core/solver.h"

namespace linblock {

// Seconds that a block may still take when told to stop.
inline constexpr double kStopSeconds = 0.5;

// What a solver wants to read: the blocks of `order`, one after another. If there are none, it is called once, with an
// empty block.
struct Pass {
  enum class Purpose {
    solve,    // blocks are reported, and checkpoints made between them
    step,     // one step of a method that reads for itself
    certify,  // a reading at fixed weights; it belongs to the pass before it and has no number of its own
    look,     // a reading that counts as a pass
  };
  Purpose purpose = Purpose::solve;
  BlockOrder order = {};
  std::optional<Rows::As> rows = {};  // none: as the plan holds them
  uint64_t window_bytes = 0;          // of a stream, meanwhile; 0: as usual
  bool save_first = false;            // a checkpoint before the first block
  // Of a reading: what for, and how many are done of those that have this purpose.
  std::string_view words = {};
  double done = 0;
  double readings = 1;

  bool has_number() const { return purpose != Purpose::certify; }
};

// `block` blocks of pass `pass` are done.
struct Position {
  int pass = 1;
  size_t block = 0;
};

// How a pass went.
struct PassEnd {
  int pass = 0;                           // its number, or that of the pass it belongs to
  bool whole = true;                      // false: told to stop after a part of the blocks
  std::optional<Termination> limit = {};  // why no other pass will follow
};

// v = sum of alpha y x of a task, from feature `begin` on.
struct PartOfV {
  size_t task = 0;
  size_t begin = 0;
  std::span<const double> v = {};
};

class Solver {
 public:
  virtual ~Solver() = default;

  // None: the answer is complete. Asked again after a restore, it gives the same pass; `at.block` blocks of it are
  // done.
  virtual std::optional<Pass> next(const Position& at) = 0;
  // False: told to stop half-way. What it did then is lost, and the last checkpoint is what remains.
  virtual bool work(const Block& block, size_t number) = 0;
  // A report, if this was the end of a pass with all of its certificates. The loop fills in what it has measured.
  virtual std::optional<PassReport> end_pass(const PassEnd& end) = 0;

  // The weights that would be the answer now, one per task.
  virtual std::vector<std::span<const float>> weights() const = 0;
  // What the last certificate's pass has made of v.
  virtual std::vector<PartOfV> v() const { return {}; }
  // Of a method that reads for itself.
  virtual ReadCosts own_costs() const { return {}; }
  // Told to stop, the end of the last pass was not worked out: what would follow is not what would have followed.
  virtual bool cut_short() const { return false; }
  // What is known of the answer: why it is one, and its certificates.
  virtual void finish(Summary& summary) = 0;

  virtual void save(FieldWriter& to) const = 0;
  virtual void restore(FieldReader& from, const Position& at) = 0;
};

// What a solver works with. All of it outlives the solver.
struct Setup {
  const Problem& problem;
  const SolveOptions& options;
  std::vector<Solution>& solutions;
  const Context& context;
  Plan& plan;
  const std::vector<Chunk>* resident;  // every chunk by its number, once loaded; null if rows are read in each pass
};

// In memory, or in a file beside the checkpoint, one per task.
Duals make_duals(const Store& store, bool in_file, const Checkpoint& checkpoint, size_t task);
Duals make_duals(const Setup& setup, size_t task);

// A block's work for each of so many tasks, shared out among the threads. False: told to stop half-way.
bool for_each_task(const Context& context, size_t count, const std::function<bool(size_t number)>& work);

// One per task.
std::vector<std::span<const float>> weights_of(const std::vector<Solution>& solutions);

}  // namespace linblock
