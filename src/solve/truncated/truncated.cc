// Truncated losses: a row of a large loss, wrong beyond repair or wrongly labelled, counts as 1 + s and no more.
//
// Problem:  for each task, min over w  1/2 |w|^2 + sum of C_i min(loss(y_i w.x_i), 1 + s)                  (2)
// Update:   w^{t+1} = argmin over w  1/2 |w|^2 + sum over IN(w^t) of C_i loss(y_i w.x_i)                   (5)
//           where IN(w) are the rows whose loss at w is at most 1 + s, and the others, OUT(w), are left out as held-out
//           rows are. Outliers' losses are constants, at least as large as what (2) counts for them, so (2) falls with
//           (5). Any solver of convex problems does this step, warm from the last one: rows that become outliers take
//           their alpha y x out of w.
// Paper:    Yen, Chang, Lin, Lin, Lin, "Indexed block coordinate descent for large-scale linear classification with
//           limited memory" (KDD 2013): section 2.
// Reads:    what the convex solver reads, and the whole store once for each step, to find OUT(w^t) and (2).
//
// Convex solutions are inexact, so a step is accepted only where (5) fell; else it is solved more exactly. (2) is not
// convex: what is certified is the last convex problem, and another start may end elsewhere.
#include "solve/truncated/truncated.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "solve/core/chunk_sums.h"
#include "solve/core/pass.h"
#include "solve/solve.h"
#include "solve/truncated/outliers.h"

namespace linblock {

namespace {

constexpr size_t kChunksPerBlock = 8;  // of a reading, where the memory allows
// A fall by less than this part of the tolerance ends the work: the gap of the convex problem is as large as the
// tolerance itself, so such a step can be its inexactness and nothing else. Once convex problems are solved that much
// more exactly, it is not.
constexpr double kExact = 0.1;
constexpr double kStart = 0.1;            // the gap of the first convex problem
constexpr double kLeastTolerance = 1e-6;  // weights are floats: no gap much below is ever certified

class Outer {
 public:
  Outer(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions, const Context& context)
      : problem_(problem),
        convex_([&] {
          Problem convex = problem;
          convex.truncate.reset();
          return convex;
        }()),
        options_(options),
        solutions_(solutions),
        context_(context),
        rows_(context.handed_on != nullptr ? *context.handed_on : own_rows_),
        tasks_(problem.tasks.size()) {
    for (One& task : tasks_) task.known = task.found = RowSet(problem.store->info().next_row_id);
    summary_.plan = make_plan(problem, options, context);
    context.on_plan(summary_.plan);
  }

  Summary solve() {
    if (!restore()) {
      begin();
      if (begun_ > 0) solve_convex();
      read();
    } else if (reading_due_) {
      read();
    }
    while (!in_work().empty() && limit_ == Termination::converged) {
      solve_convex();
      read();
    }
    return finish();
  }

 private:
  struct One {
    RowSet known;                 // OUT(w^t): what the convex problem leaves out
    RowSet found;                 // OUT of the weights that a reading looks at
    std::vector<float> accepted;  // w^t
    TruncatedResult result;       // at w^t
    double convex = 0;            // (5) at w^t, without what outliers count
    double convex_rounding = 0;
    Certificate certificate;  // of the last convex problem
    uint64_t support_vectors = 0;
    bool exact = false;    // convex problems are solved more exactly than asked for
    bool stalled = false;  // the last of them
    bool done = false;

    static void visit_fields(auto& self, auto&& field) {
      field("outliers", self.known);
      field("accepted", self.accepted);
      field("result", self.result);
      field("convex", self.convex);
      field("convex_rounding", self.convex_rounding);
      field("certificate", self.certificate);
      field("support_vectors", self.support_vectors);
      field("exact", self.exact);
      field("stalled", self.stalled);
      field("done", self.done);
    }
  };

  bool is_dual() const { return abilities_of(options_.method).start == Start::duals; }

  std::vector<size_t> in_work() const {
    std::vector<size_t> found;
    for (size_t i = 0; i < tasks_.size(); ++i)
      if (!tasks_[i].done) found.push_back(i);
    return found;
  }

  // The convex problem of these tasks.
  Problem problem_of(const std::vector<size_t>& those) const {
    Problem part = convex_;
    part.tasks.clear();
    for (const size_t i : those) {
      part.tasks.push_back(convex_.tasks[i]);
      part.tasks.back().held_out.also = &tasks_[i].known;
    }
    return part;
  }

