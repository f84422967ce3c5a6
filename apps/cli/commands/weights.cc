#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"
#include "learn/model_weights.h"

namespace linblock::cli {

namespace {

constexpr size_t kUsualTop = 20;
constexpr size_t kMostTop = 1'000'000;  // they are held in memory
constexpr size_t kTextBytes = size_t{256} << 10;

enum class Format { table, csv, json, npy };

constexpr auto choices(Format) {
  return std::array{std::pair{"table", Format::table}, std::pair{"csv", Format::csv}, std::pair{"json", Format::json},
                    std::pair{"npy", Format::npy}};
}

struct WeightsRequest {
  std::string model;
  std::string output;
  size_t top = kUsualTop;
  Format format = Format::table;

  static constexpr auto options() {
    return std::tuple{
        option("top", &WeightsRequest::top, "N", "Weights to show for each class", {.from = 1, .to = kMostTop}),
        option("as", &WeightsRequest::format, "FORMAT", "table, csv, json or npy: all weights as a numpy array")};
  }
};

// A value in the fewest digits that mean the same float.
std::string number(double weight) {
  std::array<char, 40> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(weight));
  return {digits.data(), end};
}

// Of two classes, one column of weights speaks for both.
std::string title(const Model& model, const ColumnWeights& column) {
  if (model.columns() > 1) return fmt::format("class {}", model.label_names.show(column.label));
  const double threshold = model.threshold.value_or(0);
  return fmt::format("class {} (above {:.6g}) against {} (below {:.6g})", model.label_names.show(model.labels[0]),
                     threshold, model.against_rest ? "all others" : model.label_names.show(model.labels[1]), threshold);
}

std::string table(const Model& model, const std::vector<ColumnWeights>& columns) {
  std::string text;
  for (const ColumnWeights& column : columns) {
    text += fmt::format("{}{}: {} of {} weights are not 0, norm {:.6g}\n", text.empty() ? "" : "\n",
                        title(model, column), grouped(column.nonzeros), grouped(model.features), column.norm);
    text += fmt::format("{:>12}  {:>12}{}\n", "feature", "weight", model.feature_names ? "  name" : "");
    if (model.bias >= 0) text += fmt::format("{:>12}  {:>12.6g}\n", "bias", column.bias);
    for (const FeatureWeight& weight : column.largest)
      text += fmt::format("{:>12}  {:>12.6g}{}{}\n", weight.feature, weight.weight, weight.name.empty() ? "" : "  ",
                          weight.name);
  }
  if (model.threshold) text += fmt::format("decision threshold {:.6g}\n", *model.threshold);
  return text;
}

// As RFC 4180 has it.
std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"") == std::string::npos) return name;
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"') text += c;
    text += c;
  }
  return text + '"';
}

// The column of names is there where the model has names.
std::string csv(const Model& model, const std::vector<ColumnWeights>& columns) {
  const bool named = static_cast<bool>(model.feature_names);
  std::string text = fmt::format("class,feature,weight{}\n", named ? ",name" : "");
  for (const ColumnWeights& column : columns) {
    const std::string label = model.label_names.show(column.label);  // a name has neither commas nor quotes
    if (model.bias >= 0) text += fmt::format("{},bias,{}{}\n", label, number(column.bias), named ? "," : "");
    for (const FeatureWeight& weight : column.largest)
      text += fmt::format("{},{},{}{}{}\n", label, weight.feature, number(weight.weight), named ? "," : "",
                          quoted(weight.name));
  }
  return text;
}

