// A trained model is one file: LIBLINEAR's text format, which liblinear-predict reads, and after the last weight, where
// LIBLINEAR's reader has stopped, a section with everything else that a prediction needs, and a checksum over all of it
// (docs/format.md, "Models"). MODEL.json repeats the section for people and programs, with how the model was trained;
// nothing that linblock answers depends on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "learn/calibrate.h"
#include "learn/dual_bounds.h"
#include "learn/model_columns.h"
#include "learn/model_names.h"
#include "objective/losses/losses.h"
#include "store/chunk/row.h"
#include "store/core/store.h"

namespace linblock {

struct Model {
  std::string solver_type;           // LIBLINEAR's name, such as L2R_L1LOSS_SVC_DUAL
  std::optional<AnyLoss> loss;       // where LIBLINEAR has no name for it, and the one above stands in for it
  std::vector<int32_t> labels;       // decision > 0 gives labels[0]; several columns: the largest decides
  LabelNames label_names;            // by label, where labels are words; else empty
  FeatureNameSource feature_names;   // null: none; of a model that is read, to be called after its last row
  uint64_t features = 0;             // rows of weights, without the bias
  double bias = -1;                  // the value of the constant feature; below 0: none
  int index_base = 1;                // of the data: index `index_base` is the first row
  bool against_rest = false;         // labels[0] against all others, which labels[1] stands for
  bool normalized = false;           // rows are scaled to unit length before they are looked at
  bool softmax = false;              // the decisions of all columns together are a distribution
  std::vector<float> weights;        // by feature, then by column; the bias row last
  std::vector<Sigmoid> calibration;  // one a column; empty: none
  std::optional<double> threshold;   // two classes: a decision above it gives labels[0]; none: 0
  DualBounds bounds;                 // of the optimum, for a later run on the same problem
  std::string warning;               // for the user: MODEL.json is not of this model; empty: all is well

  // Of two classes one column is enough, except where all classes were trained at once.
  size_t columns() const { return labels.size() == 2 && solver_type != "MCSVM_CS" ? 1 : labels.size(); }
  bool has_probability() const { return !calibration.empty() || liblinear_has_probabilities(solver_type); }

  // One decision value a column. Indices increase. Features the model does not know are left out and counted.
  void decide(std::span<const uint32_t> index, std::span<const float> value, std::span<double> decisions,
              uint64_t& unknown) const;
  // What a label of the data is to this model.
  int32_t own_label(int32_t label) const { return against_rest && label != labels[0] ? labels[1] : label; }
  int32_t label_of(std::span<const double> decisions) const;
  // One a label, in the order of `labels`, adding up to 1; models that have them only.
  void probabilities(std::span<const double> decisions, std::span<double> out) const;
};

// A single column, or all of them interleaved: weights by the store's feature numbers become rows by original index, in
// place, since a second copy may not fit in memory. Or several columns stand apart (ModelColumns), and `weights` is
// empty.
Model make_model(const Store& store, std::vector<float> weights, std::vector<int32_t> labels, double bias,
                 std::string solver_type);

// Which of the labels decisions speak for. Of two classes that have a column each, their difference is the decision.
size_t place_of_label(std::span<const double> decisions, std::optional<double> threshold);

// Text is LIBLINEAR's. The binary form has the same numbers in a fifth of the bytes, and is read without parsing them.
enum class ModelFormat { text, binary };
constexpr auto choices(ModelFormat) {
  return std::array{std::pair{"text", ModelFormat::text}, std::pair{"binary", ModelFormat::binary}};
}

// How the files begin: what does not begin so is not ours to overwrite.
inline constexpr std::string_view kModelBeginning = "solver_type ";
inline constexpr std::string_view kBinaryModelBeginning = "linblock-model-b";
// What stands there is a model of either form, or nothing, or the beginning of one.
bool may_be_model(const std::string& path);
inline constexpr std::string_view kModelJsonBeginning = "{\n \"program\": \"linblock";
inline std::string model_json_path(const std::string& model) { return model + ".json"; }

// MODEL is saved, and MODEL.json may not be.
class PartlySaved : public Error {
  using Error::Error;
};

// MODEL is replaced atomically, and then MODEL.json. `metadata_json`: an object, to which MODEL's checksum is added.
// Returns how many names of features are left out, since a model cannot have so many: all of them, or none.
uint64_t save_model(const std::string& path, const Model& model, const std::string& metadata_json, const Team& team,
                    ModelFormat form = ModelFormat::text);
// With weights that stand apart.
uint64_t save_model(const std::string& path, const Model& model, const ModelColumns& columns,
                    const std::string& metadata_json, const Team& team, ModelFormat form = ModelFormat::text);
// A model read row by row, for whoever has no memory for all of it.
// Throws ErrorKind::damaged for what is not a model, is cut short, claims more than the file can hold, or, when its
// last row is read, does not have the checksum that it should. A model without a section is LIBLINEAR's, which has no
// checksum, or one of linblock 0.1.0, whose index base, normalization and calibration are in MODEL.json alone.
class ModelRows {
 public:
  explicit ModelRows(const std::string& path);
  ~ModelRows();
  ModelRows(const ModelRows&) = delete;
  ModelRows& operator=(const ModelRows&) = delete;

  // Without weights.
  const Model& header() const { return header_; }
  ModelFormat form() const { return binary_ ? ModelFormat::binary : ModelFormat::text; }
  // One a feature, and the bias last.
  uint64_t rows() const { return header_.features + (header_.bias >= 0 ? 1 : 0); }
  // As many weights as there are columns.
  void next(std::span<float> row);

 private:
  class Words;
  class Binary;
  void finish();

  Model header_;
  std::unique_ptr<Words> words_;    // of text,
  std::unique_ptr<Binary> binary_;  // or of the other form
  uint64_t row_ = 0;
};

Model load_model(const std::string& path);

// The same model in a form of choice, with its MODEL.json. It is held in memory. Returns what
// save_model does.
uint64_t convert_model(const std::string& from, const std::string& to, ModelFormat form, const Team& team);

}  // namespace linblock
