// svmlight files as pieces of whole lines: several files, standard input ("-"), plain or gz/bz2/xz/zst/lz4 by content.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace linblock {

struct TextPiece {
  Buffer text;  // `size` bytes of lines, the last one ended with a newline even where the file does not; then slack
  size_t size = 0;
  uint64_t ordinal = 0;
  size_t input = 0;         // which of the inputs
  bool first = false;       // of its input
  bool too_long = false;    // the text is only the beginning of a line longer than allowed
  uint64_t line_bytes = 0;  // then: the whole line's length
};

class TextSource {
 public:
  // Refuses at once, before any work, a path that cannot be read, a folder, and an empty file. A compressed file that
  // takes (beside a little) more than `most_decoding` bytes of memory to decompress is ErrorKind::memory when its turn
  // comes.
  TextSource(std::vector<std::string> inputs, size_t piece_bytes, size_t longest_line,
             uint64_t most_decoding = UINT64_MAX);
  ~TextSource();

  // Of the pieces from now on.
  void set_piece_bytes(size_t bytes) { piece_bytes_ = bytes; }
  // False at the end of the last input. One thread at a time; the piece's memory is used again.
  bool next(TextPiece& piece);

  const std::string& name(size_t input) const { return inputs_[input]; }
  // Bytes as they lie on disk; 0 where a pipe makes the total unknown.
  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t bytes_read() const { return bytes_read_; }
  bool any_compressed() const { return any_compressed_; }

 private:
  class Stream;
  size_t fill(TextPiece& piece, size_t from, size_t limit);
  uint64_t skip_line();

  std::vector<std::string> inputs_;
  size_t piece_bytes_;
  size_t longest_line_;
  uint64_t most_decoding_;
  uint64_t total_bytes_ = 0;
  uint64_t bytes_read_ = 0;
  bool any_compressed_ = false;
  size_t input_ = 0;
  uint64_t ordinal_ = 0;
  bool first_of_input_ = true;
  std::unique_ptr<Stream> stream_;
  std::vector<unsigned char> carried_;  // the line that the last piece ended in the middle of
};

}  // namespace linblock
