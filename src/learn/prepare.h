// What training, cross-validation and the choice of a cost have in common: from options and text to a store, classes
// and a problem.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "learn/model.h"
#include "solve/solve.h"
#include "store/core/pack.h"

namespace linblock {

// A label as the user writes it: a number or a word. Which it is, the data tell.
struct LabelText {
  std::string text;

  LabelText(int32_t number) : text(std::to_string(number)) {}
  explicit LabelText(std::string word) : text(std::move(word)) {}
  static std::optional<LabelText> read(std::string_view text);
  std::string show() const { return text; }
  static std::string what() { return "a label: a number or a word"; }
  // Numbers by value, and before words.
  std::strong_ordering operator<=>(const LabelText& other) const;
  bool operator==(const LabelText& other) const = default;
};

// The label that is told from all others, where there is one. Any word may be a label, so none of them means "none".
struct PositiveLabel : std::optional<LabelText> {
  using std::optional<LabelText>::optional;
  using std::optional<LabelText>::operator=;

  static std::optional<PositiveLabel> read(std::string_view text);
  std::string show() const { return has_value() ? (*this)->text : "chosen"; }
  static std::string what() { return LabelText::what(); }
};

// Factors of the cost, by label: "1=2.5,-1=0.5", or "balanced", which makes all classes count the same.
struct ClassWeights {
  static constexpr bool kRepeats = true;

  std::map<LabelText, double> factors = {};
  bool balanced = false;

  static std::optional<ClassWeights> read(std::string_view text);
  std::string show() const;
  static std::string what() { return "LABEL=WEIGHT (such as 1=2.5 or spam=2.5) or balanced"; }
};

// What models are compared by (learn/metric.h).
enum class Metric { accuracy, balanced_accuracy, f1, auc, log_loss };
constexpr auto choices(Metric) {
  return std::array{std::pair{"accuracy", Metric::accuracy}, std::pair{"balanced-accuracy", Metric::balanced_accuracy},
                    std::pair{"f1", Metric::f1}, std::pair{"auc", Metric::auc},
                    std::pair{"log-loss", Metric::log_loss}};
}

// One that follows from counts of labels and predictions, so that a decision threshold changes it.
struct CountedMetric {
  Metric metric = Metric::accuracy;

  constexpr CountedMetric(Metric any) : metric(any) {}
  constexpr operator Metric() const { return metric; }
  static std::optional<CountedMetric> read(std::string_view text) {
    const std::optional<Metric> metric = Text<Metric>::read(text, {});
    return metric && *metric <= Metric::f1 ? std::optional(CountedMetric(*metric)) : std::nullopt;
  }
  std::string show() const { return Text<Metric>::show(metric); }
  static std::string what() { return "accuracy, balanced-accuracy or f1"; }
};

struct TrainOptions {
  std::vector<std::string> inputs = {};  // svmlight text, or one store
  std::string store = {};                // where text is packed; empty: INPUT.linblock beside it
  PackOptions pack = {};                 // for text
  AnyLoss loss = SquaredHinge{};
  double cost = 1;
  double bias = -1;
  bool free_bias = false;
  std::optional<double> truncate = {};  // s: no row's loss counts as more than 1 + s
  PositiveLabel positive = {};          // that label against all others
  ClassWeights class_weight = {};
  std::vector<std::string> test = {};    // looked at after each pass
  double calibrate = 0;                  // share of the rows that is held out for probabilities
  std::optional<Metric> threshold = {};  // that the decision threshold is best by, on held-out rows
  std::optional<double> hold_out = {};   // the share for it; none: that of `calibrate`, or a usual one
  std::string warm = {};                 // a model whose state is gone on from
  std::string keep_state = {};           // where the state is kept; empty: nowhere
  ModelFormat model_format = ModelFormat::text;
  SolveOptions solve = {};
  bool choose_method = false;      // the best for the data, instead of the one in `solve`
  std::string method_reason = {};  // why that one, where it was not named: "--warm starts from dual variables"
  bool fresh = false;              // forget a checkpoint

  // Of the rows, for probabilities and the threshold.
  double share_held_out() const {
    constexpr double kUsual = 0.2;
    return calibrate > 0 ? calibrate : threshold ? hold_out.value_or(kUsual) : 0;
  }

