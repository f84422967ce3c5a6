#include "learn/train.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/version.h"
#include "learn/examples.h"
#include "learn/resume.h"
#include "learn/stages.h"
#include "learn/start_weights.h"
#include "learn/state.h"
#include "learn/test_rows.h"
#include "learn/truncated_json.h"
#include "learn/warm_start.h"
#include "objective/class_certificate.h"
#include "solve/choose.h"
#include "solve/core/pass_loop.h"
#include "solve/solve.h"
#include "solve/truncated/truncated.h"

namespace linblock {

namespace {

constexpr uint32_t kHeldOutParts = 1'000'000;

// What tasks make of the rows that they have not learned from: for probabilities, and for the threshold.
class HeldOutScores {
 public:
  static constexpr uint64_t kBytesPerRow = sizeof(double) + 1;

  HeldOutScores(const Classes& classes, const Problem& problem, const Team& team)
      : classes_(classes),
        problem_(problem),
        team_(team),
        scores_(classes.all_at_once ? classes.columns() : problem.tasks.size()),
        right_(scores_.size()) {}

  size_t columns() const { return scores_.size(); }

  void score(const Block& block, const std::vector<Solution>& solutions) {
    team_.for_each(solutions.size(), [&](size_t i) {
      const Task& task = problem_.tasks[i];
      RowBuffer buffer;
      for (const Chunk* chunk : block.chunks)
        for (size_t number = 0; number < chunk->rows(); ++number) {
          if (!task.held_out.holds(chunk->id(number))) continue;
          const Row row = chunk->row(number, buffer);
          if (row.weight == 0) continue;
          if (classes_.all_at_once)
            add_all(row, solutions[i].weights);
          else
            add(i, margin_of(row, 1, problem_.bias, solutions[i].weights), row.label == task.positive);
        }
    });
  }

  Sigmoid fit(size_t task) const {
    if (scores_[task].empty())
      fail(ErrorKind::input, {say("give a larger share"), leave_out("calibrate")}, "`calibrate`: no row is held out");
    return fit_sigmoid(scores_[task], right_[task]);
  }

  // Of two classes.
  ChosenThreshold threshold(Metric metric) const {
    std::vector<double> decisions = scores_[0];
    for (size_t i = 0; i < decisions.size() && columns() == 2; ++i) decisions[i] -= scores_[1][i];
    return choose_threshold(metric, decisions, right_[0], positive_label(classes_) == classes_.labels[0]);
  }

 private:
  void add(size_t column, double score, bool right) {
    scores_[column].push_back(score);
    right_[column].push_back(right ? 1 : 0);
  }
  void add_all(const Row& row, const std::vector<float>& weights) {
    std::vector<double> scores(columns());
    exact_scores(row, problem_.bias, weights, scores);
    for (size_t c = 0; c < scores.size(); ++c) add(c, scores[c], row.label == classes_.labels[c]);
  }

  const Classes& classes_;
  const Problem& problem_;
  Team team_;
  std::vector<std::vector<double>> scores_;
  std::vector<std::vector<uint8_t>> right_;
};

// Groups of tasks, one after another; one group where all of them fit in memory.
class Training {
 public:
  // `planned_bytes`: the memory in the identity of the run.
  Training(const TrainOptions& options, const Context& context, uint64_t planned_bytes, const TrainObserver& observer,
           const Store& store)
      : options_(options),
        planned_bytes_(planned_bytes),
        context_(watched(context, observer)),
        observer_(observer),
        store_(store),
        classes_(choose_classes(store.info(), options)),
        problem_(make_problem(store, options, classes_)),
        test_(options, store, classes_, context.checkpoint.path),
        state_(options.keep_state, context.checkpoint.wanted() ? context.checkpoint.path + ".kept" : "",
               abilities_of(options.solve.method).start == Start::duals, store, problem_) {
    context_.wants_v = state_.wanted();
    if (options.threshold && classes_.labels.size() != 2)
      fail(ErrorKind::usage, {say("choose one label with `positive`"), leave_out("threshold")},
           "`threshold` is for two classes, and there are {} labels", classes_.labels.size());
    if (options.share_held_out() > 0) hold_out_rows();
    const size_t count = problem_.tasks.size();
    const size_t most = tasks_at_once(problem_, options.solve, context_);
    groups_ = (count + most - 1) / most;
    if (groups_ > 1)
      observer.say(fmt::format("{} classes do not fit in memory together: {} groups of up to {}, one after another",
                               count, groups_, (count + groups_ - 1) / groups_));
    if (const std::string warning = foresee_passes(problem_, plan()); !warning.empty()) observer.say(warning);
  }

