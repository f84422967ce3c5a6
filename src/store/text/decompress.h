// Compressed text as it comes from a file or a pipe: gz, bz2, xz, zst and lz4, known by their first bytes, in bounded
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace linblock {

struct DecodeStep {
  enum class DecodeState { going_on, member_ended, too_large, damaged };

  size_t taken = 0;  // bytes of the compressed input that are done with
  size_t made = 0;   // bytes of text
  DecodeState state = DecodeState::going_on;
  std::string why = {};  // damaged: the reason
};

// A file is one or more members, one behind the other, each with its own header and checksum.
class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual void begin_member() = 0;
  // Takes what it can of `compressed` and makes what fits into `text`. Neither taken nor made: it needs more input.
  virtual DecodeStep decode(std::span<const unsigned char> compressed, std::span<unsigned char> text) = 0;
  // What this member reserves, or after too_large would have: known when its header is. It is filled as text is made,
  // so a caller that finds it too much may stop in time.
  virtual uint64_t memory_bytes() { return 0; }
};

bool looks_compressed(std::span<const unsigned char> head);
// Null where the first bytes are not those of a compressed file. Decoders that have a choice keep to `most_bytes`;
// those that have none reserve what the file asks for, and are too_large where that is absurd.
std::unique_ptr<Decoder> make_decoder(std::span<const unsigned char> head, uint64_t most_bytes);

}  // namespace linblock