  Context inner_context() const {
    Context inner = context_;
    inner.reserved_bytes += truncated_bytes(problem_);
    inner.on_plan = [](const Plan&) {};
    inner.on_answer = {};
    inner.on_v = {};
    inner.handed_on = &rows_;
    if (inner.checkpoint.wanted()) {
      inner.checkpoint.path += ".convex";
      inner.checkpoint.identity += fmt::format("convex problem: {}\n", solved_);
    }
    return inner;
  }

  // From what the caller gave, or from the convex problem with all rows, about solved. (The paper begins with the
  // convex solution of a small sample: rows of a kind that the sample has none of are outliers then, for ever.)
  void begin() {
    const bool given = std::any_of(solutions_.begin(), solutions_.end(), [&](const Solution& one) {
      return is_dual() ? !one.duals.empty() : !one.weights.empty();
    });
    begun_ = given ? 0 : 1;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Solution& solution = solutions_[i];
      solution.weights.resize(problem_.weights(), 0.0F);
      if (is_dual() && solution.duals.empty())
        solution.duals = make_duals(*problem_.store, summary_.plan.duals_in_file, context_.checkpoint, i);
    }
  }

  void solve_convex() {
    const std::vector<size_t> those = in_work();
    const Problem problem = problem_of(those);
    SolveOptions options = options_;
    options.new_chunks.clear();
    for (const size_t i : those) options.tolerance = std::min(options.tolerance, tolerance_of(tasks_[i]));
    if (solved_ < begun_) options.tolerance = std::max(options.tolerance, kStart);
    options.max_passes = std::max(1, options_.max_passes - passes_);
    if (options_.max_seconds > 0) options.max_seconds = std::max(1e-3, options_.max_seconds - clock_.seconds());
    std::vector<Solution> solutions;
    solutions.reserve(those.size());
    for (const size_t i : those) solutions.push_back(std::move(solutions_[i]));
    Context inner = inner_context();
    forget_other_checkpoint(inner.checkpoint);
    const double began = clock_.seconds();
    inner.on_block = [&](BlockReport report) {
      report.pass += passes_;
      report.seconds += began;
      swap_weights(those, solutions);
      context_.on_block(report);
      swap_weights(those, solutions);
    };
    inner.observer = [&](PassReport report) { pass_on(those, solutions, report); };
    const Summary part = linblock::solve(problem, options, solutions, inner);
    ++solved_;
    passes_ += part.passes;
    summary_.costs += part.costs;
    summary_.solve_seconds += part.solve_seconds;
    summary_.certify_seconds += part.certify_seconds;
    summary_.column_steps += part.column_steps;
    for (size_t k = 0; k < those.size(); ++k) {
      solutions_[those[k]] = std::move(solutions[k]);
      tasks_[those[k]].certificate = part.certificates[k];
      tasks_[those[k]].stalled = part.termination == Termination::stalled;
    }
    if (part.termination != Termination::stalled) limit_ = part.termination;
    reading_due_ = true;
    save();
    if (inner.checkpoint.wanted() && path_kind(inner.checkpoint.path) == PathKind::file)
      remove_file(inner.checkpoint.path);
  }

  double tolerance_of(const One& task) const {
    return task.exact ? std::max(kExact * options_.tolerance, std::min(options_.tolerance, kLeastTolerance))
                      : options_.tolerance;
  }

  // A pass of the convex solver, as one of the whole: with all tasks, and everything counted from the beginning.
  void pass_on(const std::vector<size_t>& those, std::vector<Solution>& solutions, PassReport report) {
    report.pass += passes_;
    report.seconds = clock_.seconds();
    report.bytes_read += summary_.costs.bytes;
    for (const One& task : tasks_)
      if (task.done) report.add_task(task.certificate.primal, task.certificate.dual);
    swap_weights(those, solutions);
    report.solutions = &solutions_;
    context_.observer(report);
    swap_weights(those, solutions);
  }
  // The convex solver's weights to where the caller looks for them, and back.
  void swap_weights(const std::vector<size_t>& those, std::vector<Solution>& solutions) {
    for (size_t k = 0; k < those.size(); ++k) std::swap(solutions_[those[k]].weights, solutions[k].weights);
  }

