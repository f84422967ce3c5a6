// Models made by hand, and what a model must be whatever file it came from.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "learn/model.h"

namespace linblock::test {

inline const std::string kPlainMetadata =
    R"({"program": "linblock", "index_base": 1, "normalized": false, "against_rest": false})";

inline Model two_class_model(std::vector<float> weights, double bias = -1, std::string type = "L2R_L2LOSS_SVC_DUAL") {
  Model model;
  model.solver_type = std::move(type);
  model.labels = {1, -1};
  model.features = weights.size() - (bias >= 0 ? 1 : 0);
  model.bias = bias;
  model.weights = std::move(weights);
  return model;
}

// Empty, or what cannot be true of any model.
inline std::string inconsistency(const Model& model) {
  if (model.labels.size() < 2) return "fewer than two labels";
  if (model.weights.size() != (model.features + (model.bias >= 0 ? 1 : 0)) * model.columns())
    return "weights for other features";
  if (!std::isfinite(model.bias)) return "an impossible bias";
  for (const float weight : model.weights)
    if (!std::isfinite(weight)) return "a weight that is not finite";
  return "";
}

}  // namespace linblock::test
