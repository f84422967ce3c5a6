#include <algorithm>

#include "base/bytes.h"
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"
#include "learn/model_weights.h"

namespace linblock::cli {

namespace {

constexpr size_t kUsualTop = 10;
constexpr size_t kMostTop = 1'000'000;  // they are held in memory

struct DiffRequest {
  std::string before;
  std::string after;
  std::vector<std::string> inputs;
  size_t top = kUsualTop;
  uint64_t memory_bytes = 0;

  static constexpr auto options() {
    return std::tuple{
        option("top", &DiffRequest::top, "N", "Changes to show for each class", {.from = 1, .to = kMostTop})};
  }
};

void print_table(const std::vector<ColumnDifference>& columns, const LabelNames& names,
                 const std::optional<LabelChanges>& labels) {
  for (const ColumnDifference& column : columns) {
    fmt::print("class {}: cosine {:.6f}, norm {:.6g} to {:.6g}\n", names.show(column.label), column.cosine,
               column.norm_before, column.norm_after);
    const bool same_threshold = column.threshold_before == column.threshold_after;
    if (column.largest.empty() && column.bias_before == column.bias_after && same_threshold) {
      fmt::print("  no weight differs\n");
      continue;
    }
    const bool named = std::any_of(column.largest.begin(), column.largest.end(),
                                   [](const WeightChange& change) { return !change.name.empty(); });
    fmt::print("{:>12}  {:>12}  {:>12}  {:>12}{}\n", "feature", "before", "after", "change", named ? "  name" : "");
    const auto print = [](const std::string& feature, double before, double after, const std::string& name = "") {
      fmt::print("{:>12}  {:>12.6g}  {:>12.6g}  {:>+12.6g}{}{}\n", feature, before, after, after - before,
                 name.empty() ? "" : "  ", name);
    };
    if (column.bias_before != 0 || column.bias_after != 0) print("bias", column.bias_before, column.bias_after);
    if (!same_threshold) print("threshold", column.threshold_before, column.threshold_after);
    for (const WeightChange& change : column.largest)
      print(std::to_string(change.feature), change.before, change.after, change.name);
  }
  if (!labels) return;
  const auto share = [](uint64_t part, uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
  };
  fmt::print("{} of {} rows get another label ({})\n", grouped(labels->changed), grouped(labels->rows),
             percent(share(labels->changed, labels->rows)));
  if (labels->labeled > 0)
    fmt::print("accuracy {} to {}\n", percent(share(labels->correct_before, labels->labeled)),
               percent(share(labels->correct_after, labels->labeled)));
}

Json to_json(const std::vector<ColumnDifference>& columns, const LabelNames& names,
             const std::optional<LabelChanges>& labels) {
  Json json;
  json["classes"] = Json::array();
  for (const ColumnDifference& column : columns) {
    Json one = {{"label", names.json(column.label)}, {"cosine", column.cosine},
                {"norm_before", column.norm_before}, {"norm_after", column.norm_after},
                {"bias_before", column.bias_before}, {"bias_after", column.bias_after}};
    one["threshold_before"] = column.threshold_before;
    one["threshold_after"] = column.threshold_after;
    one["changes"] = Json::array();
    for (const WeightChange& change : column.largest) {
      Json item = {{"feature", change.feature}, {"before", change.before}, {"after", change.after}};
      if (!change.name.empty()) item["name"] = change.name;
      one["changes"].push_back(item);
    }
    json["classes"].push_back(one);
  }
  if (labels)
    json["labels"] = {{"rows", labels->rows},
                      {"changed", labels->changed},
                      {"labeled", labels->labeled},
                      {"correct_before", labels->correct_before},
                      {"correct_after", labels->correct_after}};
  return json;
}

void run_diff(const DiffRequest& request, Session& session) {
  const std::vector<ColumnDifference> columns = difference_of(request.before, request.after, request.top);
  const LabelNames names = ModelRows(request.before).header().label_names;
  std::optional<LabelChanges> labels;
  if (!request.inputs.empty()) {
    ProgressBar bar(session.terminal, "comparing");
    labels = label_changes(request.before, request.after, request.inputs, request.memory_bytes, reading(bar, session));
    bar.finish();
  }
  if (session.json)
    print_line(to_json(columns, names, labels));
  else
    print_table(columns, names, labels);
}

}  // namespace

void add_diff(Parser& parser, Session& session) {
  Command command = parser.add("diff", "Compare two models: weights, and labels of given rows");
  if (!command.wanted()) return;
  auto request = std::make_shared<DiffRequest>();
  command.argument("MODEL", "The older model", request->before);
  command.argument("NEWER", "The newer model", request->after);
  command.optional_arguments("INPUT", "Rows on which to compare labels: svmlight text, or one store", request->inputs);
  command.settings(settings_of(*request));
  add_memory_option(command, request->memory_bytes);
  add_json_option(command, session);
  add_quiet_option(command, session, "Print errors and the result only");
  command.examples(
      "  linblock diff monday tuesday\n"
      "  linblock diff monday tuesday test.svm\n"
      "  linblock diff monday tuesday --top 3 --json | jq '.classes[].cosine'");
  command.run([request, &session] { run_diff(*request, session); });
}

}  // namespace linblock::cli