  Plan plan() const { return make_plan(group(0), options_.solve, context_); }

  // Of all groups.
  std::string layout() const {
    std::string text = identity_of(options_.solve.method);
    Context context = context_;
    context.rows_at_end = reads_rows_at_end();
    for (size_t number = 0; number < groups_; ++number)
      text += text_of(make_plan(group(number), options_.solve, context));
    return text;
  }

  void run(TrainReport& report, std::vector<Solution> start) {
    start_ = std::move(start);
    if (test_.wanted()) {
      test_.read(context_);
      return_free_memory();  // training has none to spare
    }
    Stages stages(context_.checkpoint, identity_of(options_, planned_bytes_, store_.info()), options_.fresh);
    if (stages.resumed()) observer_.say("resuming from the checkpoint '" + context_.checkpoint.path + "'");
    report.groups = groups_;
    if (groups_ > 1) {
      if (!context_.checkpoint.wanted())
        fail(ErrorKind::memory, "{} classes do not fit in memory together, and there is no checkpoint to keep some in",
             problem_.tasks.size());
      report.columns = ModelColumns(context_.checkpoint.path + ".column");
    }
    stages.restore([&](FieldReader& from) { restore(from, stages.done(), report); });
    for (size_t number = stages.done(); number < groups_; ++number) {
      train_group(number, stages.checkpoint(), report);
      if (groups_ > 1) stages.finish([&](FieldWriter& to) { visit_fields(*this, report, to); });
    }
    if (test_.wanted() && groups_ > 1) report.test = test_.result();
    report.model.calibration = calibration_;
    report.threshold = threshold_;
    if (threshold_) report.model.threshold = threshold_->threshold;
    report.model.bounds = bounds_of(problem_, report.summary, classes_.all_at_once);
    if (state_.wanted()) state_.commit(state_identity(options_, problem_));
    if (report.model.softmax)
      observer_.say(
          "liblinear-predict finds the same labels with this model; its probabilities are those of one-vs-rest");
  }

 private:
  size_t first_of(size_t number) const { return number * problem_.tasks.size() / groups_; }

  Problem group(size_t number) const {
    Problem part = problem_;
    part.tasks.assign(problem_.tasks.begin() + static_cast<ptrdiff_t>(first_of(number)),
                      problem_.tasks.begin() + static_cast<ptrdiff_t>(first_of(number + 1)));
    return part;
  }

  bool reads_rows_at_end() const { return state_.wanted() || options_.share_held_out() > 0; }

  // What is learned from cannot tell how sure a decision is.
  void hold_out_rows() {
    for (Task& task : problem_.tasks)
      task.held_out = {.seed = options_.solve.seed,
                       .parts = kHeldOutParts,
                       .first = 0,
                       .last = static_cast<uint32_t>(std::ceil(options_.share_held_out() * kHeldOutParts))};
    const uint64_t bytes_per_row =
        classes_.columns() * HeldOutScores::kBytesPerRow + (options_.threshold ? kBytesPerThresholdRow : 0);
    context_.reserved_bytes +=
        static_cast<uint64_t>(static_cast<double>(store_.info().rows) * options_.share_held_out()) * bytes_per_row;
  }

  void begin_warm(size_t number, const Problem& problem, const Context& context, std::vector<Solution>& solutions,
                  SolveOptions& solving) {
    if (abilities_of(options_.solve.method).start == Start::weights) {
      StartWeights start = start_weights(options_.warm, problem, classes_.all_at_once);
      const size_t classes = classes_.all_at_once ? problem.classes() : problem.tasks.size();
      if (number == 0)
        observer_.say(fmt::format(
            "starting from the weights of '{}'{}{}", options_.warm,
            start.known < classes ? fmt::format(", which knows {} of {} classes", start.known, classes) : "",
            start.bounded > 0 ? ", and from its dual value: the problem is the same" : ""));
      solutions = std::move(start.solutions);
      return;
    }
    const Plan plan = make_plan(problem, options_.solve, context);
    WarmStart warm = warm_start(state_path(options_.warm), options_, problem,
                                plan.duals_in_file ? context.checkpoint.path + ".duals" : "", context);
    if (number == 0) observer_.say(fmt::format("starting from '{}': {}", options_.warm, warm.describe()));
    solutions = std::move(warm.solutions);
    solving.new_chunks = std::move(warm.new_chunks);
  }