  // One reading at the weights as they are: outliers and objectives, and from them what becomes of each task.
  void read() {
    const std::vector<size_t> those = in_work();
    const Stopwatch working;
    std::vector<std::vector<float>> going_on(those.size());
    std::vector<OutlierReading> readings;
    readings.reserve(those.size());
    for (size_t k = 0; k < those.size(); ++k) {
      Solution& solution = solutions_[those[k]];
      One& task = tasks_[those[k]];
      if (is_dual())
        going_on[k] = solution.weights_of_duals.empty() ? solution.weights : std::move(solution.weights_of_duals);
      solution.weights_of_duals = {};
      readings.emplace_back(problem_, problem_.tasks[those[k]], task.known, task.found);
      readings.back().begin(solution, going_on[k]);
    }
    const ReadCosts costs = for_each_block("to find outliers", true, [&](const Block& block) {
      for_each_on_threads(context_.threads, those.size(), [&](size_t k) { look_at(block, those[k], readings[k]); });
    });
    for (const size_t i : those)
      if (solutions_[i].duals.in_file()) solutions_[i].duals.set_base_version(solutions_[i].duals.version(0));
    reading_due_ = false;
    ++passes_;
    const Termination end = limit();
    for (size_t k = 0; k < those.size(); ++k) decide(those[k], readings[k], end != Termination::converged, going_on[k]);
    if (!in_work().empty()) limit_ = end;
    if (!in_work().empty() && limit_ == Termination::converged) save();
    report(costs, working.seconds());
  }

  // Why there is no further step, whatever this one was; converged: there may be.
  Termination limit() const {
    if (limit_ != Termination::converged || solved_ == begun_) return limit_;  // at least one step
    if (passes_ >= options_.max_passes) return Termination::pass_limit;
    const bool out_of_time = options_.max_seconds > 0 && clock_.seconds() > options_.max_seconds;
    return out_of_time ? Termination::time_limit : Termination::converged;
  }

  void look_at(const Block& block, size_t i, OutlierReading& reading) {
    Duals& duals = solutions_[i].duals;
    if (!duals.empty()) duals.fetch(block.numbers);
    for (size_t c = 0; c < block.chunks.size(); ++c) reading.add(*block.chunks[c], block.numbers[c]);
    if (!duals.in_file()) return;
    for (const uint32_t& chunk : block.numbers) duals.put_back({&chunk, 1}, duals.version(chunk) + 1);
  }

  // `last`: there will be no further step.
  void decide(size_t i, const OutlierReading& reading, bool last, std::vector<float>& going_on) {
    One& task = tasks_[i];
    Solution& solution = solutions_[i];
    const bool first = solved_ == begun_;
    const double fall = task.result.objective - reading.objective();
    const bool accepted = first || (reading.convex_before() < task.convex && fall >= 0);
    // No solution of the convex problem is better than its dual.
    const double still_possible = task.convex - task.certificate.dual;
    const double little = kExact * options_.tolerance * (first ? 0 : task.result.objective);
    task.support_vectors = reading.support_vectors();
    if (accepted) {
      task.result = {reading.objective(), reading.outliers(), task.result.outer_steps + (first ? 0 : 1)};
      task.convex = reading.convex_now();
      task.convex_rounding = reading.convex_rounding();
      task.accepted = solution.weights;
      if (reading.changed()) std::swap(task.known, task.found);
    } else {
      // As good as w^{t+1} for the same convex problem, and better.
      task.certificate = {task.convex, task.certificate.dual - task.convex_rounding};
    }
    if (!first) {
      const bool settled = (accepted && !reading.changed()) || still_possible <= little;
      const bool small = !accepted || fall <= little;
      task.done = settled || (small && (task.exact || tolerance_of(task) <= kLeastTolerance));
      if (small) task.exact = true;
    }
    if (task.done || last) {
      if (going_on != task.accepted) solution.weights_of_duals = std::move(going_on);
      solution.weights = task.accepted;
      return;
    }
    if (is_dual()) solution.weights = std::move(going_on);
    if (!is_dual() && !accepted) solution.weights = task.accepted;
  }

