// The plan of a method that goes over rows: what its memory is used for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "solve/core/chunk_sums.h"
#include "solve/core/solver.h"

namespace linblock {

inline constexpr size_t kUsualChunksPerBlock = 8;  // fewer mix badly, more does not help: small blocks stay in cache
inline constexpr size_t kChunksPerBlockOfBatches = 32;  // batches of a block follow each other without a pause
inline constexpr uint64_t kLeastCertifyBytes = uint64_t{1} << 20;  // below, a certificate takes too many passes

// Which chunks make a block.
enum class Blocks {
  recomposed,  // a few, drawn anew for each pass
  buckets,     // whole buckets, or as many chunks as fit
  part,        // of some chunks alone, which stay in memory
};

// What a method asks for. Bytes are of one task, unless it says otherwise.
struct RowNeeds {
  uint64_t weights = 0;  // so many
  uint64_t bytes_per_weight = sizeof(float);
  std::vector<Remedy> remedies_for_weights = {};  // empty: fewer folds, or fewer features

  std::string_view kept_of_rows = "duals";  // what is kept of each row
  uint64_t bytes_per_row = 0;
  bool may_be_filed = false;  // lives in a file where it does not fit
  // Instead, where it is not known before: bytes of all tasks, from the room that there is for them and the rows.
  std::function<uint64_t(const ChunkSums& chunks, uint64_t room)> kept_bytes = {};
  std::vector<Remedy> remedies_for_rows = {};  // empty: fewer folds

  uint64_t v_bytes = 0;              // while a certificate is made; 0: it needs no v
  bool certifies_in_window = false;  // no block is in memory meanwhile
  uint64_t note_bytes = 8;           // on each row of a block in work: its turn, and its last margin or its step
  uint64_t open_bytes_per_row = 0;   // likewise, beside the notes
  Blocks blocks = Blocks::buckets;
  size_t fixed_blocks = 0;  // of whole buckets: so many; 0: as many as the memory asks for
  size_t part_chunks = 0;   // to a block, of a part
  size_t usual_chunks = 0;  // to a small block; 0: as is usual
  size_t most_chunks = BlockSource::kMostChunksPerBlock;

  bool has_working_set = false;
  bool shares_out_working_set = false;           // the plan chooses its share, where nobody names one
  std::optional<double> working_set_share = {};  // of the memory for rows
  uint64_t bytes_per_listed_row = 64;
  // A sample of rows instead of a working set: so many, where they fit. It comes before rows that stay in memory, since
  // a smaller one costs passes.
  uint64_t sample_rows = 0;
  uint64_t bytes_per_sample_row = 0;      // where rows do not stay; where they do, bytes_per_listed_row
  bool few_features = false;              // for so many rows that a mean of weights may be kept
  uint64_t side_by_side_bytes = 0;        // a copy of the weights, where nothing else needs the memory
  uint64_t batch_bytes = 0;               // of all tasks, for rows that are stepped along together
  std::vector<MemoryPart> others = {};    // of all tasks
  uint64_t remembered_bytes_per_row = 0;  // of all tasks, where rows stay in memory, decoded
};

// Throws ErrorKind::memory, with numbers and remedies.
Plan plan_rows(const RowNeeds& needs, const Problem& problem, const SolveOptions& options, const Context& context);

// Rows are so many that a mean of the weights costs nothing.
bool has_few_features(const Problem& problem);

}  // namespace linblock