  // The problem. What stands in braces in help follows from the list of methods (request.cc).
  static constexpr auto options() {
    return std::tuple{
        option("cost", &TrainOptions::cost, "C", "Cost C: a larger C fits the training rows more closely",
               {.above = 0}),
        option("truncate", &TrainOptions::truncate, "S",
               "Limit every row's loss to 1 + S, against wrong labels (default: none{usual truncation})", {.from = 0},
               "none"),
        option_as<NumberOrNone<-1>>("bias", &TrainOptions::bias, "B",
                                    "Intercept: add a constant feature of this value, such as 1"),
        option("free_bias", &TrainOptions::free_bias, "",
               "Do not penalize the bias, a constant feature of 1 ({free bias})"),
        option("positive", &TrainOptions::positive, "LABEL", "This label against all others (default: all labels)"),
        option("class_weight", &TrainOptions::class_weight, "LABEL=W",
               "Multiply the cost of a label's rows: LABEL=W (repeatable), or balanced (default: none)")};
  }
  // For train alone.
  static constexpr auto model_options() {
    return std::tuple{
        option("warm", &TrainOptions::warm, "MODEL",
               "Start from this model: from its state (dual, pegasos), even if rows were added or removed, or from its "
               "weights (newton, softmax, primal, cmls)"),
        option("calibrate", &TrainOptions::calibrate, "FRACTION",
               "Hold out this share of the rows and fit probabilities to them, for hinge losses (default: none)",
               {.above = 0, .to = 0.5}),
        option_as<std::optional<CountedMetric>>(
            "threshold", &TrainOptions::threshold, "METRIC",
            "Choose the decision threshold on held-out rows, two classes: the best by accuracy, balanced-accuracy or "
            "f1 (default: 0)",
            {}, "none"),
        option("hold_out", &TrainOptions::hold_out, "FRACTION",
               "Share of the rows that the threshold is chosen on (default: 0.2, or as for calibration)",
               {.above = 0, .to = 0.5}),
        option("model_format", &TrainOptions::model_format, "FORMAT",
               "text, which LIBLINEAR reads, or binary, which is smaller and loads faster")};
  }
  static constexpr auto place_options() {
    return std::tuple{
        option("store", &TrainOptions::store, "DIR", "Where to pack text (default: INPUT.linblock)"),
        option("fresh", &TrainOptions::fresh, "", "Start over, even if there is a checkpoint", {}, "auto", false)};
  }
};

// What happens on the way, for whoever shows it.
struct TrainObserver {
  std::function<void(const std::string&)> say = [](const std::string&) {};
  PackContext packing = {};
  std::function<void(const Plan&)> plan = [](const Plan&) {};
  std::function<void(const BlockReport&)> block = [](const BlockReport&) {};
  ReadingObserver reading = [](std::string_view, double) {};
  std::function<void(const PassReport&, std::optional<double> test_accuracy)> pass = [](const PassReport&,
                                                                                        std::optional<double>) {};
};

// What was learned from: every report begins with it.
struct Source {
  std::string store = {};
  bool packed = false;  // now, and not before
  double pack_seconds = 0;
  StoreInfo info = {};
};

// The store for these inputs: the one named, or the text packed; a store made from the same text before is used again.
// The text is packed on so many threads.
Store open_store(const TrainOptions& options, size_t threads, const TrainObserver& observer, Source& source);

// The options with the method that is best for the data, where one is to be chosen; it is said which is used, and why.
// Columns are made where the method needs them and they are not there.
TrainOptions choose_solver(const TrainOptions& options, const Store& store, const Context& context,
                           const TrainObserver& observer);

// The same choice, without a word, and nothing is made.
TrainOptions with_method(const TrainOptions& options, const Store& store, const Context& context);

// What is to be told apart.
struct Classes {
  std::vector<int32_t> labels = {};     // of the model, in its order
  LabelNames label_names = {};          // where they are words
  std::vector<int32_t> positives = {};  // one a task
  bool against_rest = false;            // one label against all others, which labels[1] stands for
  bool all_at_once = false;             // a single task has a decision for every label

  size_t columns() const { return all_at_once ? labels.size() : positives.size(); }

  // The label that the decisions of all tasks speak for; `threshold`: of two classes.
  int32_t label_of(std::span<const double> decisions, std::optional<double> threshold = {}) const;
  // What a label of the data is to the model.
  int32_t own_label(int32_t label) const { return against_rest && label != labels[0] ? labels[1] : label; }
  bool is_right(int32_t label, int32_t predicted) const { return own_label(label) == predicted; }
};
// Nothing: no row has this label.
std::optional<int32_t> find_label(const StoreInfo& info, const LabelText& label);
Classes choose_classes(const StoreInfo& info, const TrainOptions& options);

// A task for each class, at the options' cost.
Problem make_problem(const Store& store, const TrainOptions& options, const Classes& classes);

// The options, the data and the memory that a run's bits depend on, one a line.
std::string identity_of(const TrainOptions& options, uint64_t memory_bytes, const StoreInfo& info);

// What is watched while a problem is solved.
Context watched(const Context& context, const TrainObserver& observer);

// LIBLINEAR's name.
std::string solver_type(const TrainOptions& options);

}  // namespace linblock