  void report(const ReadCosts& costs, double seconds) {
    PassReport report{.pass = passes_,
                      .rows = problem_.store->info().physical_rows(),
                      .tasks_left = in_work().size(),
                      .costs = costs,
                      .solve_seconds = seconds - costs.wait_seconds};
    report.truncated.emplace();
    for (const One& task : tasks_) {
      report.add_task(task.convex, task.certificate.dual);
      report.truncated->objective += task.result.objective;
      report.truncated->outliers += task.result.outliers;
      report.truncated->outer_steps = std::max(report.truncated->outer_steps, task.result.outer_steps);
    }
    report.seconds = clock_.seconds();
    report.bytes_read = summary_.costs.bytes;
    for (size_t i = 0; i < tasks_.size(); ++i) std::swap(solutions_[i].weights, tasks_[i].accepted);
    report.solutions = &solutions_;
    context_.observer(report);
    for (size_t i = 0; i < tasks_.size(); ++i) std::swap(solutions_[i].weights, tasks_[i].accepted);
  }

  // All rows, from memory where the convex solver keeps them there.
  template <typename Work>
  ReadCosts for_each_block(std::string_view purpose, bool to_the_end, const Work& work) {
    const std::vector<size_t> those = in_work();
    const Problem part = those.empty() ? convex_ : problem_of(those);
    const Plan plan = make_plan(part, options_, inner_context());
    const RowsHeld held = plan.columns ? RowsHeld::streamed : plan.rows;
    const ChunkSums chunks(*problem_.store);
    // Where columns were worked on, nothing of them is in memory now: a few chunks of rows have room.
    const uint64_t window = plan.columns ? std::max(plan.window_bytes, chunks.least()) : plan.window_bytes;
    rows_.hold({.store = problem_.store,
                .held = held,
                .window_bytes = window,
                .threads = context_.threads,
                .decode_blocks = part.tasks.size() > 1});
    const BlockOrder order =
        BlockOrder::all(*problem_.store,
                        held == RowsHeld::streamed
                            ? std::clamp<size_t>(window / 2 / std::max<uint64_t>(1, chunks.largest), 1, kChunksPerBlock)
                            : kChunksPerBlock);
    const ReadCosts before = rows_.costs();
    rows_.for_each(order, [&](const Block& block, size_t number) {
      work(block);
      context_.on_reading(purpose, static_cast<double>(number + 1) / static_cast<double>(order.ends.size()));
      if (context_.stopped() && context_.checkpoint.wanted())
        fail(
            ErrorKind::interrupted, "interrupted in a reading {}: the same command {}", purpose,
            path_kind(context_.checkpoint.path) == PathKind::file ? "goes on from the last checkpoint" : "begins anew");
      return to_the_end || !context_.stopped();
    });
    const ReadCosts costs = rows_.costs() - before;
    summary_.costs += costs;
    if (rows_.resident() == nullptr) rows_.release();
    return costs;
  }

  // Of an earlier convex problem, which is solved, or of another run.
  static void forget_other_checkpoint(const Checkpoint& checkpoint) {
    if (!checkpoint.wanted() || path_kind(checkpoint.path) != PathKind::file) return;
    if (SnapshotReader(checkpoint.path).take_text("identity") != checkpoint.identity) remove_file(checkpoint.path);
  }

  static void visit_progress(auto& self, auto&& field) {
    field("reading_due", self.reading_due_);
    field("solved", self.solved_);
    field("passes", self.passes_);
    field("begun", self.begun_);
    field("column_steps", self.summary_.column_steps);
  }

  void save() const {
    if (!context_.checkpoint.wanted()) return;
    for (const Solution& solution : solutions_) solution.duals.sync();
    SnapshotWriter file(context_.checkpoint.path);
    FieldWriter to(file);
    to("identity", context_.checkpoint.identity);
    to("plan", summary_.plan);
    visit_progress(*this, to.inside("outer"));
    for (size_t i = 0; i < tasks_.size(); ++i) {
      to(numbered("task", i), tasks_[i]);
      save_solution(solutions_[i], to.inside(numbered("solution", i)));
    }
    file.commit();
  }

  void save_solution(const Solution& solution, FieldWriter to) const {
    to("weights", solution.weights);
    to("weights_of_duals", solution.weights_of_duals);
    if (!is_dual()) return;
    if (solution.duals.in_file())
      to("duals_version", solution.duals.version(0));
    else
      to("duals", solution.duals.all());
  }

