#include "cli/show/evaluation.h"

#include <algorithm>

#include "base/bytes.h"

namespace linblock::cli {

namespace {

constexpr size_t kMostTabled = 20;  // classes: more do not fit a screen

// What people read in percent.
bool is_share(Metric metric) { return metric != Metric::auc && metric != Metric::log_loss; }
constexpr size_t kLabelWidth = 11;

// Of the column with the labels: code points, not bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

size_t label_width(const Evaluation& result) {
  size_t width = kLabelWidth;
  for (const auto& [label, quality] : result.classes) width = std::max(width, width_of(result.label_names.show(label)));
  return width;
}

// True labels down, predicted ones across.
void print_confusion(const Evaluation& result) {
  const LabelNames& names = result.label_names;
  const size_t first = label_width(result);
  size_t width = 9;
  for (const auto& [label, quality] : result.classes)
    width = std::max({width, grouped(quality.rows).size(), width_of(names.show(label))});
  fmt::print("\n{:>{}} {}\n{:>{}}", "", first, "predicted", "label", first);
  for (const auto& [label, quality] : result.classes) fmt::print(" {:>{}}", names.show(label), width);
  fmt::print("\n");
  for (const auto& [label, quality] : result.classes) {
    fmt::print("{:>{}}", names.show(label), first);
    for (const auto& [predicted, ignored] : result.classes) {
      const auto rows = result.confusion.find({label, predicted});
      fmt::print(" {:>{}}", grouped(rows == result.confusion.end() ? 0 : rows->second), width);
    }
    fmt::print("\n");
  }
}

}  // namespace

Json evaluation_json(const Evaluation& result) {
  Json classes = Json::object();
  for (const auto& [label, quality] : result.classes)
    classes[result.label_names.show(label)] = {
        {"rows", quality.rows}, {"precision", quality.precision()}, {"recall", quality.recall()}, {"f1", quality.f1()}};
  Json confusion = Json::array();
  for (const auto& [pair, rows] : result.confusion)
    confusion.push_back({{"label", result.label_names.json(pair.first)},
                         {"predicted", result.label_names.json(pair.second)},
                         {"rows", rows}});
  Json json = {{"rows", result.rows},           {"accuracy", result.accuracy()},
               {"baseline", result.baseline()}, {"balanced_accuracy", result.balanced_accuracy()},
               {"macro_f1", result.macro_f1()}, {"per_class", classes},
               {"confusion", confusion}};
  json["auc"] = result.auc ? Json(*result.auc) : Json(nullptr);
  json["log_loss"] = result.log_loss ? Json(*result.log_loss) : Json(nullptr);
  return json;
}

void print_evaluation(const Evaluation& result) {
  fmt::print("accuracy {} ({} of {})\n", percent(result.accuracy()), grouped(result.correct), grouped(result.rows));
  fmt::print("baseline {} (always {})\n", percent(result.baseline()), result.label_names.show(result.most_frequent()));
  fmt::print("balanced {}\n", percent(result.balanced_accuracy()));
  fmt::print("macro F1 {}\n", percent(result.macro_f1()));
  if (result.auc) fmt::print("AUC      {:.5f}\n", *result.auc);
  if (result.log_loss) fmt::print("log-loss {:.5f}\n", *result.log_loss);
  const size_t width = label_width(result);
  fmt::print("{:>{}} {:>10} {:>10} {:>10} {:>10}\n", "label", width, "rows", "precision", "recall", "F1");
  for (const auto& [label, quality] : result.classes)
    fmt::print("{:>{}} {:>10} {:>10} {:>10} {:>10}\n", result.label_names.show(label), width, grouped(quality.rows),
               percent(quality.precision()), percent(quality.recall()), percent(quality.f1()));
  if (result.classes.size() <= kMostTabled) print_confusion(result);
}

std::string metric_text(Metric metric, double value) {
  return is_share(metric) ? percent(value) : fmt::format("{:.5f}", value);
}

std::string deviation_text(Metric metric, double deviation) {
  return is_share(metric) ? fmt::format("{:.2f}", 100 * deviation) : fmt::format("{:.5f}", deviation);
}

void warn_if_useless(Metric metric, double value, double baseline, const Terminal& terminal) {
  if (goodness(metric, value) > goodness(metric, baseline)) return;
  const std::string_view what = metric == Metric::auc        ? "a random order of the rows"
                                : metric == Metric::log_loss ? "the label frequencies for every row"
                                                             : "the most frequent label for every row";
  // Where one label is that frequent, accuracy hardly tells models apart.
  constexpr double kRare = 0.9;
  const bool says_little = metric == Metric::accuracy && baseline >= kRare;
  terminal.say(fmt::format(
      "warning: {} {} is no better than the baseline of {}, {}; {}", words_of(metric), metric_text(metric, value),
      metric_text(metric, baseline), what,
      says_little ? "with labels as rare as these accuracy says little: look at the balanced accuracy and F1 of "
                    "'linblock evaluate', and choose the cost with 'linblock tune --metric f1'"
                  : "try another --cost, --class-weight balanced, or scaled columns"));
}

}  // namespace linblock::cli
