// The one loop over passes: it reads the blocks that a solver asks for, times and reports them, makes checkpoints and
// resumes from them. Whoever drives it calls pass() until there is none, and does what belongs between passes itself.
// It is here and not in learn because the tests of a method drive it too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "solve/core/pass.h"

namespace linblock {

class PassLoop {
 public:
  // Resumes from the checkpoint, if there is one; else makes a plan. All arguments outlive the loop.
  PassLoop(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
           const Context& context, Rows& rows);

  const Plan& plan() const { return summary_.plan; }
  const Solver& solver() const { return *solver_; }

  struct Done {
    Pass::Purpose purpose = Pass::Purpose::solve;
    std::optional<PassReport> report = {};
  };
  // Reads what the solver asks for. None: the answer is complete. Throws ErrorKind::interrupted when told to stop and
  // there is a checkpoint to resume from.
  std::optional<Done> pass();

  // All rows once more, with what was learned; those in memory are still there. A stop ends it early.
  void read_rows(const std::function<void(const Block&)>& work);
  // When the answer is complete. The solver is gone then, with its memory.
  Summary finish();

 private:
  void restore(FieldReader& from);
  void save();
  void work_on(const Pass& pass);
  void read(const Pass& pass);
  void fail_in_reading(const Pass& pass) const;
  void save_between_steps();
  PassEnd end_of(const Pass& pass) const;
  std::optional<Termination> limit(const Pass& pass) const;
  bool saved() const { return path_kind(context_.checkpoint.path) == PathKind::file; }
  ReadCosts costs() const;

  static void visit_position(auto& self, auto&& field) {
    field("pass", self.at_.pass);
    field("block", self.at_.block);
    field("rows", self.pass_rows_);
    field("solve_seconds", self.pass_solve_seconds_);
    field("costs", self.pass_costs_);
  }

  const Problem& problem_;
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;
  const Context& context_;
  Rows& rows_;
  const ReadCosts costs_of_others_;  // who had the rows before
  const Stopwatch clock_;
  Stopwatch since_saved_;
  Summary summary_;
  std::unique_ptr<Solver> solver_;
  Position at_;               // the next pass that has a number, or the one in work
  bool whole_ = true;         // all blocks of the pass were worked on
  bool has_stepped_ = false;  // since the last checkpoint there is something to save
  // Of the last pass that has a number, and of its certificate.
  uint64_t pass_rows_ = 0;
  ReadCosts pass_costs_;
  double pass_solve_seconds_ = 0;
  double certify_seconds_ = 0;
  ReadCosts certify_costs_;
};

}  // namespace linblock
