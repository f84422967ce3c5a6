// Truncated losses: a row of a large loss, wrong beyond repair or wrongly labeled, counts as 1 + s and no more.
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
#include "solve/core/certify.h"
#include "solve/core/chunk_sums.h"
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

// A solver around a solver: when the convex problem is solved, all rows are read for outliers.
class TruncatedSolver : public Solver {
 public:
  TruncatedSolver(const Setup& setup, Rows& rows)
      : setup_(setup),
        problem_(setup.problem),
        options_(setup.options),
        solutions_(setup.solutions),
        rows_(rows),
        convex_problem_([&] {
          Problem convex = setup.problem;
          convex.truncate.reset();
          return convex;
        }()),
        tasks_(setup.problem.tasks.size()) {
    for (TruncatedTask& task : tasks_) task.known = task.outliers_now = RowSet(problem_.store->info().next_row_id);
  }

  std::optional<Pass> next(const Position& at) override {
    if (!begun_) begin();
    if (!convex_ && !reading_due_) {
      if (in_work().empty() || limit_ != Termination::converged) return std::nullopt;
      passes_ = at.pass - 1;
      begin_convex();
    }
    if (convex_) {
      if (std::optional<Pass> pass = convex_->solver->next(within(at))) {
        // What the reading before it has found.
        pass->save_first = pass->save_first || (passes_ > 0 && at.pass == passes_ + 1);
        return pass;
      }
      end_convex();
    }
    return look();
  }

