// From text or a store to a saved model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "learn/evaluate.h"
#include "learn/model.h"
#include "solve/solver.h"
#include "store/pack.h"

namespace linblock {

struct TrainOptions {
  std::vector<std::string> inputs = {};  // svmlight text, or one store
  std::string store = {};                // where text is packed; empty: INPUT.linblock beside it
  PackOptions pack = {};                 // for text
  AnyLoss loss = SquaredHinge{};
  double cost = 1;
  double bias = -1;
  std::optional<int32_t> positive = {};  // that label against all others
  std::map<int32_t, double> class_weights = {};
  bool balanced = false;               // weights that make all classes count the same
  std::vector<std::string> test = {};  // looked at after each pass
  SolveOptions solve = {};
  bool fresh = false;  // forget a checkpoint
};

// What happens on the way, for whoever shows it.
struct TrainObserver {
  std::function<void(const std::string&)> say = [](const std::string&) {};
  PackContext packing = {};
  std::function<void(const Plan&)> plan = [](const Plan&) {};
  std::function<void(const BlockReport&)> block = [](const BlockReport&) {};
  std::function<void(const PassReport&, std::optional<double> test_accuracy)> pass = [](const PassReport&,
                                                                                        std::optional<double>) {};
};

struct TrainReport {
  std::string store;
  bool packed = false;  // now, and not before
  double pack_seconds = 0;
  StoreInfo info;
  Summary summary;
  Model model;
};

// The store for these inputs: the one named, or the text packed; a store made from the same text before is used again.
std::string store_for(const TrainOptions& options, const TrainObserver& observer, bool& packed);

// The options, the data and the resources that a run's bits depend on, one a line. A checkpoint of another run is
// refused with the lines that differ.
std::string identity_of(const TrainOptions& options, const Context& context, const StoreInfo& info);

// Nothing is trained with `dry_run`: the plan is made and shown.
TrainReport train(const TrainOptions& options, const Context& context, const TrainObserver& observer, bool dry_run);

// What MODEL.json says.
std::string describe_model(const TrainOptions& options, const TrainReport& report);

}  // namespace linblock
