// The choice of the cost: cross-validation along a path of costs, each begun where a smaller one ended.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "learn/cross_validate.h"

namespace linblock {

// "FROM:TO:FACTOR", or "COST,COST,...": from the smallest to the largest. Throws ErrorKind::usage.
std::vector<double> parse_costs(const std::string& text);

struct CostList {
  std::vector<double> costs = {};

  CostList(std::vector<double> all) : costs(std::move(all)) {}
  operator std::vector<double>() const { return costs; }
  static std::optional<CostList> read(std::string_view text) { return parse_costs(std::string(text)); }
  std::string show() const { return fmt::format("{}", fmt::join(costs, ",")); }
  static std::string what() { return "FROM:TO:FACTOR, or COST,..."; }
};

struct TuneOptions : FoldOptions {
  std::optional<std::vector<double>> costs = {};  // none: as many as are of use

  static constexpr auto options() {
    return std::tuple_cat(
        FoldOptions::options(),
        std::tuple{option_as<std::optional<CostList>>(
            "costs", &TuneOptions::costs, "FROM:TO:FACTOR|COST,...",
            "Costs to try (default: doubled, from the smallest useful one until it no longer helps)")});
  }
};

struct TunedCost {
  double cost = 0;
  double accuracy = 0;   // mean of the folds
  double value = 0;      // of the metric, likewise
  double deviation = 0;  // of the metric, over the folds
  double auc = 0;        // mean of the folds, two classes; 0: none
  double objective = 0;  // of all folds and classes together
  int passes = 0;        // of the reading that it shared with its neighbors
  double seconds = 0;

  static void visit_fields(auto& self, auto&& field) {
    field("cost", self.cost);
    field("accuracy", self.accuracy);
    field("value", self.value);
    field("deviation", self.deviation);
    field("auc", self.auc);
    field("objective", self.objective);
    field("passes", self.passes);
    field("seconds", self.seconds);
  }
};

// As far as a person can tell: in hundredths of a percent, or in ten thousandths. What is less is chance.
bool as_good(const TunedCost& cost, const TunedCost& other_cost);

struct Tuning : Source {
  Metric metric = Metric::accuracy;
  double baseline = 0;        // of the metric: baseline_of
  uint64_t memory_bytes = 0;  // that it was planned with: of a run that resumes, as much as it began with
  std::vector<TunedCost> costs;
  std::vector<double> fold_values;  // of the metric: of all folds of the first cost, and so on; not a number: none
  size_t best = 0;                  // among the costs: the smallest that is as good as any
  std::string ended = {};           // why no larger costs were tried; empty: the path's end
  Summary summary;
  AnyMethod method = Dual{};  // of the folds; `start` is for this one alone
  // For the model of all rows: the mean of the best cost's folds, one a class. Feasible, and near the best.
  std::vector<Solution> start;

  size_t folds() const { return costs.empty() ? 0 : fold_values.size() / costs.size(); }
  // The smallest cost whose value is within one standard deviation of the best, so as good by the folds' spread, and
  // that is better than the baseline if the best is.
  const TunedCost& smallest_within_deviation() const;
};

// Costs increase; none begins with the smallest useful cost and goes on until the model no longer changes or the metric
// has clearly passed its best value.
Tuning tune(const TrainOptions& options, const TuneOptions& tuning, const Context& context,
            const TrainObserver& observer, const std::function<void(const TunedCost&)>& on_cost);

}  // namespace linblock