  void train_group(size_t number, const Checkpoint& checkpoint, TrainReport& report) {
    const Problem problem = group(number);
    Context context = context_;
    context.checkpoint = checkpoint;
    SolveOptions solving = with_time_left(options_.solve, since_);
    std::vector<Solution> solutions;
    if (!options_.warm.empty() && path_kind(checkpoint.path) != PathKind::file)
      begin_warm(number, problem, context, solutions, solving);
    if (!start_.empty())
      solutions.assign(std::make_move_iterator(start_.begin() + static_cast<ptrdiff_t>(first_of(number))),
                       std::make_move_iterator(start_.begin() + static_cast<ptrdiff_t>(first_of(number + 1))));
    HeldOutScores scores(classes_, problem, context_.team);
    context.rows_at_end = reads_rows_at_end();
    PassLoop loop(problem, solving, solutions, context, rows_);
    run_passes(loop, first_of(number));
    if (context.rows_at_end)
      loop.read_rows([&](const Block& block) {
        if (state_.wanted()) state_.take_ids(block);
        if (options_.share_held_out() > 0) scores.score(block, solutions);
      });
    add_summary(loop.finish(), report.summary);
    if (number + 1 == groups_) rows_.release();  // what follows needs the memory
    for (size_t i = 0; i < solutions.size(); ++i) {
      if (state_.wanted()) state_.take_solution(first_of(number) + i, solutions[i]);
      solutions[i].duals = {};
      solutions[i].class_duals = {};
    }
    for (size_t i = 0; i < scores.columns() && options_.calibrate > 0; ++i) calibration_.push_back(scores.fit(i));
    if (options_.threshold) threshold_ = scores.threshold(*options_.threshold);
    if (test_.wanted() && groups_ == 1)
      report.test = test_.test(weights_of(solutions), threshold_ ? std::optional(threshold_->threshold) : std::nullopt);
    if (test_.wanted() && groups_ > 1) test_.add(weights_of(solutions), first_of(number));
    if (has_one_column()) subtract_columns(solutions.front().weights);
    if (classes_.positives.size() == 1) {
      report.model = make_model(store_, std::move(solutions.front().weights), classes_.labels, options_.bias,
                                solver_type(options_));
    } else {
      std::vector<std::vector<float>> weights;
      weights.reserve(solutions.size());
      for (Solution& solution : solutions) weights.push_back(std::move(solution.weights));
      report.columns.add(store_, std::move(weights), context_.team);
      report.model = make_model(store_, {}, classes_.labels, options_.bias, solver_type(options_));
    }
    finish_model(report.model);
  }

  // `first`: task of the group.
  void run_passes(PassLoop& loop, size_t first) const {
    // With some classes missing an accuracy says nothing.
    const bool tested = test_.wanted() && groups_ == 1;
    while (const auto done = loop.pass()) {
      if (state_.wanted() && done->purpose == Pass::Purpose::certify)
        for (const PartOfV& part : loop.solver().v()) state_.take_v(first + part.task, part.begin, part.v);
      if (!done->report) continue;
      const PassReport& pass = *done->report;
      observer_.pass(pass, tested ? std::optional(test_.test(pass.weights).accuracy()) : std::nullopt);
    }
  }

  // Two classes with probabilities of their own: what one column says of them is the same as what two do.
  bool has_one_column() const {
    return classes_.labels.size() == 2 && abilities_of(options_.solve.method).joint_probabilities;
  }
  static void subtract_columns(std::vector<float>& weights) {
    for (size_t i = 0; i < weights.size() / 2; ++i) weights[i] = weights[2 * i] - weights[2 * i + 1];
    weights.resize(weights.size() / 2);
    weights.shrink_to_fit();
  }

  void finish_model(Model& model) const {
    model.softmax = abilities_of(options_.solve.method).joint_probabilities && model.columns() > 1;
    model.against_rest = classes_.against_rest;
    model.label_names = classes_.label_names;
    if (!liblinear_names(options_.loss).exact) model.loss = options_.loss;
  }

  static void visit_fields(auto& self, auto& report, auto&& field) {
    field("summary", report.summary);
    field("calibration", self.calibration_);
    field("test", self.test_);
  }

  // `done`: so many groups are.
  void restore(FieldReader& from, size_t done, TrainReport& report) {
    visit_fields(*this, report, from);
    if (done > groups_ || report.summary.certificates.size() != first_of(done)) from.refuse_value("done");
    while (report.columns.size() < report.summary.certificates.size()) report.columns.add_from_file();
    report.model = make_model(store_, {}, classes_.labels, options_.bias, solver_type(options_));
    finish_model(report.model);
  }

