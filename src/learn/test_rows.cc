#include "learn/test_rows.h"

#include <algorithm>

#include "base/dot.h"
#include "base/error.h"
#include "base/file.h"
#include "learn/examples.h"
#include "objective/class_certificate.h"

namespace linblock {

namespace {

constexpr uint64_t kLeastReading = uint64_t{2} << 20;
constexpr uint64_t kMostReading = uint64_t{16} << 20;
constexpr uint64_t kReadingShare = 24;  // of the memory: one part in so many
constexpr uint64_t kBytesOfARow = 256;
constexpr uint64_t kUsedOfReading = 3;  // lines and decompression take a third of what they are told at most

}  // namespace

TestRows::TestRows(const TrainOptions& options, const Store& store, const Classes& classes, const Context& context)
    : options_(options),
      store_(store),
      classes_(classes),
      reading_bytes_(std::clamp(context.memory_bytes / kReadingShare, kLeastReading, kMostReading)),
      stop_(context.stop) {}

uint64_t TestRows::reserved_bytes() const {
  if (!wanted()) return 0;
  // Of text the rows are not known: a share of its bytes, as if they were not short.
  uint64_t rows = 0;
  for (const std::string& input : options_.test)
    rows += is_store(input) ? read_manifest(input).rows : file_stamp(input).bytes / kBytesOfARow;
  const uint64_t best = classes_.columns() > 2 ? rows * sizeof(Best) : 0;
  return store_.features().memory_bytes() + reading_bytes_ + best;
}

void TestRows::for_each(const std::vector<std::span<const float>>& weights,
                        const std::function<void(int32_t, std::span<const double>)>& visit) const {
  const StoreInfo& info = store_.info();
  const FeatureMap& features = store_.features();
  std::vector<uint32_t> index;
  std::vector<float> value;
  std::vector<double> decisions(classes_.all_at_once ? classes_.columns() : weights.size());
  const ExampleOptions reading{.index_base = info.index_base,
                               .normalized = info.normalized,
                               .memory_bytes = kUsedOfReading * reading_bytes_,
                               .context = {.stop = stop_}};
  for_each_example(options_.test, reading, [&](const Example& example) {
    if (!example.label) fail(ErrorKind::input, "`test`: a row has no label, so it cannot be tested on");
    index.clear();
    value.clear();
    for (size_t k = 0; k < example.index.size(); ++k) {
      if (example.index[k] >= info.feature_numbers()) continue;
      index.push_back(features.number(example.index[k]));
      value.push_back(example.value[k]);
    }
    if (classes_.all_at_once) exact_scores({.index = index, .value = value}, options_.bias, weights.front(), decisions);
    for (size_t i = 0; i < weights.size() && !classes_.all_at_once; ++i) {
      decisions[i] = exact_dot(index, value, weights[i].data());
      if (options_.bias >= 0) decisions[i] += options_.bias * double{weights[i].back()};
    }
    visit(*example.label, decisions);
  });
}

TestResult TestRows::test(const std::vector<std::span<const float>>& weights) const {
  TestResult result;
  for_each(weights, [&](int32_t label, std::span<const double> decisions) {
    ++result.rows;
    if (classes_.is_right(label, classes_.label_of(decisions))) ++result.correct;
  });
  return result;
}

void TestRows::add(const std::vector<std::span<const float>>& weights, size_t first) {
  size_t row = 0;
  for_each(weights, [&](int32_t label, std::span<const double> decisions) {
    const auto largest = std::max_element(decisions.begin(), decisions.end());
    const Best own{.label = label,
                   .predicted = classes_.labels[first + static_cast<size_t>(largest - decisions.begin())],
                   .decision = *largest};
    if (first == 0)
      best_.push_back(own);
    else if (row < best_.size() && own.decision > best_[row].decision)
      best_[row] = own;
    ++row;
  });
}

TestResult TestRows::result() const {
  TestResult result{.rows = best_.size()};
  for (const Best& best : best_)
    if (classes_.is_right(best.label, best.predicted)) ++result.correct;
  return result;
}

}  // namespace linblock
