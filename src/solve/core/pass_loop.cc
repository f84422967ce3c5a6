#include "solve/core/pass_loop.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "solve/core/certify.h"
#include "solve/solve.h"

namespace linblock {

namespace {

// Where the duals are at hand.
std::vector<uint64_t> count_support_vectors(const std::vector<Solution>& solutions) {
  std::vector<uint64_t> counts;
  for (const Solution& solution : solutions) {
    if (solution.duals.empty() || solution.duals.in_file()) return {};
    const std::span<const double> all = solution.duals.all();
    counts.push_back(static_cast<uint64_t>(std::count_if(all.begin(), all.end(), [](double a) { return a > 0; })));
  }
  return counts;
}

}  // namespace

PassLoop::PassLoop(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                   const Context& context, Rows& rows)
    : problem_(problem),
      options_(options),
      solutions_(solutions),
      context_(context),
      rows_(rows),
      costs_of_others_(rows.costs()) {
  check_problem(problem, options.method);
  solutions.resize(problem.tasks.size());
  std::optional<FieldReader> resumed;
  if (context.checkpoint.wanted() && saved()) resumed.emplace(context.checkpoint.path);
  // The same plan, the same bits.
  summary_.plan = resumed ? resumed->take<Plan>("plan") : make_plan(problem, options, context);
  context.observer.plan(summary_.plan);
  solver_ = make_solver(problem, options, solutions, context, summary_.plan, rows);
  if (!resumed) return;
  restore(*resumed);
  resumed->finish();
  rows_.load();
}

void PassLoop::restore(FieldReader& from) {
  constexpr int kMostPasses = 1'000'000'000;
  constexpr uint64_t kMostCounted = 1'000'000'000'000'000;
  from.take<std::string>("identity");  // which the caller has compared
  FieldReader position = from.inside("position");
  visit_position(*this, position);
  if (at_.pass < 0 || at_.pass > kMostPasses) position.refuse_value("pass");
  if (at_.block > kMostCounted) position.refuse_value("block");
  if (pass_rows_ > kMostCounted) position.refuse_value("rows");
  if (pass_costs_.bytes > kMostCounted) position.refuse_value("costs.bytes");
  solver_->restore(from, at_);
}

void PassLoop::save() {
  if (!context_.checkpoint.wanted()) return;
  SnapshotWriter file(context_.checkpoint.path);
  FieldWriter to(file);
  to("identity", context_.checkpoint.identity);
  to("plan", summary_.plan);
  visit_position(*this, to.inside("position"));
  solver_->save(to);
  file.commit();
  since_saved_.restart();
}

ReadCosts PassLoop::costs() const {
  ReadCosts sum = solver_->own_costs();
  sum += rows_.costs();
  return sum - costs_of_others_;
}

std::optional<PassLoop::Done> PassLoop::pass() {
  const std::optional<Pass> pass = solver_->next(at_);
  if (!pass) return std::nullopt;
  if (pass->purpose == Pass::Purpose::step) save_between_steps();
  if (pass->rows) rows_.hold(*pass->rows);
  if (pass->has_number() && at_.block == 0) {
    pass_rows_ = 0;
    pass_costs_ = {};
    pass_solve_seconds_ = 0;
    certify_seconds_ = 0;
    certify_costs_ = {};
    if (pass->save_first) save();
  }
  const Stopwatch reading;
  const ReadCosts before = costs();
  whole_ = true;
  if (pass->order.ends.empty() && at_.block == 0) whole_ = solver_->work(Block{}, 0);
  if (pass->purpose == Pass::Purpose::solve)
    work_on(*pass);
  else
    read(*pass);
  if (pass->has_number()) {
    ++at_.pass;
    at_.block = 0;
  }
  has_stepped_ = pass->purpose == Pass::Purpose::step;
  Done done{.purpose = pass->purpose, .report = solver_->end_pass(end_of(*pass))};
  if (context_.checkpoint.wanted() && solver_->cut_short())
    fail(ErrorKind::interrupted, "interrupted in pass {}: the same command {}", at_.pass - 1,
         saved() ? "resumes from the last checkpoint" : "starts over");
  if (pass->purpose == Pass::Purpose::certify) {
    certify_seconds_ += reading.seconds();
    certify_costs_ += costs() - before;
    summary_.certify_seconds += reading.seconds();
  }
  if (done.report) {
    PassReport& report = *done.report;
    report.pass = at_.pass - 1;
    if (pass->purpose != Pass::Purpose::step) {
      report.rows = pass_rows_;
      report.costs = pass_costs_;
      report.solve_seconds = pass_solve_seconds_;
    } else {
      summary_.solve_seconds += report.solve_seconds;
    }
    if (report.certified) {
      report.certify_seconds = certify_seconds_;
      report.certify_costs = certify_costs_;
    }
    report.seconds = clock_.seconds();
    report.bytes_read = costs().bytes;
    report.weights = solver_->weights();
    summary_.passes = report.pass;
    for (const std::string& note : report.notes) context_.observer.note(note);
  }
  return done;
}

// Works on the blocks that are not done, and counts them.
void PassLoop::work_on(const Pass& pass) {
  const Checkpoint& checkpoint = context_.checkpoint;
  ReadCosts before = costs();
  bool finished = true;
  bool stop = false;
  rows_.for_each(
      pass.order,
      [&](const Block& block, size_t number) {
        const Stopwatch solving;
        finished = solver_->work(block, number);
        if (!finished) return false;
        at_.block = number + 1;
        BlockReport report{.pass = at_.pass, .block = at_.block, .blocks = pass.order.ends.size()};
        for (const Chunk* chunk : block.chunks) report.rows += chunk->rows();
        report.solve_seconds = solving.seconds();
        const ReadCosts now = costs();
        report.costs = now - before;
        before = now;
        pass_costs_ += report.costs;
        pass_solve_seconds_ += report.solve_seconds;
        pass_rows_ += report.rows;
        report.seconds = clock_.seconds();
        context_.observer.block(report);
        stop = context_.stopped();
        if (checkpoint.wanted() && (stop || since_saved_.seconds() >= checkpoint.every_seconds)) save();
        return !stop;
      },
      at_.block);
  summary_.solve_seconds += pass_solve_seconds_;
  whole_ = whole_ && at_.block == pass.order.ends.size();
  if ((finished && !stop) || !checkpoint.wanted()) return;
  fail(ErrorKind::interrupted, "interrupted in pass {}: the same command {}", at_.pass,
       finished  ? "resumes from here"
       : saved() ? "resumes from the last checkpoint"
                 : "starts over");
}

// A stop does not cut a reading short: half of it says nothing.
void PassLoop::read(const Pass& pass) {
  const ReadCosts before = costs();
  double working_seconds = 0;
  uint64_t rows = 0;
  rows_.for_each(
      pass.order,
      [&](const Block& block, size_t number) {
        const Stopwatch working;
        solver_->work(block, number);
        working_seconds += working.seconds();
        for (const Chunk* chunk : block.chunks) rows += chunk->rows();
        const double share = static_cast<double>(number + 1) / static_cast<double>(pass.order.ends.size());
        context_.observer.reading(pass.words, (pass.done + share) / pass.readings);
        if (context_.stopped() && context_.checkpoint.wanted()) fail_in_reading(pass);
        return true;
      },
      0, pass.window_bytes);
  if (pass.purpose != Pass::Purpose::look) return;
  pass_rows_ = rows;
  pass_costs_ = costs() - before;
  pass_solve_seconds_ = working_seconds;
}

void PassLoop::fail_in_reading(const Pass& pass) const {
  const std::string_view how = saved() ? "resumes from the last checkpoint" : "starts over";
  if (pass.purpose == Pass::Purpose::look)
    fail(ErrorKind::interrupted, "interrupted in a reading {}: the same command {}", pass.words, how);
  fail(ErrorKind::interrupted, "interrupted in the certificate of pass {}: the same command {}",
       std::max(1, at_.pass - 1), how);
}

// Of a method that reads for itself: a checkpoint where one is due.
void PassLoop::save_between_steps() {
  const Checkpoint& checkpoint = context_.checkpoint;
  if (!checkpoint.wanted() || !has_stepped_) return;
  const bool stop = context_.stopped();
  if (!stop && since_saved_.seconds() < checkpoint.every_seconds) return;
  save();
  if (stop) fail(ErrorKind::interrupted, "interrupted in step {}: the same command resumes from here", at_.pass - 1);
}

PassEnd PassLoop::end_of(const Pass& pass) const {
  return {.pass = std::max(1, at_.pass - 1), .whole = whole_, .limit = limit(pass)};
}

std::optional<Termination> PassLoop::limit(const Pass& pass) const {
  const bool out_of_passes = at_.pass - 1 >= options_.max_passes;
  const bool out_of_time = options_.max_seconds > 0 && clock_.seconds() > options_.max_seconds;
  const bool at_limit = out_of_passes || out_of_time;
  const bool stopped = context_.stopped();
  // Told to stop, a method that reads for itself first saves what there is.
  if (stopped && (at_limit || pass.purpose != Pass::Purpose::step || !context_.checkpoint.wanted()))
    return Termination::interrupted;
  if (!at_limit) return std::nullopt;
  return out_of_passes ? Termination::pass_limit : Termination::time_limit;
}

void PassLoop::read_rows(const std::function<void(const Block&)>& work) {
  const Plan& plan = summary_.plan;
  BlockOrder order = certify_order(*problem_.store, plan);
  uint64_t window = plan.certify_window_bytes;
  if (!plan.columns && !rows_.holds(*problem_.store)) rows_.hold(rows_of(problem_, context_, plan));
  if (plan.columns) {
    // The columns have done their work: their memory is for rows now.
    rows_.hold({.store = problem_.store, .window_bytes = plan.window_bytes, .team = context_.team});
    Plan of_rows = plan;
    of_rows.rows = RowsHeld::streamed;
    of_rows.certify_window_bytes = window = plan.window_bytes;
    order = certify_order(*problem_.store, of_rows);
  }
  rows_.for_each(
      order,
      [&](const Block& rows, size_t number) {
        work(rows);
        context_.observer.reading("to look at the rows with what was learned",
                                  static_cast<double>(number + 1) / static_cast<double>(order.ends.size()));
        return !context_.stopped();
      },
      0, window);
  if (context_.stopped() && context_.checkpoint.wanted())
    fail(ErrorKind::interrupted, "interrupted: the same command resumes");
}

Summary PassLoop::finish() {
  solver_->finish(summary_);
  if (summary_.termination == Termination::interrupted && context_.stopped() && context_.checkpoint.wanted())
    fail(ErrorKind::interrupted, "interrupted: the same command resumes");
  summary_.costs = costs();
  if (summary_.plan.columns || summary_.plan.rows == RowsHeld::streamed) rows_.release();
  if (!is_wrapped(problem_, options_.method)) check_certificates(summary_);
  if (summary_.support_vectors.empty()) summary_.support_vectors = count_support_vectors(solutions_);
  summary_.total_seconds = clock_.seconds();
  solver_.reset();
  return std::move(summary_);
}

}  // namespace linblock