  bool work(const Block& block, size_t number) override {
    if (convex_) return convex_->solver->work(block, number);
    if (readings_.empty()) begin_readings();
    setup_.context.team.for_each(readings_.size(), [&](size_t k) { scan(block, looked_at_[k], readings_[k]); });
    return true;
  }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    if (!convex_) return end_readings(end);
    PassEnd convex_end = end;
    convex_end.pass -= passes_;
    std::optional<PassReport> report = convex_->solver->end_pass(convex_end);
    // As a pass of the whole, with all tasks.
    for (const TruncatedTask& task : tasks_)
      if (report && task.done) report->add_task(task.certificate.primal, task.certificate.dual);
    return report;
  }

  // Those of the convex problem while it is solved; after a reading, the best so far.
  std::vector<std::span<const float>> weights() const override {
    std::vector<std::span<const float>> weights;
    for (const TruncatedTask& task : tasks_) weights.emplace_back(task.accepted);
    if (!convex_) return weights;
    const auto convex_weights = convex_->solver->weights();
    for (size_t k = 0; k < convex_weights.size(); ++k) weights[convex_->tasks[k]] = convex_weights[k];
    return weights;
  }

  bool cut_short() const override { return convex_ && convex_->solver->cut_short(); }

  void finish(Summary& summary) override {
    summary.termination = limit_;
    summary.truncate = problem_.truncate;
    summary.column_steps = column_steps_;
    summary.certificates_made = certificates_made_;
    for (const TruncatedTask& task : tasks_) {
      summary.certificates.push_back(task.certificate);
      summary.truncated.push_back(task.result);
      summary.support_vectors.push_back(task.support_vectors);
      if (limit_ == Termination::converged && task.stalled) summary.termination = Termination::stalled;
    }
  }

  void save(FieldWriter& to) const override {
    visit_progress(*this, to.inside("outer"));
    to("outer.solving", convex_ != nullptr);
    for (size_t i = 0; i < tasks_.size(); ++i) to(numbered("task", i), tasks_[i]);
    for (size_t i = 0; i < tasks_.size(); ++i)
      if (!convex_ || tasks_[i].done) save_solution(solutions_[i], to.inside(numbered("solution", i)));
    if (!convex_) return;
    FieldWriter fields = to.inside("convex");
    fields("plan", convex_->plan);
    convex_->solver->save(fields);
  }

  void restore(FieldReader& from, const Position& at) override {
    FieldReader outer = from.inside("outer");
    visit_progress(*this, outer);
    const bool solving = from.take<bool>("outer.solving");
    if (solved_ < 0) outer.refuse_value("solved");
    if (passes_ < 0 || passes_ >= at.pass) outer.refuse_value("passes");
    if (!begun_ || *begun_ < 0 || *begun_ > solved_ + (solving ? 1 : 0)) outer.refuse_value("begun");
    for (size_t i = 0; i < tasks_.size(); ++i) {
      from(numbered("task", i), tasks_[i]);
      if (tasks_[i].certificate.contradicts_itself()) from.refuse("contradicts itself");
      if (!is_none_or_whole(tasks_[i].accepted)) from.refuse_value(numbered("task", i) + ".accepted");
      if (is_dual()) solutions_[i].duals = make_duals(setup_, i);
      if (!solving || tasks_[i].done) restore_solution(i, from.inside(numbered("solution", i)));
    }
    if (!solving) return;
    if (in_work().empty() || reading_due_) from.refuse("contradicts itself");
    FieldReader fields = from.inside("convex");
    begin_convex(fields.take<Plan>("plan"));
    convex_->solver->restore(fields, within(at));
  }

 private:
  struct TruncatedTask {
    RowSet known;                 // OUT(w^t): what the convex problem leaves out
    RowSet outliers_now;          // OUT of the weights that a reading looks at
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

  // A convex problem, and all that its solver refers to.
  struct Convex {
    std::vector<size_t> tasks;  // their numbers
    Problem problem;
    SolveOptions options;
    Context context;
    std::vector<Solution> solutions;
    Plan plan;
    std::unique_ptr<Solver> solver;
  };

  bool is_dual() const { return abilities_of(options_.method).start == Start::duals; }

  // In the passes of the convex problem.
  Position within(const Position& at) const { return {.pass = at.pass - passes_, .block = at.block}; }

  std::vector<size_t> in_work() const {
    std::vector<size_t> numbers;
    for (size_t i = 0; i < tasks_.size(); ++i)
      if (!tasks_[i].done) numbers.push_back(i);
    return numbers;
  }

  // The convex problem of these tasks.
  Problem problem_of(const std::vector<size_t>& tasks) const {
    Problem part = convex_problem_;
    part.tasks.clear();
    for (const size_t i : tasks) {
      part.tasks.push_back(convex_problem_.tasks[i]);
      part.tasks.back().held_out.outliers = &tasks_[i].known;
    }
    return part;
  }

  Context inner_context() const {
    Context inner = setup_.context;
    inner.reserved_bytes += truncated_bytes(problem_);
    inner.rows_at_end = false;
    return inner;
  }

  // From what the caller gave, or from the convex problem with all rows, about solved. (The paper begins with the
  // convex solution of a small sample: rows of a kind that the sample has none of are outliers then, for ever.)
  void begin() {
    const bool given = std::any_of(solutions_.begin(), solutions_.end(), [&](const Solution& solution) {
      return is_dual() ? !solution.duals.empty() : !solution.weights.empty();
    });
    begun_ = given ? 0 : 1;
    reading_due_ = given;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Solution& solution = solutions_[i];
      solution.weights.resize(problem_.weights(), 0.0F);
      if (is_dual() && solution.duals.empty()) solution.duals = make_duals(setup_, i);
    }
  }

  // `plan`: of a checkpoint.
  void begin_convex(std::optional<Plan> plan = {}) {
    convex_ = std::make_unique<Convex>();
    Convex& convex = *convex_;
    convex.tasks = in_work();
    convex.problem = problem_of(convex.tasks);
    convex.options = options_;
    convex.options.new_chunks.clear();
    for (const size_t i : convex.tasks)
      convex.options.tolerance = std::min(convex.options.tolerance, tolerance_of(tasks_[i]));
    if (solved_ < *begun_) convex.options.tolerance = std::max(convex.options.tolerance, kStart);
    convex.context = inner_context();
    convex.solutions.reserve(convex.tasks.size());
    for (const size_t i : convex.tasks) convex.solutions.push_back(std::move(solutions_[i]));
    convex.plan = plan ? std::move(*plan) : make_plan(convex.problem, convex.options, convex.context);
    convex.solver = make_solver(convex.problem, convex.options, convex.solutions, convex.context, convex.plan, rows_);
  }

  void end_convex() {
    Summary part;
    convex_->solver->finish(part);
    check_certificates(part);
    ++solved_;
    column_steps_ += part.column_steps;
    certificates_made_ += part.certificates_made;
    for (size_t k = 0; k < convex_->tasks.size(); ++k) {
      const size_t i = convex_->tasks[k];
      solutions_[i] = std::move(convex_->solutions[k]);
      tasks_[i].certificate = part.certificates[k];
      tasks_[i].stalled = part.termination == Termination::stalled;
    }
    if (part.termination != Termination::stalled) limit_ = part.termination;
    reading_due_ = true;
    convex_.reset();
  }

  double tolerance_of(const TruncatedTask& task) const {
    return task.exact ? std::max(kExact * options_.tolerance, std::min(options_.tolerance, kLeastTolerance))
                      : options_.tolerance;
  }

  // TruncatedTask reading at the weights as they are: outliers and objectives, and from them what becomes of each task.
  // The rows come from memory where the convex solver keeps them there.
  Pass look() {
    looked_at_ = in_work();
    readings_.clear();
    const Plan plan = make_plan(problem_of(looked_at_), options_, inner_context());
    const RowsHeld held = plan.columns ? RowsHeld::streamed : plan.rows;
    const ChunkSums chunks(*problem_.store);
    // Where columns were worked on, nothing of them is in memory now: a few chunks of rows have room.
    const uint64_t window = plan.columns ? std::max(plan.window_bytes, chunks.least()) : plan.window_bytes;
    const size_t fitting = std::clamp<size_t>(window / 2 / std::max<uint64_t>(1, chunks.largest), 1, kChunksPerBlock);
    return {.purpose = Pass::Purpose::look,
            .order = BlockOrder::all(*problem_.store, held == RowsHeld::streamed ? fitting : kChunksPerBlock),
            .rows = Rows::As{.store = problem_.store,
                             .held = held,
                             .window_bytes = window,
                             .team = setup_.context.team,
                             .decode_blocks = looked_at_.size() > 1},
            .save_first = solved_ > 0,
            .words = "to find outliers"};
  }

  void begin_readings() {
    going_on_.assign(looked_at_.size(), {});
    readings_.reserve(looked_at_.size());
    for (size_t k = 0; k < looked_at_.size(); ++k) {
      Solution& solution = solutions_[looked_at_[k]];
      TruncatedTask& task = tasks_[looked_at_[k]];
      if (is_dual())
        going_on_[k] = solution.weights_of_duals.empty() ? solution.weights : std::move(solution.weights_of_duals);
      solution.weights_of_duals = {};
      readings_.emplace_back(problem_, problem_.tasks[looked_at_[k]], task.known, task.outliers_now);
      readings_.back().begin(solution, going_on_[k]);
    }
  }

  void scan(const Block& block, size_t i, OutlierReading& reading) {
    Duals& duals = solutions_[i].duals;
    if (!duals.empty()) duals.fetch(block.numbers);
    for (size_t c = 0; c < block.chunks.size(); ++c) reading.add(*block.chunks[c], block.numbers[c]);
    if (!duals.in_file()) return;
    for (const uint32_t& chunk : block.numbers) duals.put_back({&chunk, 1}, duals.version(chunk) + 1);
  }

  PassReport end_readings(const PassEnd& end_of_pass) {
    for (const size_t i : looked_at_)
      if (solutions_[i].duals.in_file()) solutions_[i].duals.set_base_version(solutions_[i].duals.version(0));
    reading_due_ = false;
    const Termination end = limit(end_of_pass);
    for (size_t k = 0; k < looked_at_.size(); ++k)
      decide(looked_at_[k], readings_[k], end != Termination::converged, going_on_[k]);
    if (!in_work().empty()) limit_ = end;
    readings_.clear();
    going_on_.clear();
    PassReport report{.tasks_left = in_work().size()};
    report.truncated.emplace();
    for (const TruncatedTask& task : tasks_) {
      report.add_task(task.convex, task.certificate.dual);
      report.truncated->objective += task.result.objective;
      report.truncated->outliers += task.result.outliers;
      report.truncated->outer_steps = std::max(report.truncated->outer_steps, task.result.outer_steps);
    }
    return report;
  }

  // Why there is no further step, whatever this one was; converged: there may be. A stop shows in the next pass.
  Termination limit(const PassEnd& end) const {
    if (limit_ != Termination::converged || solved_ == *begun_) return limit_;  // at least one step
    const bool at_limit = end.limit && *end.limit != Termination::interrupted;
    return at_limit ? *end.limit : Termination::converged;
  }

  // `last`: there will be no further step.
  void decide(size_t i, const OutlierReading& reading, bool last, std::vector<float>& going_on) {
    TruncatedTask& task = tasks_[i];
    Solution& solution = solutions_[i];
    const bool first = solved_ == *begun_;
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
      if (reading.changed()) std::swap(task.known, task.outliers_now);
    } else {
      // As good as w^{t+1} for the same convex problem, and better.
      task.certificate = {task.convex, task.certificate.dual - task.convex_rounding};
    }
    if (!first) {
      const bool converged = (accepted && !reading.changed()) || still_possible <= little;
      const bool small = !accepted || fall <= little;
      task.done = converged || (small && (task.exact || tolerance_of(task) <= kLeastTolerance));
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

  static void visit_progress(auto& self, auto&& field) {
    field("reading_due", self.reading_due_);
    field("solved", self.solved_);
    field("passes", self.passes_);
    field("begun", self.begun_);
    field("column_steps", self.column_steps_);
    field("certificates_made", self.certificates_made_);
  }

  void save_solution(const Solution& solution, FieldWriter to) const {
    to("weights", solution.weights);
    to("weights_of_duals", solution.weights_of_duals);
    if (!is_dual()) return;
    solution.duals.sync();
    if (solution.duals.in_file())
      to("duals_version", solution.duals.version(0));
    else
      to("duals", solution.duals.all());
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
    if (!solution.duals.in_file()) {
      from("duals", solution.duals.all());
      return;
    }
    const auto version = from.take<uint32_t>("duals_version");
    for (uint32_t chunk = 0; chunk < problem_.store->chunks().size(); ++chunk)
      solution.duals.set_version(chunk, version);
    solution.duals.set_base_version(version);
  }

  const Setup setup_;
  const Problem& problem_;
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;  // of tasks in a convex problem they are there
  Rows& rows_;
  const Problem convex_problem_;  // the same losses, whole
  std::vector<TruncatedTask> tasks_;
  std::unique_ptr<Convex> convex_;  // in work; none: a reading is, or nothing
  ColumnSteps column_steps_;
  CertificatesMade certificates_made_;
  std::optional<int> begun_;  // convex problems before the first reading
  int solved_ = 0;            // all of them
  int passes_ = 0;            // before the last convex problem
  bool reading_due_ = false;  // the last convex problem's answer has not been looked at
  Termination limit_ = Termination::converged;
  // Of a reading.
  std::vector<size_t> looked_at_;
  std::vector<std::vector<float>> going_on_;
  std::vector<OutlierReading> readings_;
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

std::unique_ptr<Solver> make_truncated(const Setup& setup, Rows& rows) {
  return std::make_unique<TruncatedSolver>(setup, rows);
}

}  // namespace linblock
