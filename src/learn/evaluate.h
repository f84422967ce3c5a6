// A model applied to svmlight text or a store, as a stream; and how good it is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "learn/examples.h"
#include "learn/metric.h"
#include "learn/model.h"

namespace linblock {

struct Decision {
  std::optional<int32_t> label = {};     // as the text has it, or the code of its word; absent where the row has none
  std::span<const uint32_t> index = {};  // the row itself, as the model reads it
  std::span<const float> value = {};
  std::span<const double> decisions = {};  // one a column
  int32_t predicted = 0;
};

struct ApplyReport {
  uint64_t rows = 0;
  uint64_t unlabeled = 0;
  uint64_t unknown_features = 0;  // nonzeros of features that the model does not know
};

// Rows in the order of the input. The model's own index base and normalization hold, never a guess from this text.
// `memory_bytes` is all that the process may hold, the model too.
ApplyReport apply_model(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                        const std::function<void(const Decision&)>& visit, const ReadContext& context = {});
// Where labels are words: `names` begins with those of the model, and gets those that only the rows have.
ApplyReport apply_model(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                        LabelNames& names, const std::function<void(const Decision&)>& visit,
                        const ReadContext& context = {});

// The same as text, on all threads of the team. `append` adds what is said about a row; it is called on several threads
// at once, and it is not told the labels of the rows. `write` gets the text in the order of the rows, some of it at a
// time.
ApplyReport predict(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes, const Team& team,
                    const std::function<void(const Decision&, std::string&)>& append,
                    const std::function<void(const std::string&)>& write, const ReadContext& context = {});

struct Evaluation : ClassCounts {
  std::map<std::pair<int32_t, int32_t>, uint64_t> confusion;  // true label, predicted label
  std::optional<double> auc;                                  // two classes
  std::optional<double> log_loss;                             // models with probabilities
  ApplyReport report;
  LabelNames label_names;  // where labels are words
  void add(int32_t label, int32_t predicted);
};

// Throws ErrorKind::input where a row has no label.
Evaluation evaluate(const Model& model, const std::vector<std::string>& inputs, uint64_t memory_bytes,
                    const ReadContext& context = {});

}  // namespace linblock
