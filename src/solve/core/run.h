// What every solver's run has: a plan, blocks that are timed and reported, checkpoints, a certificate.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/memory.h"
#include "solve/core/pass.h"

namespace linblock {

class Run {
 public:
  // Takes the plan of a checkpoint, if there is one, else makes it. `columns`: what is read, where it is not the rows.
  Run(const Problem& problem, const SolveOptions& options, const Context& context, const Store* columns = nullptr);

  Plan& plan() { return summary_.plan; }
  const Plan& plan() const { return summary_.plan; }
  // From now on only these chunks are asked for, and they stay in memory; none: all, as the plan has them.
  void hold(const std::vector<uint32_t>& chunks);
  Summary& summary() { return summary_; }
  const Context& context() const { return context_; }
  // What a checkpoint holds of a solver's own: `restore` reads all of it. False: there is no checkpoint.
  bool restore(const std::function<void(FieldReader&)>& restore);

  const std::vector<Chunk>* resident() const { return rows_.resident(); }
  // As the plan has them.
  Duals make_duals(size_t task = 0) const;

  // Where the run stands: `block` blocks of pass `pass` are done.
  int pass = 1;
  size_t block = 0;

  // Works on the blocks of this pass that are not done, and counts them. `work` returns false where it was told to stop
  // half-way; what it did then is lost, and the last checkpoint is what remains. `save` writes a solver's own state;
  // with `save_first`, before the pass too.
  // Throws ErrorKind::interrupted when told to stop and there is a checkpoint to go on from.
  void work_on_pass(const BlockOrder& order, const std::function<bool(const Block&, size_t number)>& work,
                    const std::function<void(FieldWriter&)>& save, bool save_first = false);
  // After a step of a method that reads for itself: a checkpoint where one is due; throws as work_on_pass does.
  void end_step(const std::function<void(FieldWriter&)>& save);
  // Inside such a step: the user wants to stop and has waited long enough for the step to end. With a checkpoint that
  // is ErrorKind::interrupted. For any number of threads.
  bool gives_up(std::string_view what);
  // What such a method has read.
  void count(const ReadCosts& costs) { own_costs_ += costs; }
  // A block's work for each of so many tasks, shared out among the threads. False: told to stop half-way.
  bool for_each_task(size_t count, const std::function<bool(size_t number)>& work) const;
  // The pass as it went; estimates and certificate are the solver's to fill in.
  PassReport pass_report() const;
  // Told to stop in a run without checkpoints: what there is will be the answer.
  bool stopped() const { return context_.stopped(); }
  bool at_limit() const { return pass >= options_.max_passes || out_of_time(); }
  bool out_of_time() const { return options_.max_seconds > 0 && clock_.seconds() > options_.max_seconds; }
  bool last_pass() const { return at_limit() || stopped(); }
  // Of a method that reads for itself: told to stop, it goes on to end_step(), which saves what there is.
  bool last_step() const { return at_limit() || (stopped() && !context_.checkpoint.wanted()); }
  // Of a run that did not converge.
  Termination limit() const;

  // Weights to be certified. Those whose gap is above `mend_above` will be gone on from: they are set to v, unless they
  // have drifted from it by next to nothing. `mean`: other weights, which become the solution's where they are better
  // and nothing will be gone on from.
  struct Certifying {
    const Task* task = nullptr;
    Solution* solution = nullptr;
    std::optional<double> mend_above = {};
    std::span<const float> mean = {};
    Certificate certificate = {};  // the answer
  };
  // By one pass over all rows for as many tasks as have room for their v, or several passes where not even one has.
  // `order`: of these rows alone, where they are all that is held.
  void certify(std::span<Certifying> those, const BlockOrder* order = nullptr);
  // Reading `number` of so many at fixed weights, of all blocks in this order; a stop does not cut it short, but throws
  // ErrorKind::interrupted where there are checkpoints.
  void read_for_certificate(const BlockOrder& order, size_t number, size_t readings,
                            const std::function<void(const Block&, size_t number)>& work);
  // Every task, as it is.
  std::vector<Certificate> certify_all(std::vector<Solution>& solutions);
  void report(PassReport report);
  void save(const std::function<void(FieldWriter&)>& save);
  // `certificates`: one a task.
  Summary finish(Termination termination, std::vector<Certificate> certificates);

 private:
  // Of one class against the others, or of all classes at once.
  template <typename AnyCertifier>
  void certify_with(std::span<Certifying> those, const BlockOrder& order);
  template <typename AnyCertifier>
  void certify_pass(std::span<Certifying> those, std::vector<AnyCertifier>& certifiers, size_t number,
                    const BlockOrder& order);
  template <typename AnyCertifier>
  void settle(Certifying& one, std::vector<AnyCertifier>& certifiers, size_t which, const BlockOrder& rows);
  static void visit_position(auto& self, auto&& field) {
    field("pass", self.pass);
    field("block", self.block);
    field("rows", self.pass_rows_);
    field("solve_seconds", self.pass_solve_seconds_);
    field("costs", self.pass_costs_);
  }
  void restore_position();
  void fail_if_stopped() const;
  BlockOrder certify_order() const;
  void give_rows_of_answer();
  ReadCosts costs() const;

  const Problem& problem_;
  const SolveOptions& options_;
  const Context& context_;
  const Store* const columns_;
  Stopwatch clock_;
  std::optional<FieldReader> resumed_;
  Summary summary_;
  Rows own_rows_;
  Rows& rows_;
  ReadCosts own_costs_;        // of a method that reads for itself
  ReadCosts costs_of_others_;  // who had the rows before
  Stopwatch since_saved_;
  ReadCosts pass_costs_;
  double pass_solve_seconds_ = 0;
  uint64_t pass_rows_ = 0;
  double last_certify_seconds_ = 0;
  ReadCosts last_certify_costs_;
  double certify_passes_ = 1;  // of the certificate that is being made ...
  double certify_done_ = 0;    // ... so many are done
  std::mutex told_mutex_;
  std::optional<Stopwatch> told_to_stop_;  // since it was seen inside a step
};

}  // namespace linblock
