// A random part of the rows that fits in memory, solved there.
//
// Problem:  min over w  1/2 |w|^2 + C sum over the part of losses
// Update:   dual coordinate descent, the part in memory all the time
// Paper:    Yu, Hsieh, Chang, Lin: section 7.1 and Figure 6 (sub-sampling).
// Reads:    the part once, and the whole store once for the certificate.
//
// Rows that were left out have alpha 0, which is feasible: the answer is certified for the WHOLE problem, and the gap
// says what leaving them out has cost.
#include "solve/baselines/subsample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "solve/core/certify.h"
#include "solve/core/row_plan.h"
#include "solve/dual/dual_descent.h"

namespace linblock {

namespace {

constexpr double kSampleTolerance = 1e-3;  // of its own best: more exact than what leaving rows out costs

// Whole chunks: packing has put random rows in each.
std::vector<uint32_t> draw_part(const Store& store, double share, uint64_t bytes, uint64_t seed) {
  std::vector<uint32_t> chunks(store.chunks().size());
  std::iota(chunks.begin(), chunks.end(), 0U);
  Random random(seed, chunks.size());
  for (size_t i = chunks.size(); i > 1; --i) std::swap(chunks[i - 1], chunks[random.below(i)]);
  const auto most =
      share > 0 ? static_cast<size_t>(std::ceil(share * static_cast<double>(chunks.size()))) : chunks.size();
  uint64_t held = 0;
  size_t count = 0;
  for (; count < std::min(most, chunks.size()); ++count) {
    held += store.chunks()[chunks[count]].memory_bytes(true);
    if (held > bytes && count > 0) break;
  }
  chunks.resize(count);
  return chunks;
}

class SubsampleSolver : public Solver {
 public:
  SubsampleSolver(const Setup& setup, double share) : setup_(setup), certify_(setup) {
    const Plan& plan = setup.plan;
    // Where rows are streamed, the certificate's sums come out of the window.
    const uint64_t room = plan.window_bytes - (plan.rows == RowsHeld::streamed ? plan.certify_bytes : 0);
    order_.chunks = draw_part(*setup.problem.store, share, room, setup.options.seed);
    // The duals of a block are in memory together: where they come from a file, of as many chunks as the plan has.
    const auto per_block =
        plan.duals_in_file ? static_cast<uint32_t>(plan.chunks_per_block) : Subsample::kChunksPerBlock;
    for (uint32_t end = per_block; end < order_.chunks.size(); end += per_block) order_.ends.push_back(end);
    order_.ends.push_back(static_cast<uint32_t>(order_.chunks.size()));
    uint64_t rows = 0;
    for (const uint32_t chunk : order_.chunks) rows += setup.problem.store->chunks()[chunk].rows;
    rows_per_row_ = static_cast<double>(setup.problem.store->info().physical_rows()) / static_cast<double>(rows);
    for (size_t i = 0; i < setup.problem.tasks.size(); ++i) {
      Solution& solution = setup.solutions[i];
      if (solution.duals.empty()) solution.duals = make_duals(setup, i);
      tasks_.emplace_back(setup.problem, setup.problem.tasks[i], setup.options.seed, solution, setup.context.stop);
      tasks_.back().use_shrinking();
    }
  }

  std::optional<Pass> next(const Position& at) override {
    if (certify_.in_work()) {
      Pass pass = certify_.next();
      pass.rows = limit_ ? all_rows() : part();
      return pass;
    }
    certify_.clear();
    if (limit_) return std::nullopt;
    for (DualDescent& descent : tasks_) descent.begin_pass(at.pass);
    return Pass{.order = order_, .rows = part(), .save_first = setup_.plan.duals_in_file};
  }

