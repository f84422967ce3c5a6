// Block compression of whole chunks, and the measured choice between codecs.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "store/chunk/format.h"

namespace linblock {

namespace format {
constexpr std::array<std::pair<std::string_view, Codec>, 4> choices(Codec) {
  return {{{"none", Codec::none}, {"lz4", Codec::lz4}, {"zstd", Codec::zstd}, {"zlib", Codec::zlib}}};
}
}  // namespace format

using format::Codec;

std::string_view codec_name(Codec codec);
// Throws a usage error for an unknown name.
Codec codec_of(std::string_view name);
bool is_codec(std::string_view name);

// Fills `out`; a codec that does not make a chunk smaller is still recorded as itself.
void compress(Codec codec, std::span<const unsigned char> raw, Buffer& out);
// Exactly `raw_bytes`, the size the checked directory gives, or ErrorKind::damaged. A frame's own claim is not used.
void decompress(Codec codec, std::span<const unsigned char> stored, size_t raw_bytes, Buffer& out,
                std::string_view where);

struct CodecChoice {
  Codec codec = Codec::none;
  std::string reason;         // the same words whenever the same codec is chosen
  std::string measured = {};  // the rates behind it, which are others each time
};
// Writes a few megabytes in `folder` and reads them back to learn the disk's rate, decodes `sample_chunk` with each
// codec, and takes the one that needs least time to read and decode; `none` unless another is clearly better.
CodecChoice choose_codec(std::span<const unsigned char> sample_chunk, const std::string& folder);

}  // namespace linblock
