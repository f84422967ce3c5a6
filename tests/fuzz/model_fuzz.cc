// Any bytes as a model: refused as damaged, or weights and labels that keep their promises and are saved and loaded
// again as the same. The first byte chooses: 's', the rest has a section, and its checksum is made here; 'o', an old
// model and, after a byte 0, its MODEL.json; else the rest is the file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "files.h"
#include "learn/model.h"

namespace {

using namespace linblock;
using namespace linblock::fuzz;

// The section is what follows the last "# linblock-model".
std::string with_checksum(std::string_view text) {
  const size_t section = text.rfind("# linblock-model ");
  const size_t bytes = section == std::string_view::npos ? 0 : text.size() - section;
  const uint64_t sum = checksum({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  return std::string(text) + fmt::format("# checksum {:016x} {:012}\n", sum, bytes);
}

void write_model(const MemoryDirectory& folder, std::string_view bytes) {
  const std::string_view rest = bytes.substr(1);
  std::string_view json;
  std::string model(rest);
  if (bytes[0] == 's') model = with_checksum(rest);
  if (const size_t end = rest.find('\0'); bytes[0] == 'o' && end != std::string_view::npos) {
    model = rest.substr(0, end);
    json = rest.substr(end + 1);
  }
  write_file(folder / "model", model);
  if (json.empty())
    ::unlink((folder / "model.json").c_str());
  else
    write_file(folder / "model.json", json);
}

void apply(const Model& model) {
  constexpr uint32_t kFar = 0xffffffff;
  const std::vector<uint32_t> index = {0, 1, 2, 1000, kFar};
  const std::vector<float> value = {1, -1, 0.5F, 2, 3};
  std::vector<double> decisions(model.columns());
  uint64_t unknown = 0;
  model.decide(index, value, decisions, unknown);
  require(unknown >= 1 && unknown <= index.size());
  const int32_t label = model.label_of(decisions);
  require(std::find(model.labels.begin(), model.labels.end(), label) != model.labels.end());
  if (!model.has_probability()) return;
  std::vector<double> shares(model.labels.size());
  model.probabilities(decisions, shares);
}

void expect_promises(const Model& model) {
  const uint64_t rows = model.features + (model.bias >= 0 ? 1 : 0);
  require(model.labels.size() >= 2 && model.weights.size() == rows * model.columns());
  require(std::set<int32_t>(model.labels.begin(), model.labels.end()).size() == model.labels.size());
  require(model.calibration.empty() || model.calibration.size() == model.columns());
  require(std::isfinite(model.bias) && (model.index_base == 0 || model.index_base == 1));
  for (const float weight : model.weights) require(std::isfinite(weight));
  for (const int32_t label : model.labels)
    require(model.label_names.empty() || model.label_names.find(model.label_names.show(label)) == label);
}

void expect_same(const Model& a, const Model& b) {
  require(a.solver_type == b.solver_type && a.labels == b.labels && a.features == b.features && a.bias == b.bias);
  require(a.index_base == b.index_base && a.against_rest == b.against_rest && a.normalized == b.normalized);
  require(a.label_names.text() == b.label_names.text());
  require(a.weights == b.weights && a.calibration.size() == b.calibration.size());
  for (size_t i = 0; i < a.calibration.size(); ++i)
    require(a.calibration[i].slope == b.calibration[i].slope && a.calibration[i].offset == b.calibration[i].offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const MemoryDirectory folder;
  write_model(folder, {reinterpret_cast<const char*>(data), size});
  Model model;
  try {
    model = load_model(folder / "model");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::damaged || error.kind() == ErrorKind::input);
    return 0;
  }
  expect_promises(model);
  apply(model);
  save_model(folder / "again", model, R"({"program": "linblock"})", 1);
  expect_same(load_model(folder / "again"), model);
  return 0;
}
