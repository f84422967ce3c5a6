#include "learn/tune.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "base/clock.h"
#include "base/dot.h"
#include "base/error.h"
#include "learn/resume.h"
#include "learn/stages.h"
#include "solve/core/pass_loop.h"
#include "solve/solve.h"

namespace linblock {

namespace {

constexpr double kLargestCost = 1024;   // of a path without a range: LIBLINEAR's
constexpr double kLargeCost = 100;      // few paths without a range go much farther
constexpr double kPathFactor = 2;       // likewise
constexpr double kUnchanged = 1e-3;     // decisions that differ by less, relative to their size, are the same model
constexpr size_t kPatienceInCosts = 2;  // so many in a row before the path ends
constexpr double kFallenBy = 5;         // tolerances: the losses have fallen for good
constexpr double kMostTolerance = 0.1;  // that this can be said of
constexpr double kLeastLoss = 1e-3;     // of the metric, to speak of a best value that has been passed
constexpr size_t kMostCosts = 1000;
constexpr double kWithinBounds = 1 - 1e-12;  // rounding must not lift an alpha above its bound
constexpr size_t kCostsInMemory = 2;   // at a time, where rows are at hand anyway: each begins where the last ended
constexpr size_t kCostsInReading = 8;  // at a time, where they are read for it

// None where something else stands there.
std::vector<double> numbers_between(const std::string& text, char sign) {
  std::vector<double> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (after < end && *after != sign)) return {};
    numbers.push_back(number);
    if (after == end) return numbers;
    at = after + 1;
  }
}

std::vector<double> costs_between(double from, double to, double factor) {
  std::vector<double> costs;
  // A little beyond, so that rounding does not lose the last.
  for (double cost = from; cost <= to * (1 + 1e-9) && costs.size() <= kMostCosts; cost *= factor) costs.push_back(cost);
  return costs;
}

long hundredths_of_a_percent(double share) { return std::lround(1e4 * share); }

bool is_better(Metric metric, const TunedCost& cost, const TunedCost& other_cost) {
  const auto rounded = [&](const TunedCost& of) { return hundredths_of_a_percent(goodness(metric, of.value)); };
  return rounded(cost) > rounded(other_cost);
}

// The largest |x|^2 of all rows: one reading.
double largest_norm(const Store& store, double bias, const Context& context) {
  double largest = 0;
  RowBuffer buffer;
  const BlockOrder order = BlockOrder::all(store);
  size_t blocks = 0;
  BlockStream stream(store, order,
                     {.memory_bytes = std::max(context.memory_bytes / 4, uint64_t{4} << 20), .team = context.team});
  while (const RowBlock* block = stream.next()) {
    for (const Chunk& chunk : block->chunks())
      for (size_t i = 0; i < chunk.rows(); ++i) {
        const Row row = chunk.row(i, buffer);
        if (row.weight != 0) largest = std::max(largest, squared_norm(row.value));
      }
    context.observer.reading("to find the smallest useful cost",
                             static_cast<double>(++blocks) / static_cast<double>(order.ends.size()));
    if (context.stopped()) fail(ErrorKind::interrupted, "interrupted before the first cost");
  }
  return bias >= 0 ? largest + bias * bias : largest;
}

// Below it every row is at its bound, and all costs give the same model but for its length: LIBLINEAR's rule for -C.
double smallest_useful_cost(const Store& store, const TrainOptions& options, const Context& context) {
  const double norm = store.info().normalized && options.bias < 0 ? 1 : largest_norm(store, options.bias, context);
  const double sum = static_cast<double>(store.info().rows) * std::max(norm, 1e-30);
  const double cost = std::visit([&](const auto& loss) { return loss.smallest_useful_cost(sum); }, options.loss);
  return std::pow(2, std::floor(std::log2(std::min(cost, kLargestCost))));
}

// Duals scaled by new cost / old cost stay feasible, and w with them. Where there are none w is a start as it is.
Solution scaled(const Solution& from, double factor) {
  if (from.duals.empty()) return {.weights = from.weights};
  factor *= kWithinBounds;
  Solution to{.weights = from.weights_of_duals.empty() ? from.weights : from.weights_of_duals,
              .duals = from.duals.scaled(factor)};
  for (float& weight : to.weights) weight = static_cast<float>(weight * factor);
  return to;
}

