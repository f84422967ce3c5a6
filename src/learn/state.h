// What a later run can go on from, kept beside a model: the dual of every row and the weights that belong to them. Rows
// may have been appended to the store since, removed from it, or moved by compact.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/snapshot.h"
#include "learn/prepare.h"

namespace linblock {

// MODEL.state
std::string state_path(const std::string& model);
// Before any work: throws where there is none at this path.
void check_state(const std::string& path);

// Collects a state while a problem is solved, in files beside the checkpoint, and writes it at the end.
class StateWriter {
 public:
  // `path`: of the state; empty: nothing is kept. `scratch`: where parts are put meanwhile, and left for a run that is
  // taken up again; empty: beside the state, and removed with commit(). `has_duals`: not Pegasos.
  StateWriter(std::string path, const std::string& scratch, bool has_duals, const Store& store, const Problem& problem);

  bool wanted() const { return !path_.empty(); }
  // Of task `task` of the problem (not of the group that is solved).
  void take_v(size_t task, size_t begin, std::span<const double> v) const;
  void take_ids(const Block& block) const;
  void take_solution(size_t task, Solution& solution) const;
  // All tasks are in.
  void commit(const std::string& identity) const;

 private:
  File scratch(const std::string& what) const;
  void remove_scratch() const;

  std::string path_;
  std::string scratch_;
  bool keep_scratch_;
  bool has_duals_;
  const Store& store_;
  const Problem& problem_;
  std::vector<uint64_t> begin_;  // where a chunk's rows begin
};

// What a state was made from, one a line; another is refused with what differs.
std::string state_identity(const TrainOptions& options, const Problem& problem);

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