  const TrainOptions& options_;
  const uint64_t planned_bytes_;
  Context context_;
  const TrainObserver& observer_;
  const Store& store_;
  const Classes classes_;
  Problem problem_;
  TestRows test_;
  size_t groups_ = 1;
  std::vector<Solution> start_;
  StateWriter state_;
  const Stopwatch since_;
  std::vector<Sigmoid> calibration_;
  std::optional<ChosenThreshold> threshold_;
  Rows rows_;  // in memory from one group to the next
};

}  // namespace

void check_truncation(const TrainOptions& options, bool keep_state) {
  if (!options.truncate) return;
  if (!options.choose_method) check_truncated(options.solve.method, *options.truncate);
  if (keep_state)
    fail(ErrorKind::usage, {leave_out("keep_state")},
         "`truncate` keeps no state: each run finds the outliers again. `warm` can start from the state of a model "
         "without `truncate`");
}

TrainReport train(const TrainOptions& asked, const Context& given, const TrainObserver& observer, bool dry_run,
                  std::vector<Solution> start) {
  check_truncation(asked, !asked.keep_state.empty());
  check_test_inputs(asked.test);  // before hours of packing and training, not after them
  TrainReport report;
  const Store store = open_store(asked, given.team.size(), observer, report);
  store.feature_names().check();  // they are needed when the model is saved, and hours may pass until then
  const Resumed resumed = resume_with(given, asked.fresh, observer, [&](const Context& other) {
    const TrainObserver silent;
    const TrainOptions options = with_method(asked, store, other);
    return Training(options, other, other.memory_bytes, silent, store).layout();
  });
  const Context& context = resumed.context;
  const TrainOptions options = choose_solver(asked, store, context, observer);
  Training training(options, context, resumed.planned_bytes, observer, store);
  if (!dry_run) {
    training.run(report, std::move(start));
    return report;
  }
  report.summary.plan = training.plan();
  observer.plan(report.summary.plan);
  return report;
}

uint64_t save_trained(const std::string& path, const TrainOptions& options, TrainReport& report, const Team& team) {
  const std::string metadata = describe_model(options, report);
  if (report.columns.size() == 0) return save_model(path, report.model, metadata, team, options.model_format);
  return save_model(path, report.model, report.columns, metadata, team, options.model_format);
}

std::string describe_model(const TrainOptions& options, const TrainReport& report) {
  const Summary& summary = report.summary;
  const Certificate certificate = summary.total();
  Json json = {{"program", fmt::format("linblock {}", kVersion)},
               {"loss", name_of(options.loss)},
               {"cost", options.cost},
               {"bias", options.bias},
               {"free_bias", options.free_bias},
               {"solver", summary.plan.method_name()},
               {"tolerance", options.solve.tolerance},
               {"seed", options.solve.seed},
               {"labels", report.model.label_names.json(report.model.labels)},
               {"against_rest", report.model.against_rest},
               {"index_base", report.model.index_base},
               {"normalized", report.model.normalized},
               {"store_id", fmt::format("{:016x}", report.info.id)},
               {"rows", report.info.rows},
               {"features", report.info.features()},
               {"passes", summary.passes},
               {"primal", certificate.primal},
               {"converged", summary.converged()},
               {"dual", summary.certified() ? Json(certificate.dual) : Json(nullptr)},
               {"certified_gap", summary.certified() ? Json(summary.largest_gap()) : Json(nullptr)},
               {"plan", summary.plan.describe()}};
  AnyLoss loss = options.loss;
  json.update(to_json(settings_of(loss)));
  AnyMethod method = options.solve.method;
  json["solver_options"] = to_json(settings_of(method));
  add_truncated(summary, json);
  for (const Sigmoid& sigmoid : report.model.calibration)
    json["calibration"].push_back({sigmoid.slope, sigmoid.offset});
  if (report.threshold) {
    json["threshold"] = report.threshold->threshold;
    json["threshold_metric"] = name_of(report.threshold->metric);
  }
  if (summary.certificates.size() > 1) {
    json["tasks"] = Json::array();
    for (size_t i = 0; i < summary.certificates.size(); ++i) {
      json["tasks"].push_back(
          {{"label", report.model.label_names.json(report.model.labels[i])},
           {"primal", summary.certificates[i].primal},
           {"dual", summary.certified() ? Json(summary.certificates[i].dual) : Json(nullptr)},
           {"certified_gap", summary.certified() ? Json(summary.certificates[i].gap()) : Json(nullptr)}});
      add_truncated(summary, i, json["tasks"].back());
    }
  }
  return json.dump(1) + "\n";
}

}  // namespace linblock
