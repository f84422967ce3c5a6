#include "learn/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/memory.h"

namespace linblock {

namespace {

constexpr size_t kTextBytes = size_t{256} << 10;

constexpr uint64_t kLeastReadingBytes = uint64_t{4} << 20;  // beside a model that takes all of the memory too

uint64_t reading_bytes(const Model& model, uint64_t memory_bytes) {
  const uint64_t held = kProgramBytes + model.weights.size() * sizeof(float);
  return std::max(kLeastReadingBytes, memory_bytes > held ? memory_bytes - held : 0);
}

ExampleOptions options_for(const Model& model, uint64_t memory_bytes, LabelNames* names, const ReadContext& context) {
  return {.index_base = model.index_base,
          .normalized = model.normalized,
          .memory_bytes = reading_bytes(model, memory_bytes),
          .word_labels = !(names == nullptr ? model.label_names : *names).empty(),
          .names = names,
          .context = context};
}

Decision decide(const Model& model, const Example& example, std::span<double> decisions, ApplyReport& report) {
  model.decide(example.index, example.value, decisions, report.unknown_features);
  if (!example.label) ++report.unlabeled;
  return {.label = example.label,
          .index = example.index,
          .value = example.value,
          .decisions = decisions,
          .predicted = model.label_of(decisions)};
}

// A word without a code: codes follow from the order of the rows, and predictions are made in any order.
Decision without_label(Decision decision) {
  decision.label.reset();
  return decision;
}

ApplyReport apply(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes, LabelNames* names,
                  const std::function<void(const Decision&)>& visit, const ReadContext& context) {
  ApplyReport report;
  std::vector<double> decisions(model.columns());
  report.rows = for_each_example(inputs, options_for(model, memory_bytes, names, context),
                                 [&](const Example& example) { visit(decide(model, example, decisions, report)); });
  return report;
}

}  // namespace

ApplyReport apply_model(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                        const std::function<void(const Decision&)>& visit, const ReadContext& context) {
  LabelNames names = model.label_names;
  return apply(model, inputs, memory_bytes, &names, visit, context);
}

ApplyReport apply_model(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                        LabelNames& names, const std::function<void(const Decision&)>& visit,
                        const ReadContext& context) {
  return apply(model, inputs, memory_bytes, &names, visit, context);
}

ApplyReport predict(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes, const Team& team,
                    const std::function<void(const Decision&, std::string&)>& append,
                    const std::function<void(const std::string&)>& write, const ReadContext& context) {
  std::string text;
  const auto flush = [&](std::string& full) {
    write(full);
    full.clear();
  };
  if (are_store(inputs)) {
    const auto add = [&](const Decision& decision) {
      append(without_label(decision), text);
      if (text.size() >= kTextBytes) flush(text);
    };
    const ApplyReport report = apply(model, inputs, memory_bytes, nullptr, add, context);
    flush(text);
    return report;
  }
  ApplyReport report;
  const auto work = [&](const ParsedRows& rows, const std::function<void()>& wait) {
    ApplyReport part;
    std::string lines;
    std::vector<double> decisions(model.columns());
    for (size_t i = 0; i < rows.size(); ++i) {
      append(without_label(decide(model, example_of(rows, i), decisions, part)), lines);
      if (lines.size() < kTextBytes) continue;
      wait();
      flush(lines);
    }
    wait();
    report.unlabeled += part.unlabeled;
    report.unknown_features += part.unknown_features;
    flush(lines);
  };
  report.rows = for_each_piece(inputs, options_for(model, memory_bytes, nullptr, context), team, work);
  return report;
}

void Evaluation::add(int32_t label, int32_t predicted) {
  ClassCounts::add(label, predicted);
  ++confusion[{label, predicted}];
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
      const auto place = std::find(model.labels.begin(), model.labels.end(), label);
      const double share = place == model.labels.end() ? 0 : shares[static_cast<size_t>(place - model.labels.begin())];
      log_loss -= std::log(std::max(share, kLeastProbability));
    }
  };
  result.label_names = model.label_names;
  result.report = apply_model(model, inputs, memory_bytes, result.label_names, count, context);
  result.auc = area_under_curve(scores);
  if (model.has_probability()) result.log_loss = log_loss / static_cast<double>(result.rows);
  return result;
}

}  // namespace linblock