class Path {
 public:
  Path(const TrainOptions& options, const FoldOptions& comparing, const Context& context, const TrainObserver& observer,
       const Store& store, std::vector<double> costs)
      : options_(options),
        folds_(comparing.folds),
        metric_(comparing.metric),
        context_(watched(context, observer)),
        observer_(observer),
        store_(store),
        classes_(choose_classes(store.info(), options)),
        problem_(make_problem(store, options, classes_)),
        costs_(std::move(costs)) {
    models_ = folds_ * classes_.positives.size();
    const Start start_with = abilities_of(options.solve.method).start;
    const bool duals = start_with == Start::duals;
    warm_ = duals || start_with == Start::weights;
    const uint64_t start =
        classes_.positives.size() *
        ((duals ? store.info().physical_rows() * Duals::kBytesPerRow : 0) + problem_.weights() * sizeof(float));
    context_.reserved_bytes += start + HeldOutRows::bytes_to_compare(store, metric_);
    at_once_ = costs_at_once();
    context_.reserved_bytes += (at_once_ + 1) * bytes_of_rows();
  }

  size_t at_once() const { return at_once_; }

  // Trains the next costs; those before them are what is begun with.
  void train_next(Tuning& tuning, const Checkpoint& checkpoint) {
    const size_t first = tuning.costs.size();
    const size_t count = std::min(at_once_, costs_.size() - first);
    Problem problem = problem_;
    problem.tasks.clear();
    for (size_t i = first; i < first + count; ++i) {
      const std::vector<Task> tasks = fold_tasks(classes_, costs_[i], folds_, options_.solve.seed);
      problem.tasks.insert(problem.tasks.end(), tasks.begin(), tasks.end());
    }
    std::vector<Solution> solutions = begin_with(first, count);
    std::vector<HeldOutRows> held(count, no_rows());
    Context context = context_;
    context.checkpoint = checkpoint;
    context.rows_at_end = true;
    const Stopwatch clock;
    const SolveOptions limited = with_time_left(options_.solve, since_);
    PassLoop loop(problem, limited, solutions, context, rows_);
    while (const auto done = loop.pass())
      if (done->report) observer_.pass(*done->report, {});
    loop.read_rows([&](const Block& block) {
      for (size_t i = 0; i < count; ++i)
        held[i].score(block, problem, std::span<const Task>(problem.tasks).subspan(i * models_, models_),
                      std::span<const Solution>(solutions).subspan(i * models_, models_), context.team);
    });
    const Summary summary = loop.finish();
    if (summary.termination == Termination::interrupted)
      fail(ErrorKind::interrupted, "interrupted: without a checkpoint nothing is left of it");
    const double seconds = clock.seconds();
    add_summary(summary, tuning.summary);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<FoldResult> folds = held[i].folds();
      const Spread spread = spread_of(folds, metric_);
      for (const FoldResult& fold : folds)
        tuning.fold_values.push_back(fold.value.value_or(std::numeric_limits<double>::quiet_NaN()));
      tuning.costs.push_back({.cost = costs_[first + i],
                              .accuracy = accuracy_of(folds).mean,
                              .value = spread.mean,
                              .deviation = spread.deviation,
                              .auc = mean_auc(folds).value_or(0),
                              .objective = objective_of(summary, i),
                              .passes = summary.passes,
                              .seconds = seconds / static_cast<double>(count)});
      unchanged_ = last_ && held[i].distance(*last_) < kUnchanged ? unchanged_ + 1 : 0;
      last_ = std::move(held[i]);
      if (first + i == 0 || is_better(metric_, tuning.costs.back(), tuning.costs[tuning.best])) {
        tuning.best = first + i;
        if (warm_) tuning.start = mean_of_folds(std::span(solutions).subspan(i * models_, models_));
      }
    }
    if (!warm_) return;
    solutions.erase(solutions.begin(), solutions.end() - static_cast<ptrdiff_t>(models_));
    previous_ = std::move(solutions);
  }

  // Why larger costs are not worth trying; empty: they are.
  std::string enough(const Tuning& tuning) const {
    if (unchanged_ >= kPatienceInCosts && has_learned(tuning)) return "larger costs no longer change the model";
    const TunedCost& best = tuning.costs[tuning.best];
    const double clear = std::max(kLeastLoss, best.deviation / std::sqrt(static_cast<double>(folds_)));
    const size_t after = tuning.costs.size() - 1 - tuning.best;
    if (after < kPatienceInCosts) return {};
    const bool below = std::all_of(
        tuning.costs.end() - kPatienceInCosts, tuning.costs.end(),
        [&](const TunedCost& cost) { return goodness(metric_, cost.value) < goodness(metric_, best.value) - clear; });
    if (!below) return {};
    return fmt::format("the {} has clearly passed its {}", words_of(metric_),
                       smaller_is_better(metric_) ? "minimum" : "peak");
  }

  // The objective divided by the cost never rises along the path, and begins near the losses of weights of 0. Until it
  // has fallen by more than the tolerance, any model is good enough, and one that does not change says nothing.
  bool has_learned(const Tuning& tuning) const {
    const auto losses = [](const TunedCost& cost) { return cost.objective / cost.cost; };
    return losses(tuning.costs.back()) <
           (1 - kFallenBy * std::min(options_.solve.tolerance, kMostTolerance)) * losses(tuning.costs.front());
  }

  bool done(const Tuning& tuning) const { return tuning.costs.size() == costs_.size(); }

  void save(FieldWriter& to, const Tuning& tuning) const {
    visit_fields(*this, tuning, to);
    save_solutions(tuning.start, "start", to);
    save_solutions(previous_, "previous", to);
  }

  void restore(FieldReader& from, Tuning& tuning) {
    last_.emplace(no_rows());
    visit_fields(*this, tuning, from);
    if (tuning.costs.empty() || tuning.costs.size() > costs_.size()) from.refuse_value("costs");
    if (tuning.best >= tuning.costs.size()) from.refuse_value("best");
    if (tuning.fold_values.size() != tuning.costs.size() * folds_) from.refuse_value("fold_values");
    tuning.start = restore_solutions(from, "start", warm_ ? classes_.positives.size() : 0);
    previous_ = restore_solutions(from, "previous", warm_ ? models_ : 0);
  }

 private:
  HeldOutRows no_rows() const { return {store_, classes_, folds_, options_.solve.seed, metric_}; }
  uint64_t bytes_of_rows() const { return HeldOutRows::bytes_for(store_, metric_, classes_.labels.size()); }

  // Of the models of the i-th cost that was trained now.
  double objective_of(const Summary& summary, size_t i) const {
    double sum = 0;
    for (size_t m = 0; m < models_; ++m) sum += summary.certificates[i * models_ + m].primal;
    return sum;
  }

  static void visit_fields(auto& self, auto& tuning, auto&& field) {
    field("costs", tuning.costs);
    field("fold_values", tuning.fold_values);
    field("best", tuning.best);
    field("summary", tuning.summary);
    field("unchanged", self.unchanged_);
    field("held_out", *self.last_);
  }

  Plan plan_for(size_t count, Context context) const {
    Problem problem = problem_;
    problem.tasks.assign(count * models_, {.cost = 1});
    context.reserved_bytes += (count + 1) * bytes_of_rows();
    return make_plan(problem, options_.solve, context);
  }

  // As many as fit in memory; where all rows are in memory then, fewer, since a reading is nothing to be saved there.
  size_t costs_at_once() const {
    const auto fitting_plan = [&](size_t count) -> std::optional<Plan> {
      try {
        return plan_for(count, context_);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::memory) throw;
        return {};
      }
    };
    size_t count = 1;
    Plan plan = plan_for(1, context_);
    if (plan.duals_in_file) {  // they are what the next cost begins with
      Context without_file = context_;
      without_file.checkpoint = {};
      plan_for(1, without_file);  // says what is too large
      fail(ErrorKind::memory, {say("give a little more `memory`"), say("use fewer `folds`")},
           "the {} models of one cost do not fit in the memory with the duals of all rows", models_);
    }
    while (count < std::min(kCostsInReading, costs_.size())) {
      const size_t more = count + 1;
      if (plan.rows != RowsHeld::streamed && more > kCostsInMemory) break;
      const std::optional<Plan> next = fitting_plan(more);
      if (!next || next->duals_in_file || (plan.rows != RowsHeld::streamed && next->rows == RowsHeld::streamed)) break;
      plan = *next;
      count = more;
    }
    return count;
  }

  std::vector<Solution> begin_with(size_t first, size_t count) {
    std::vector<Solution> solutions;
    for (size_t i = 0; i < count && !previous_.empty(); ++i)
      for (const Solution& solution : previous_)
        solutions.push_back(scaled(solution, costs_[first + i] / costs_[first - 1]));
    previous_.clear();
    return solutions;
  }

  // A row is in all folds but one: so many shares of its alpha are at most its cost, and w is a mean of w.
  std::vector<Solution> mean_of_folds(std::span<const Solution> solutions) const {
    const size_t classes = classes_.positives.size();
    const bool duals = !solutions[0].duals.empty();
    const double share = duals ? kWithinBounds / static_cast<double>(folds_ - 1) : 1 / static_cast<double>(folds_);
    std::vector<Solution> means;
    for (size_t c = 0; c < classes; ++c) {
      Solution mean{.weights = std::vector<float>(problem_.weights(), 0.0F)};
      if (duals) mean.duals = Duals(store_);
      for (size_t fold = 0; fold < folds_; ++fold) {
        const Solution& solution = solutions[fold * classes + c];
        if (duals) mean.duals.add_scaled(solution.duals, share);
        const std::vector<float>& weights =
            solution.weights_of_duals.empty() ? solution.weights : solution.weights_of_duals;
        for (size_t i = 0; i < mean.weights.size(); ++i)
          mean.weights[i] += static_cast<float>(share * double{weights[i]});
      }
      means.push_back(std::move(mean));
    }
    return means;
  }

  static void save_solutions(const std::vector<Solution>& solutions, std::string_view name, const FieldWriter& all) {
    for (size_t i = 0; i < solutions.size(); ++i) {
      const Solution& solution = solutions[i];
      FieldWriter to = all.inside(numbered(name, i));
      to("weights", solution.weights_of_duals.empty() ? solution.weights : solution.weights_of_duals);
      to("duals", solution.duals.all());
    }
  }

  std::vector<Solution> restore_solutions(const FieldReader& all, std::string_view name, size_t count) const {
    std::vector<Solution> solutions;
    for (size_t i = 0; i < count; ++i) {
      FieldReader from = all.inside(numbered(name, i));
      Solution solution{.weights = std::vector<float>(problem_.weights())};
      from("weights", std::span(solution.weights));
      if (from.count<double>("duals") > 0) {
        solution.duals = Duals(store_);
        from("duals", solution.duals.all());
      }
      solutions.push_back(std::move(solution));
    }
    return solutions;
  }

  const TrainOptions& options_;
  const uint32_t folds_;
  const Metric metric_;
  Context context_;
  const TrainObserver& observer_;
  const Store& store_;
  const Classes classes_;
  const Problem problem_;
  const std::vector<double> costs_;
  const Stopwatch since_;
  Rows rows_;          // in memory from one solve to the next
  bool warm_ = true;   // each cost begins where the one before it ended
  size_t models_ = 0;  // of one cost: folds times classes
  size_t at_once_ = 1;
  std::vector<Solution> previous_;   // of the last cost
  std::optional<HeldOutRows> last_;  // what they make of the rows
  uint64_t unchanged_ = 0;           // costs in a row that gave the same model
};

}  // namespace

