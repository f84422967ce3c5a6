// The list of methods. A new method is a folder or a file of its own, an include and a word here.
#pragma once

#include "solve/baselines/average.h"
#include "solve/baselines/pegasos.h"
#include "solve/baselines/subsample.h"
#include "solve/columns/cmls.h"
#include "solve/columns/primal.h"
#include "solve/dual/dual.h"
#include "solve/indexed/indexed.h"
#include "solve/multiclass/crammer_singer.h"
#include "solve/multiclass/softmax.h"
#include "solve/newton/newton.h"

namespace linblock {

using Methods = List<Dual, Pegasos, Average, Subsample, CrammerSinger, Newton, Primal, Cmls, Indexed, Softmax>;
using AnyMethod = Methods::Any;

inline std::string_view name_of(const AnyMethod& method) { return Methods::kNames[method.index()]; }
Abilities abilities_of(const AnyMethod& method);
bool supports(const AnyMethod& method, const AnyLoss& loss);
// Throws ErrorKind::usage, with the losses and methods that would do, where the two do not go together, and where the
// method's own options do not.
void check(const AnyMethod& method, const AnyLoss& loss);

// Its options.
std::vector<Setting> settings_of(AnyMethod& method);
// Its name and its options, one per line.
std::string identity_of(const AnyMethod& method);

}  // namespace linblock