std::string json(const Model& model, const std::vector<ColumnWeights>& columns) {
  Json all = {
      {"labels", model.label_names.json(model.labels)}, {"features", model.features}, {"index_base", model.index_base}};
  if (model.threshold) all["threshold"] = *model.threshold;
  all["classes"] = Json::array();
  for (const ColumnWeights& column : columns) {
    Json one = {{"label", model.label_names.json(column.label)},
                {"bias", model.bias >= 0 ? Json(column.bias) : Json(nullptr)},
                {"nonzeros", column.nonzeros},
                {"norm", column.norm}};
    one["weights"] = Json::array();
    for (const FeatureWeight& weight : column.largest) {
      Json item = {{"feature", weight.feature}, {"weight", weight.weight}};
      if (!weight.name.empty()) item["name"] = weight.name;
      one["weights"].push_back(item);
    }
    all["classes"].push_back(one);
  }
  return all.dump() + "\n";
}

// numpy's format 1.0: a class in each row, a feature in each column, the bias last. A model has a feature's weights
// together, which is numpy's Fortran order.
std::string npy_header(const Model& model, uint64_t columns) {
  std::string description =
      fmt::format("{{'descr': '<f4', 'fortran_order': True, 'shape': ({}, {}), }}", model.columns(), columns);
  constexpr size_t kMagicBytes = 10;
  constexpr size_t kAligned = 64;
  description.append(kAligned - (kMagicBytes + description.size() + 1) % kAligned, ' ');
  description += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(description.size() & 0xFF);
  text += static_cast<char>(description.size() >> 8);
  return text + description;
}

void run_weights(const WeightsRequest& request, bool top_given, Session& session) {
  if (request.format == Format::npy && request.output.empty())
    fail(ErrorKind::usage, "--as npy writes binary numbers: name a file with -o FILE");
  if (request.format == Format::npy && top_given)
    fail(ErrorKind::usage, "--as npy writes all weights: leave out --top");
  if (!request.output.empty()) Outputs({request.model}).add_text(request.output, "--output");
  ModelRows rows(request.model);
  const Model& model = rows.header();
  if (!model.warning.empty()) session.terminal.say("warning: " + model.warning);
  const auto write_to = [](const File& file, const std::string& text) {
    file.write_next({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  };
  if (request.format == Format::npy) {
    File file = File::create_output(request.output);
    write_to(file, npy_header(model, rows.rows()));
    std::vector<float> row(model.columns());
    std::string bytes;
    for (uint64_t i = 0; i < rows.rows(); ++i) {
      if (session.stop) fail(ErrorKind::interrupted, "interrupted");
      rows.next(row);
      bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
      if (bytes.size() < kTextBytes) continue;
      write_to(file, bytes);
      bytes.clear();
    }
    write_to(file, bytes);
    file.close();
    session.terminal.say(fmt::format("wrote {} x {} weights to {}: numpy.load reads them, a class in each row{}",
                                     model.columns(), grouped(rows.rows()), request.output,
                                     model.bias >= 0 ? ", the bias last" : ""));
    return;
  }
  const std::vector<ColumnWeights> columns = largest_weights(rows, request.top);
  const std::string text = request.format == Format::csv    ? csv(model, columns)
                           : request.format == Format::json ? json(model, columns)
                                                            : table(model, columns);
  File file = request.output.empty() ? File::standard_output() : File::create_output(request.output);
  write_to(file, text);
  file.close();
}

}  // namespace

void add_weights(Parser& parser, Session& session) {
  Command command = parser.add("weights", "Show the largest weights of a model");
  if (!command.wanted()) return;
  auto request = std::make_shared<WeightsRequest>();
  command.argument("MODEL", "A model of linblock or LIBLINEAR", request->model);
  command.settings(settings_of(*request));
  command.option("-o,--output", "FILE", "The file to write (default: standard output)", request->output);
  add_quiet_option(command, session);
  command.examples(
      "  linblock weights model\n"
      "  linblock weights model --top 100 --as csv -o weights.csv\n"
      "  linblock weights model --as npy -o weights.npy\n"
      "  linblock weights model --as json | jq '.classes[0].weights[0]'");
  command.run([request, command, &session] { run_weights(*request, command.given("--top"), session); });
}

}  // namespace linblock::cli
