// What every solver's run has: a plan, blocks that are timed and reported, checkpoints, a certificate.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/memory.h"
#include "solve/solver.h"

namespace linblock {

// Throws ErrorKind::memory, with the numbers and remedies, when the weights do not fit.
Plan make_plan(const Problem& problem, const Method& method, const Context& context);

class Run {
 public:
  // Takes the plan of a checkpoint, if there is one, else makes it.
  Run(const Problem& problem, const SolveOptions& options, const Method& method, const Context& context);

  Plan& plan() { return summary_.plan; }
  // From now on only these chunks are asked for, and they stay in memory; none: all, as the plan has them.
  void hold(const std::vector<uint32_t>& chunks);
  Summary& summary() { return summary_; }
  const Context& context() const { return context_; }
  // To be restored from, once; then forgotten.
  std::unique_ptr<SnapshotReader> take_checkpoint() { return std::move(resumed_); }

  const std::vector<Chunk>* resident() const { return blocks_->resident(); }
  // Duals as the plan has them: in memory, or in a file beside the checkpoint.
  Duals make_duals() const;

  // Where the run stands: `block` blocks of pass `pass` are done.
  int pass = 1;
  size_t block = 0;

  // Works on the blocks of this pass that are not done, and counts them. `work` returns false where it was told to stop
  // half-way; what it did then is lost, and the last checkpoint is what remains. `save` writes a solver's own state;
  // with `save_first`, before the pass too.
  // Throws ErrorKind::interrupted when told to stop and there is a checkpoint to go on from.
  void work_on_pass(const BlockOrder& order, const std::function<bool(const Block&, size_t number)>& work,
                    const std::function<void(SnapshotWriter&)>& save, bool save_first = false);
  // The pass as it went; estimates and certificate are the solver's to fill in.
  PassReport pass_report() const;
  // Told to stop in a run without checkpoints: what there is will be the answer.
  bool stopped() const { return context_.stopped(); }
  bool out_of_time() const { return options_.max_seconds > 0 && clock_.seconds() > options_.max_seconds; }
  bool last_pass() const { return pass >= options_.max_passes || stopped() || out_of_time(); }
  // Of a run that did not converge.
  Termination limit() const;

  // By one pass over all rows, or several where v does not fit. Weights whose gap is above `mend_above` will be gone on
  // from: they are set to v, unless they have drifted from it by next to nothing. `order`: of these rows alone, where
  // they are all that is held.
  // `mean`: other weights, which become the solution's where they are better and nothing will be gone on from.
  struct Certifying {
    std::optional<double> mend_above = {};
    const BlockOrder* order = nullptr;
    std::span<const float> mean = {};
  };
  Certificate certify(const Task& task, Solution& solution) { return certify(task, solution, Certifying()); }
  Certificate certify(const Task& task, Solution& solution, const Certifying& how);
  void report(PassReport report);
  void save(const std::function<void(SnapshotWriter&)>& save);
  Summary finish(Termination termination, const Certificate& certificate);

 private:
  void certify_pass(Solution& solution, Certifier& certifier, size_t number, const BlockOrder& order,
                    std::span<const float> mean);
  void mend(Solution& solution, Certifier& certifier, const BlockOrder& rows, const Certificate& certificate);
  BlockOrder certify_order() const;
  ReadCosts costs() const;

  const Problem& problem_;
  const SolveOptions& options_;
  const Context& context_;
  Stopwatch clock_;
  std::unique_ptr<SnapshotReader> resumed_;
  Summary summary_;
  std::unique_ptr<BlockSource> blocks_;
  ReadCosts earlier_costs_;  // of what was read before hold()
  Stopwatch since_saved_;
  ReadCosts pass_costs_;
  double pass_solve_seconds_ = 0;
  uint64_t pass_rows_ = 0;
  double last_certify_seconds_ = 0;
  ReadCosts last_certify_costs_;
};

}  // namespace linblock