bool as_good(const TunedCost& cost, const TunedCost& other_cost) {
  return hundredths_of_a_percent(cost.value) == hundredths_of_a_percent(other_cost.value);
}

const TunedCost& Tuning::smallest_within_deviation() const {
  const double reached = goodness(metric, costs[best].value);
  const double useless = goodness(metric, baseline);
  return *std::find_if(costs.begin(), costs.end(), [&](const TunedCost& cost) {
    const double its = goodness(metric, cost.value);
    return its >= reached - costs[best].deviation && (its > useless || reached <= useless);
  });
}

std::vector<double> parse_costs(const std::string& text) {
  const bool listed = text.find(',') != std::string::npos;
  std::vector<double> numbers = numbers_between(text, listed ? ',' : ':');
  if (numbers.size() < 2 || (!listed && numbers.size() > 3))
    fail(ErrorKind::usage, "`costs` '{}' is not FROM:TO:FACTOR, such as 0.01:100:10, or a list, such as 0.1,1,10",
         text);
  const bool good =
      std::all_of(numbers.begin(), numbers.end(), [](double number) { return number > 0 && std::isfinite(number); });
  if (listed) {
    if (!good) fail(ErrorKind::usage, "`costs` '{}': costs are above 0", text);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  } else {
    const double factor = numbers.size() == 3 ? numbers[2] : kPathFactor;
    if (!good || factor <= 1) fail(ErrorKind::usage, "`costs` '{}': costs are above 0 and the factor is above 1", text);
    if (numbers[1] < numbers[0])
      fail(ErrorKind::usage, "`costs` '{}' has no cost: it ends at {} and begins at {}", text, numbers[1], numbers[0]);
    numbers = costs_between(numbers[0], numbers[1], factor);
  }
  if (numbers.size() > kMostCosts)
    fail(ErrorKind::usage, {listed ? say("list fewer") : say("use a larger factor")},
         "`costs` '{}' has more than {} costs", text, kMostCosts);
  return numbers;
}