  bool work(const Block& block, size_t number) override {
    if (certify_.in_work()) {
      certify_.work(block);
      return true;
    }
    return for_each_task(setup_.context, tasks_.size(),
                         [&](size_t i) { return tasks_[i].solve_block(block, number, {}); });
  }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    if (certify_.in_work()) {
      certify_.end_pass();
      if (!certify_.in_work() && !limit_ && is_sample_solved()) certify_whole(Termination::ended);
      return std::nullopt;
    }
    PassReport report;
    double gap_of_part = 0;
    for (const DualDescent& descent : tasks_) {
      const double w2 = descent.squared_weights();
      const double dual = descent.dual_values() - 0.5 * w2;
      gap_of_part = std::max(gap_of_part, relative_gap(0.5 * w2 + descent.losses(), dual));
      report.add_task(0.5 * w2 + rows_per_row_ * descent.losses(), dual);
    }
    report.tasks_left = tasks_.size();
    if (end.limit)
      certify_whole(*end.limit);
    else if (gap_of_part <= sample_tolerance())
      certify_part();
    return report;
  }

  std::vector<std::span<const float>> weights() const override { return weights_of(setup_.solutions); }
  std::vector<PartOfV> v() const override { return certify_.v(); }

  void finish(Summary& summary) override {
    summary.certificates = certify_.certificates();
    const bool converged =
        std::all_of(summary.certificates.begin(), summary.certificates.end(),
                    [&](const Certificate& certificate) { return certificate.gap() <= setup_.options.tolerance; });
    summary.termination = converged ? Termination::converged : *limit_;
  }

  void save(FieldWriter& to) const override {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      FieldWriter fields = to.inside(numbered("task", i));
      tasks_[i].save(fields);
    }
  }
  void restore(FieldReader& from, const Position& at) override {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      FieldReader fields = from.inside(numbered("task", i));
      tasks_[i].restore(fields, order_, at.block);
    }
  }

 private:
  double sample_tolerance() const { return std::min(kSampleTolerance, setup_.options.tolerance); }

  // Estimates leave out rows that rest, so they only say when a look at all of the part is worth it.
  void certify_part() {
    std::vector<Certify::Job> jobs;
    for (size_t i = 0; i < tasks_.size(); ++i)
      jobs.push_back(
          {.task = &setup_.problem.tasks[i], .solution = &setup_.solutions[i], .replace_above = sample_tolerance()});
    certify_.begin(std::move(jobs), order_);
  }
  bool is_sample_solved() const {
    return std::all_of(certify_.jobs().begin(), certify_.jobs().end(),
                       [&](const auto& job) { return job.certificate.gap() <= sample_tolerance(); });
  }
  void certify_whole(Termination why) {
    limit_ = why;
    certify_.begin_all();
  }

  Rows::As rows(RowsHeld held, const std::vector<uint32_t>& only) const {
    return {.store = setup_.problem.store,
            .held = held,
            .window_bytes = setup_.plan.window_bytes,
            .team = setup_.context.team,
            .only = only};
  }
  Rows::As part() const { return rows(RowsHeld::decoded, order_.chunks); }
  Rows::As all_rows() const { return rows(setup_.plan.rows, {}); }

  const Setup setup_;
  BlockOrder order_;         // of the part
  double rows_per_row_ = 1;  // of the store, for each row of the part: estimates are of the whole objective
  Certify certify_;
  std::vector<DualDescent> tasks_;
  std::optional<Termination> limit_;  // why the part is not worked on any longer
};

}  // namespace

// It certifies with its window full.
Plan Subsample::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_rows({.weights = problem.weights(),
                    .bytes_per_row = Duals::kBytesPerRow,
                    .may_be_filed = true,
                    .v_bytes = problem.weights() * sizeof(double),
                    .blocks = Blocks::part,
                    .part_chunks = kChunksPerBlock},
                   problem, options, context);
}

std::unique_ptr<Solver> Subsample::make(const Setup& setup) const {
  return std::make_unique<SubsampleSolver>(setup, share.value_or(0));
}

}  // namespace linblock
