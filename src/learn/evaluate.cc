#include "learn/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/memory.h"

namespace linblock {

namespace {

constexpr double kLeastProbability = 1e-15;  // so that one sure mistake does not make the log-loss infinite

constexpr uint64_t kLeastReadingBytes = uint64_t{4} << 20;  // beside a model that takes all of the memory too

uint64_t reading_bytes(const Model& model, uint64_t memory_bytes) {
  const uint64_t held = kProgramBytes + model.weights.size() * sizeof(float);
  return std::max(kLeastReadingBytes, memory_bytes > held ? memory_bytes - held : 0);
}

}  // namespace

ApplyReport apply_model(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                        const std::function<void(const Decision&)>& visit, const ReadContext& context) {
  ApplyReport report;
  std::vector<double> decisions(model.columns());
  const ExampleOptions options{.index_base = model.index_base,
                               .normalized = model.normalized,
                               .memory_bytes = reading_bytes(model, memory_bytes),
                               .context = context};
  report.rows = for_each_example(inputs, options, [&](const Example& example) {
    model.decide(example.index, example.value, decisions, report.unknown_features);
    if (!example.label) ++report.unlabelled;
    visit({.label = example.label, .decisions = decisions, .predicted = model.label_of(decisions)});
  });
  return report;
}

std::optional<double> area_under_curve(std::vector<std::pair<float, bool>>& scores) {
  std::sort(scores.begin(), scores.end());
  double positives = 0;
  double negatives = 0;
  double wins = 0;
  for (size_t i = 0; i < scores.size();) {
    size_t end = i;
    double tied_positives = 0;
    double tied_negatives = 0;
    for (; end < scores.size() && scores[end].first == scores[i].first; ++end)
      (scores[end].second ? tied_positives : tied_negatives) += 1;
    wins += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
    i = end;
  }
  if (positives == 0 || negatives == 0) return {};
  return wins / (positives * negatives);
}

void Evaluation::add(int32_t label, int32_t predicted) {
  ++rows;
  ++classes[label].rows;
  ++classes[predicted].predicted;
  ++confusion[{label, predicted}];
  if (label != predicted) return;
  ++correct;
  ++classes[label].correct;
}

double Evaluation::macro_f1() const {
  double sum = 0;
  for (const auto& [label, quality] : classes) sum += quality.f1();
  return classes.empty() ? 0 : sum / static_cast<double>(classes.size());
}

Evaluation evaluate(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                    const ReadContext& context) {
  Evaluation result;
  std::vector<std::pair<float, bool>> scores;  // two classes: 8 bytes a row
  double log_loss = 0;
  std::vector<double> shares(model.labels.size());
  const auto count = [&](const Decision& decision) {
    if (!decision.label)
      fail(ErrorKind::input, "row {} has no label: evaluate needs labels; use predict for data without", result.rows);
    const int32_t label = model.own_label(*decision.label);
    result.add(label, decision.predicted);
    if (model.labels.size() == 2)
      scores.emplace_back(
          static_cast<float>(decision.decisions[0] - (model.columns() == 2 ? decision.decisions[1] : 0)),
          label == model.labels[0]);
    if (model.has_probability()) {
      model.probabilities(decision.decisions, shares);
      const auto found = std::find(model.labels.begin(), model.labels.end(), label);
      const double share = found == model.labels.end() ? 0 : shares[static_cast<size_t>(found - model.labels.begin())];
      log_loss -= std::log(std::max(share, kLeastProbability));
    }
  };
  result.report = apply_model(model, inputs, memory_bytes, count, context);
  result.auc = area_under_curve(scores);
  if (model.has_probability()) result.log_loss = log_loss / static_cast<double>(result.rows);
  return result;
}

}  // namespace linblock
