// A start from the state that another run has kept: its duals, found again for the rows of a changed store, and the
// weights that belong to them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "learn/prepare.h"

namespace linblock {

struct WarmStart {
  std::vector<Solution> solutions;  // one a task of the problem; a class that is new begins with nothing
  uint64_t known_rows = 0;          // that have kept their duals
  uint64_t new_rows = 0;
  std::vector<uint32_t> new_chunks = {};  // none of whose rows has a dual
  uint64_t gone_rows = 0;                 // that the state knows, and that are no longer in the store
  bool recomputed = false;                // the weights, since the features of rows that are gone are gone with them

  // "900 rows keep their duals, 100 are new, 50 are gone"
  std::string describe() const;
};

// Equation 16 of the block minimization paper: rows that are new begin with 0, alpha y x of rows that were removed is
// taken from w; so is that of rows that a task holds out now. `duals_in_file`: where pages go (a path, and a number for
// each further task); empty: memory. `context`: for its memory, and for who watches or stops the reading of rows.
// `on_v`: what the weights are rounded from, a range of features at a time.
using VObserver = std::function<void(size_t task, size_t begin, std::span<const double> v)>;
WarmStart warm_start(const std::string& path, const TrainOptions& options, const Problem& problem,
                     const std::string& duals_in_file, const Context& context, const VObserver& on_v = {});

}  // namespace linblock
