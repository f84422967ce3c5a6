#include "learn/cross_validate.h"

#include "base/clock.h"
#include "base/error.h"
#include "learn/resume.h"
#include "learn/stages.h"
#include "solve/choose.h"
#include "solve/core/pass_loop.h"
#include "solve/solve.h"

namespace linblock {

Store open_store(const TrainOptions& options, const FoldOptions& comparing, size_t threads,
                 const TrainObserver& observer, Source& source) {
  const uint32_t folds = comparing.folds;
  if (folds < kLeastFolds || folds > kMostFolds)
    fail(ErrorKind::usage, "`folds` {}: there can be {} to {}", folds, kLeastFolds, kMostFolds);
  check_metric(comparing.metric, options.loss);
  Store store = open_store(options, threads, observer, source);
  check_metric(comparing.metric, choose_classes(source.info, options));
  if (folds > source.info.rows)
    fail(ErrorKind::input, "`folds` {}: there are only {} rows, and each fold needs one", folds, source.info.rows);
  return store;
}

std::vector<Task> fold_tasks(const Classes& classes, double cost, uint32_t folds, uint64_t seed) {
  std::vector<Task> tasks;
  for (uint32_t fold = 0; fold < folds; ++fold)
    for (const int32_t positive : classes.positives)
      tasks.push_back({.positive = positive,
                       .cost = cost,
                       .held_out = {.seed = seed, .parts = folds, .first = fold, .last = fold + 1}});
  return tasks;
}

std::optional<double> mean_auc(const std::vector<FoldResult>& folds) {
  double sum = 0;
  size_t count = 0;
  for (const FoldResult& fold : folds) {
    if (!fold.auc) continue;
    sum += *fold.auc;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

namespace {

Problem folds_problem(const Store& store, const TrainOptions& options, const Classes& classes, uint32_t folds) {
  Problem problem = make_problem(store, options, classes);
  problem.tasks = fold_tasks(classes, options.cost, folds, options.solve.seed);
  return problem;
}

uint64_t bytes_of_rows(const Store& store, const FoldOptions& comparing, const Classes& classes) {
  return HeldOutRows::bytes_for(store, comparing.metric, classes.labels.size()) +
         HeldOutRows::bytes_to_compare(store, comparing.metric);
}

Problem part_of(const Problem& problem, size_t group, size_t groups) {
  const size_t count = problem.tasks.size();
  Problem part = problem;
  part.tasks.assign(problem.tasks.begin() + static_cast<ptrdiff_t>(group * count / groups),
                    problem.tasks.begin() + static_cast<ptrdiff_t>((group + 1) * count / groups));
  return part;
}

// The plans of all groups.
std::string layout_of(const TrainOptions& options, const FoldOptions& comparing, const Store& store, Context context) {
  const Classes classes = choose_classes(store.info(), options);
  const Problem problem = folds_problem(store, options, classes, comparing.folds);
  context.reserved_bytes += bytes_of_rows(store, comparing, classes);
  const size_t most = tasks_at_once(problem, options.solve, context);
  const size_t groups = (problem.tasks.size() + most - 1) / most;
  context.rows_at_end = true;
  std::string text = identity_of(options.solve.method);
  for (size_t group = 0; group < groups; ++group)
    text += text_of(make_plan(part_of(problem, group, groups), options.solve, context));
  return text;
}

}  // namespace

CrossValidation cross_validate(const TrainOptions& asked, const FoldOptions& comparing, const Context& given,
                               const TrainObserver& observer) {
  CrossValidation result;
  result.metric = comparing.metric;
  const uint32_t folds = comparing.folds;
  const Store store = open_store(asked, comparing, given.team.size(), observer, result);
  const Resumed resumed = resume_with(given, asked.fresh, observer, [&](const Context& other) {
    return layout_of(with_method(asked, store, other), comparing, store, other);
  });
  const Context& context = resumed.context;
  const TrainOptions options = choose_solver(asked, store, context, observer);
  const Classes classes = choose_classes(store.info(), options);
  const Problem problem = folds_problem(store, options, classes, folds);
  Context solving = watched(context, observer);
  solving.reserved_bytes += bytes_of_rows(store, comparing, classes);
  const size_t count = problem.tasks.size();
  const size_t most = tasks_at_once(problem, options.solve, solving);
  result.groups = (count + most - 1) / most;
  if (result.groups > 1)
    observer.say(fmt::format("{} models do not fit in memory together: {} groups of up to {}, one after another", count,
                             result.groups, (count + result.groups - 1) / result.groups));
  Problem first = problem;
  first.tasks.resize(most);
  if (const std::string warning = foresee_passes(problem, make_plan(first, options.solve, solving)); !warning.empty())
    observer.say(warning);
  Rows rows;  // in memory from one group to the next
  const Stopwatch since;
  Stages stages(context.checkpoint, identity_of(options, resumed.planned_bytes, store.info()) + identity_of(comparing),
                options.fresh);
  if (stages.resumed()) observer.say("resuming from the checkpoint '" + context.checkpoint.path + "'");
  HeldOutRows held(store, classes, folds, options.solve.seed, comparing.metric);
  stages.restore([&](FieldReader& from) {
    from("summary", result.summary);
    from("held_out", held);
  });
  for (size_t group = stages.done(); group < result.groups; ++group) {
    const Problem part = part_of(problem, group, result.groups);
    std::vector<Solution> solutions;
    solving.checkpoint = stages.checkpoint();
    solving.rows_at_end = true;
    const SolveOptions limited = with_time_left(options.solve, since);
    PassLoop loop(part, limited, solutions, solving, rows);
    while (const auto done = loop.pass())
      if (done->report) observer.pass(*done->report, {});
    loop.read_rows([&](const Block& block) { held.score(block, part, part.tasks, solutions, context.team); });
    const Summary summary = loop.finish();
    if (summary.termination == Termination::interrupted)
      fail(ErrorKind::interrupted, "interrupted: without a checkpoint nothing is left of it");
    add_summary(summary, result.summary);
    if (group + 1 == result.groups) break;  // the answer stands: it must not be lost to a disk that is full
    stages.finish([&](FieldWriter& to) {
      to("summary", result.summary);
      to("held_out", held);
    });
  }
  result.folds = held.folds();
  result.value = spread_of(result.folds, result.metric);
  result.pooled = held.pooled();
  result.pooled.auc = mean_auc(result.folds);
  std::map<int32_t, uint64_t> frequencies;
  for (const auto& [label, quality] : result.pooled.classes) frequencies[label] = quality.rows;
  result.baseline = baseline_of(result.metric, frequencies, positive_label(classes));
  return result;
}

}  // namespace linblock
