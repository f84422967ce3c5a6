// The objective of a model of two classes, LIBLINEAR's or ours, on svmlight text: one JSON object.
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "learn/evaluate.h"
#include "objective/losses/losses.h"

int main(int count, char** words) {
  using namespace linblock;
  constexpr uint64_t kMemory = uint64_t{256} << 20;  // for text
  if (count != 5) {
    fmt::print(stderr, "usage: model_objective MODEL TEXT LOSS COST\n");
    return 2;
  }
  try {
    const Model model = load_model(words[1]);
    if (model.columns() != 1) fail(ErrorKind::usage, "'{}' is not a model of two classes", words[1]);
    const AnyLoss loss = loss_of(words[3]);
    const double cost = std::strtod(words[4], nullptr);
    double losses = 0;
    apply_model(model, {words[2]}, kMemory, [&](const Decision& row) {
      if (!row.label) fail(ErrorKind::input, "'{}' has a row without a label", words[2]);
      const double sign = model.own_label(*row.label) == model.labels[0] ? 1 : -1;
      const double margin = sign * row.decisions[0];
      losses += std::visit([&](const auto& one) { return one.value(margin); }, loss);
    });
    const double squares = std::transform_reduce(model.weights.begin(), model.weights.end(), 0.0, std::plus<>(),
                                                 [](float weight) { return double{weight} * double{weight}; });
    fmt::print("{}\n", Json{{"objective", squares / 2 + cost * losses}}.dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "model_objective: {}\n", error.what());
    return 1;
  }
}
