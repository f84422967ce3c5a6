// What a later run can go on from, kept beside a model: the dual of every row and the weights that belong to them. Rows
// may have been appended to the store since, removed from it, or moved by compact.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "learn/prepare.h"

namespace linblock {

// What a state that is not there, or damaged, leaves to be done.
std::vector<Remedy> state_remedies();

// Where a chunk of the store stood when the state was made.
struct ChunkPlace {
  uint64_t segment = 0;
  uint64_t number = 0;
  uint64_t rows = 0;

  static void visit_fields(auto& self, auto&& field) {
    field("segment", self.segment);
    field("number", self.number);
    field("rows", self.rows);
  }
};

// What a state has beside "checksums" and the arrays of its tasks: "task.3.v", and "task.3.alpha" with "ids" of all
// rows or, of Pegasos, "task.3.steps".
struct StateHeader {
  std::string identity = {};
  std::vector<int32_t> positives = {};  // one per task
  std::vector<ChunkPlace> chunks = {};
  std::vector<uint64_t> checksums = {};  // of the chunks; none in a state of an earlier version

  static void visit_fields(auto& self, auto&& field) {
    field("identity", self.identity);
    field("positives", self.positives);
    field("chunks", self.chunks);
  }
};

std::vector<ChunkPlace> places_of(const Store& store);
std::vector<uint64_t> checksums_of(const Store& store);

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

}  // namespace linblock
