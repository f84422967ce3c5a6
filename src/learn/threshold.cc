#include "learn/threshold.h"

#include <cmath>

#include "base/error.h"

namespace linblock {

namespace {

// Rows of the two classes above the threshold; all numbers are whole, and exact.
struct Counts {
  double first = 0;
  double second = 0;
  double first_above = 0;
  double second_above = 0;

  // Equal counts give equal values, bit by bit.
  double value(Metric metric, bool first_is_positive) const {
    const double second_below = second - second_above;
    if (metric == Metric::accuracy) return (first_above + second_below) / (first + second);
    if (metric == Metric::balanced_accuracy)
      return (first_above * second + second_below * first) / (2 * first * second);
    const double rows = first_is_positive ? first : second;
    const double correct = first_is_positive ? first_above : second_below;
    const double above = first_above + second_above;
    return 2 * correct / (rows + (first_is_positive ? above : first + second - above));
  }
};

// Of the thresholds from `low` to below `high`; infinite: there is no such end.
double between(double low, double high) {
  if (low <= 0 && 0 < high) return 0;
  if (!std::isfinite(low)) return high < 0 ? 2 * high : -1;
  if (!std::isfinite(high)) return 2 * low;
  const double middle = low + (high - low) / 2;
  return middle < high ? middle : low;
}

}  // namespace

ChosenThreshold choose_threshold(Metric metric, std::span<const double> decisions, std::span<const uint8_t> first,
                                 bool first_is_positive) {
  std::vector<std::pair<double, bool>> rows;
  Counts counts;
  Counts at_zero;
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (!std::isfinite(decisions[i])) continue;
    rows.emplace_back(decisions[i], first[i] != 0);
    (first[i] != 0 ? counts.first : counts.second) += 1;
    if (decisions[i] > 0) (first[i] != 0 ? at_zero.first_above : at_zero.second_above) += 1;
  }
  if (counts.first == 0 || counts.second == 0)
    fail(ErrorKind::input, {say("hold out more rows with `hold_out` or `calibrate`"), leave_out("threshold")},
         "`threshold`: {} rows are held out, and not of both classes", rows.size());
  at_zero.first = counts.first;
  at_zero.second = counts.second;
  std::sort(rows.begin(), rows.end());
  ChosenThreshold best{.metric = metric,
                       .at_zero = at_zero.value(metric, first_is_positive),
                       .rows = static_cast<uint64_t>(rows.size())};
  // From above all rows to below all of them.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool any = false;
  double high = kInfinity;
  for (size_t left = rows.size();;) {
    const double low = left == 0 ? -kInfinity : rows[left - 1].first;
    const double threshold = between(low, high);
    const double value = counts.value(metric, first_is_positive);
    const bool nearer = std::abs(threshold) < std::abs(best.threshold);
    if (!any || value > best.value || (value == best.value && nearer)) {
      best.threshold = threshold;
      best.value = value;
      any = true;
    }
    if (left == 0) return best;
    for (; left > 0 && rows[left - 1].first == low; --left)
      (rows[left - 1].second ? counts.first_above : counts.second_above) += 1;
    high = low;
  }
}

}  // namespace linblock
