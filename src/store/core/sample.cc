#include "store/core/sample.h"

#include <cmath>

#include "store/chunk/chunk.h"
#include "store/chunk/index_code.h"
#include "store/chunk/row_encoder.h"

namespace linblock {

namespace {

constexpr uint64_t kSecondLook = uint64_t{512} << 10;  // text enough for gaps and for a chunk

std::vector<uint32_t> all_indices(const std::deque<TextPiece>& pieces, const SvmlightOptions& parsing) {
  std::vector<uint32_t> indices;
  ParsedRows rows;
  for (const TextPiece& piece : pieces) {
    if (piece.too_long) break;
    parse_svmlight({piece.text.data(), piece.size}, parsing, rows);
    indices.insert(indices.end(), rows.all_indices().begin(), rows.all_indices().end());
  }
  return indices;
}

unsigned choose_width_set(const ParsedRows& rows, const FeatureMap& features) {
  GapHistogram gaps;
  std::vector<uint32_t> numbers;
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::span<const uint32_t> index = rows.index(row);
    numbers.resize(index.size());
    features.apply(index, {}, numbers.data(), nullptr);
    gaps.add(numbers);
  }
  return best_width_set(gaps);
}

}  // namespace

void scale_to_unit_length(ParsedRows& rows) {
  for (size_t row = 0; row < rows.size(); ++row) {
    double sum = 0;
    for (const float value : rows.value(row)) sum += static_cast<double>(value) * value;
    if (sum == 0) continue;
    const double scale = 1 / std::sqrt(sum);
    for (float& value : rows.value(row)) value = static_cast<float>(value * scale);
  }
}

Sample sample_of(const std::deque<TextPiece>& pieces, const SampleOptions& options) {
  const SvmlightOptions parsing{
      .index_zero = options.index_zero, .word_labels = options.word_labels, .most_bad = SIZE_MAX};
  Sample sample;
  {
    std::vector<uint32_t> indices = all_indices(pieces, parsing);
    sample.features = FeatureMap::from_sample(indices, options.map_bytes);
  }
  ParsedRows rows;
  ChunkBuilder builder;
  EncodedRows encoded;
  for (const TextPiece& piece : pieces) {
    if (piece.too_long || sample.chunk_text_bytes >= kSecondLook) break;
    parse_svmlight({piece.text.data(), piece.size}, parsing, rows);
    if (sample.chunk_text_bytes == 0) sample.width_set = choose_width_set(rows, sample.features);
    if (options.normalize) scale_to_unit_length(rows);
    const RowEncoder encoder(sample.features, sample.width_set);
    bool full = false;
    for (size_t row = 0; row < rows.size() && !full; ++row) {
      encoded.clear();
      encoder.add(rows.label(row), 1, rows.index(row), rows.value(row), encoded);
      full = !builder.has_room_for(encoded[0], options.chunk_bytes);
      if (!full) builder.add(builder.rows(), encoded[0]);
    }
    if (full) break;
    sample.chunk_text_bytes += piece.size;
  }
  if (!builder.empty()) builder.finish(sample.width_set, sample.chunk);
  return sample;
}

}  // namespace linblock
