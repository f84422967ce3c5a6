// The list of losses. A new loss is a file of its own and a word here.
#pragma once

#include "objective/losses/hinge.h"
#include "objective/losses/huber_hinge.h"
#include "objective/losses/logistic.h"
#include "objective/losses/squared_hinge.h"

namespace linblock {

using Losses = List<Hinge, SquaredHinge, Logistic, HuberHinge>;
using AnyLoss = Losses::Any;

static_assert(Loss<Hinge> && SmoothLoss<SquaredHinge> && QuadraticDual<SquaredHinge> && SmoothLoss<Logistic> &&
              GeneralDual<Logistic>);

// Throws ErrorKind::usage for an unknown name.
AnyLoss loss_of(std::string_view name);
inline std::string_view name_of(const AnyLoss& loss) { return Losses::kNames[loss.index()]; }

// Its options.
std::vector<Setting> settings_of(AnyLoss& loss);
// Its name and its options, one per line.
std::string identity_of(const AnyLoss& loss);

bool is_smooth(const AnyLoss& loss);
bool has_sparse_duals(const AnyLoss& loss);
bool has_probabilities(const AnyLoss& loss);
LiblinearNames liblinear_names(const AnyLoss& loss);
// Of the losses that LIBLINEAR knows: whether a solver of this name gives probabilities.
bool liblinear_has_probabilities(std::string_view solver_type);

// A row with a smaller margin has a loss above 1 + s: it is an outlier where losses are truncated at that.
double outlier_margin(const AnyLoss& loss, double s);

}  // namespace linblock