Tuning tune(const TrainOptions& asked, const TuneOptions& comparing, const Context& given,
            const TrainObserver& observer, const std::function<void(const TunedCost&)>& on_cost) {
  Tuning tuning;
  tuning.metric = comparing.metric;
  const std::optional<std::vector<double>>& costs = comparing.costs;
  const Store store = open_store(asked, comparing, given.team.size(), observer, tuning);
  const Resumed resumed = resume_with(given, asked.fresh, observer);
  const Context& context = resumed.context;
  tuning.memory_bytes = resumed.planned_bytes;
  // Costs will be larger than the first: the method is one for the last of them.
  TrainOptions hardest = asked;
  hardest.cost = std::max(asked.cost, costs ? costs->back() : kLargeCost);
  TrainOptions options = choose_solver(hardest, store, context, observer);
  options.solve.may_change = false;  // the next cost begins with the dual variables of this one
  tuning.method = options.solve.method;
  options.cost = asked.cost;
  // What cannot be told apart is refused before anything is read.
  const Classes classes = choose_classes(store.info(), options);
  std::map<int32_t, uint64_t> frequencies;
  for (const auto& [label, count] : store.info().labels) frequencies[classes.own_label(label)] += count;
  tuning.baseline = baseline_of(tuning.metric, frequencies, positive_label(classes));
  const std::vector<double> wanted =
      costs
          ? *costs
          : costs_between(smallest_useful_cost(store, options, watched(context, observer)), kLargestCost, kPathFactor);
  Path path(options, comparing, context, observer, store, wanted);
  Stages stages(context.checkpoint,
                fmt::format("{}{}costs: {}\n", identity_of(options, resumed.planned_bytes, store.info()),
                            identity_of(static_cast<const FoldOptions&>(comparing)), fmt::join(wanted, ",")),
                options.fresh);
  if (stages.resumed()) observer.say("resuming from the checkpoint '" + context.checkpoint.path + "'");
  if (stages.restore([&](FieldReader& from) { path.restore(from, tuning); }))
    for (const TunedCost& cost : tuning.costs) on_cost(cost);
  observer.say(fmt::format("{} costs from {:.3g} to {:.3g}, {} folds; {} {} at a time", wanted.size(), wanted.front(),
                           wanted.back(), comparing.folds, path.at_once(), path.at_once() == 1 ? "cost" : "costs"));
  const auto ended = [&] {
    if (path.done(tuning)) return true;
    if (!costs && !tuning.costs.empty()) tuning.ended = path.enough(tuning);
    return !tuning.ended.empty();
  };
  for (bool last = ended(); !last;) {
    const size_t before = tuning.costs.size();
    path.train_next(tuning, stages.checkpoint());
    last = ended();
    try {
      stages.finish([&](FieldWriter& to) { path.save(to, tuning); });
    } catch (const Error& error) {
      if (!last) throw;
      observer.say(fmt::format("{}\nThe answer stands; killed from here on, the last costs are trained again",
                               error.sentence()));
    }
    for (size_t i = before; i < tuning.costs.size(); ++i) on_cost(tuning.costs[i]);
  }
  return tuning;
}

}  // namespace linblock