  // False: there is nothing to go on from.
  bool restore() {
    const std::string& path = context_.checkpoint.path;
    if (!context_.checkpoint.wanted() || path_kind(path) != PathKind::file) return false;
    FieldReader from(path);
    from.take<std::string>("identity");  // which the caller has compared
    from("plan", summary_.plan);
    FieldReader outer = from.inside("outer");
    visit_progress(*this, outer);
    if (solved_ < 0) outer.refuse_value("solved");
    if (passes_ < 0) outer.refuse_value("passes");
    if (begun_ < 0 || begun_ > solved_) outer.refuse_value("begun");
    for (size_t i = 0; i < tasks_.size(); ++i) {
      from(numbered("task", i), tasks_[i]);
      if (tasks_[i].certificate.contradicts_itself()) from.refuse("contradicts itself");
      if (!is_none_or_whole(tasks_[i].accepted)) from.refuse_value(numbered("task", i) + ".accepted");
      restore_solution(i, from.inside(numbered("solution", i)));
    }
    from.finish();
    return true;
  }

  bool is_none_or_whole(const std::vector<float>& weights) const {
    return weights.empty() || weights.size() == problem_.weights();
  }

  void restore_solution(size_t task, FieldReader from) {
    Solution& solution = solutions_[task];
    solution.weights.resize(problem_.weights());
    from("weights", std::span(solution.weights));
    from("weights_of_duals", solution.weights_of_duals);
    if (!is_none_or_whole(solution.weights_of_duals)) from.refuse_value("weights_of_duals");
    if (!is_dual()) return;
    solution.duals = make_duals(*problem_.store, summary_.plan.duals_in_file, context_.checkpoint, task);
    if (!solution.duals.in_file()) {
      from("duals", solution.duals.all());
      return;
    }
    const auto version = from.take<uint32_t>("duals_version");
    for (uint32_t chunk = 0; chunk < problem_.store->chunks().size(); ++chunk)
      solution.duals.set_version(chunk, version);
    solution.duals.set_base_version(version);
  }

  Summary finish() {
    summary_.termination = limit_;
    summary_.truncate = problem_.truncate;
    summary_.passes = passes_;
    for (const One& task : tasks_) {
      summary_.certificates.push_back(task.certificate);
      summary_.truncated.push_back(task.result);
      summary_.support_vectors.push_back(task.support_vectors);
      if (limit_ == Termination::converged && task.stalled) summary_.termination = Termination::stalled;
    }
    if (context_.on_answer) for_each_block("to look at the rows with what was learned", false, context_.on_answer);
    summary_.total_seconds = clock_.seconds();
    return std::move(summary_);
  }

  const Problem& problem_;
  const Problem convex_;  // the same losses, whole
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;
  const Context& context_;
  Rows own_rows_;
  Rows& rows_;  // in memory from one convex problem to the next
  std::vector<One> tasks_;
  Summary summary_;
  const Stopwatch clock_;
  int begun_ = 0;             // convex problems before the first reading
  int solved_ = 0;            // all of them
  int passes_ = 0;            // of the convex solver, and readings
  bool reading_due_ = false;  // the last convex problem's answer has not been looked at
  Termination limit_ = Termination::converged;
};

}  // namespace

void check_truncated(const AnyMethod& method, double s) {
  if (!(s >= 0) || !std::isfinite(s))
    fail(ErrorKind::usage, "`truncate` {}: no row's loss counts as more than 1 + S, and S is a number from 0 up", s);
  if (abilities_of(method).truncates != Truncates::no) return;
  std::vector<std::string> methods;
  Methods::for_each([&]<class M>(std::type_identity<M>) {
    if (M::kAbilities.truncates != Truncates::no) methods.emplace_back(M::kName);
  });
  fail(ErrorKind::usage, {use("solver", join_words(methods)), leave_out("truncate")},
       "{} cannot truncate losses: that takes a solver that ends at the optimum of convex problems", name_of(method));
}

uint64_t truncated_bytes(const Problem& problem) {
  return problem.tasks.size() *
         (2 * RowSet::bytes(problem.store->info().next_row_id) + 2 * problem.weights() * sizeof(float));
}

Summary solve_truncated(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                        const Context& context) {
  return Outer(problem, options, solutions, context).solve();
}

}  // namespace linblock
