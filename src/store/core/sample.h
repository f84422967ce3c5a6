// What can be learned from the beginning of the text before the first row is packed.
#pragma once

#include <deque>

#include "base/bytes.h"
#include "store/chunk/feature_map.h"
#include "store/text/svmlight.h"
#include "store/text/text_source.h"

namespace linblock {

struct SampleOptions {
  bool index_zero = true;
  bool word_labels = false;
  bool normalize = false;
  uint64_t chunk_bytes = 0;
  uint64_t map_bytes = 0;  // the feature map's memory
};

struct Sample {
  FeatureMap features;
  unsigned width_set = 0;         // the shortest code for the gaps seen
  Buffer chunk;                   // the first rows as a chunk, to try codecs on; empty where there are none
  uint64_t chunk_text_bytes = 0;  // the text they came from
};

// Bad lines are passed over: packing will find them again and say so.
Sample sample_of(const std::deque<TextPiece>& pieces, const SampleOptions& options);

void scale_to_unit_length(ParsedRows& rows);

}  // namespace linblock
