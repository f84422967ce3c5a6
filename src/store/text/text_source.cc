#include "store/text/text_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "store/text/decompress.h"

namespace linblock {

namespace {

constexpr size_t kCompressedBlock = size_t{64} << 10;
constexpr uint64_t kBesideTheWindow = uint64_t{512} << 10;  // a decoder's tables and its own buffers

bool is_standard_input(const std::string& input) { return input == "-"; }

}  // namespace

// The bytes of one input, decompressed where they are compressed.
class TextSource::Stream {
 public:
  Stream(const std::string& input, uint64_t most_decoding)
      : file_(is_standard_input(input) ? File::standard_input() : File::open_read(input)),
        most_decoding_(most_decoding) {
    file_.advise_sequential();
    if (!next_block(kHeadBytes)) fail_empty();
    // What fills a large window is refused at once where that is sure, else when it does: a short file may never do so.
    // Text hardly compresses to less than a twentieth.
    long_ = file_.is_regular() && file_.size() > most_decoding / 20;
    decoder_ = make_decoder(unread_, most_decoding);
  }

  bool compressed() const { return decoder_ != nullptr; }

  // Fewer bytes than asked only at the end.
  size_t read(std::span<unsigned char> into) {
    const size_t done = decoder_ ? read_compressed(into) : read_plain(into);
    if (!any_ && done == 0 && !into.empty()) fail_empty();
    if (!any_ && decoder_ && looks_compressed(into.first(done)))
      fail(ErrorKind::input, "'{}' was compressed twice: decompress it once, then try again", file_.path());
    any_ |= done > 0;
    return done;
  }

  uint64_t bytes_read() const { return read_; }

 private:
  static constexpr size_t kHeadBytes = 64;

  [[noreturn]] void fail_empty() const {
    fail(ErrorKind::input, "{} is empty: it has no rows to read",
         file_.path() == "standard input" ? file_.path() : "'" + file_.path() + "'");
  }

  [[noreturn]] void fail_damaged(std::string_view why) const {
    fail(ErrorKind::input, "'{}' is compressed, and cut short or damaged: {}; copy or download it again", file_.path(),
         why);
  }

  [[noreturn]] void fail_too_large() const {
    fail(
        ErrorKind::memory, {say("give more `memory`"), say("decompress it first")},
        "'{}' was compressed with a large window or large blocks: it takes {} of memory to decompress, and {} are left "
        "for that",
        file_.path(), human_bytes(decoder_->memory_bytes()), human_bytes(most_decoding_));
  }

  // What was read to look at the magic bytes comes first.
  size_t read_plain(std::span<unsigned char> into) {
    const size_t first = std::min(unread_.size(), into.size());
    std::copy_n(unread_.begin(), first, into.begin());
    unread_ = unread_.subspan(first);
    const size_t more = file_.read_next(into.subspan(first));
    read_ += more;
    return first + more;
  }

  // False at the end of the file.
  bool next_block(size_t bytes) {
    block_.resize(std::max(bytes, block_.size()));
    unread_ = std::span(block_).first(file_.read_next(block_));
    read_ += unread_.size();
    return !unread_.empty();
  }

  size_t read_compressed(std::span<unsigned char> into) {
    size_t done = 0;
    while (done < into.size()) {
      const bool at_end = unread_.empty() && !next_block(kCompressedBlock);
      if (between_members_) {
        if (at_end) break;
        if (any_member_ && unread_.front() == 0) {  // padding, as tapes have it
          unread_ = unread_.subspan(1);
          continue;
        }
        decoder_->begin_member();
        member_bytes_ = 0;
        between_members_ = false;
      }
      // At the end too: it may hold text that there was no room for.
      const DecodeStep step = decoder_->decode(unread_, into.subspan(done));
      unread_ = unread_.subspan(step.taken);
      done += step.made;
      member_bytes_ += step.made;
      check(step, at_end);
      if (step.state == DecodeStep::DecodeState::member_ended) between_members_ = any_member_ = true;
    }
    return done;
  }

  void check(const DecodeStep& step, bool at_end) const {
    if (step.state == DecodeStep::DecodeState::damaged) fail_damaged(step.why);
    if (step.state == DecodeStep::DecodeState::too_large) fail_too_large();
    if (step.state == DecodeStep::DecodeState::going_on && step.taken + step.made == 0)
      fail_damaged(at_end ? "it ends in the middle" : "it cannot be decompressed");
    if (!long_ && member_bytes_ <= most_decoding_) return;
    const uint64_t needed = decoder_->memory_bytes();
    if (needed > kBesideTheWindow && needed - kBesideTheWindow > most_decoding_) fail_too_large();
  }

  File file_;
  std::vector<unsigned char> block_;
  std::span<const unsigned char> unread_;  // of the block
  std::unique_ptr<Decoder> decoder_;
  uint64_t most_decoding_;
  uint64_t member_bytes_ = 0;  // of text, so far
  bool long_ = false;
  bool between_members_ = true;
  bool any_member_ = false;
  bool any_ = false;
  uint64_t read_ = 0;
};

TextSource::TextSource(std::vector<std::string> inputs, size_t piece_bytes, size_t longest_line, uint64_t most_decoding)
    : inputs_(std::move(inputs)),
      piece_bytes_(piece_bytes),
      longest_line_(std::max(longest_line, piece_bytes)),
      most_decoding_(most_decoding) {
  if (std::count_if(inputs_.begin(), inputs_.end(), is_standard_input) > 1)
    fail(ErrorKind::usage, "standard input (-) is named twice: it can be read only once");
  bool known = true;
  for (const std::string& input : inputs_) {
    if (is_standard_input(input)) {
      known = false;
      continue;
    }
    if (path_kind(input) == PathKind::directory)
      fail(ErrorKind::input, "'{}' is a folder: name the svmlight files in it, such as {}/*", input, input);
    if (path_kind(input) == PathKind::other) {  // a pipe is opened only to be read: its writer would notice
      known = false;
      continue;
    }
    const File file = File::open_read(input);
    if (file.size() == 0) fail(ErrorKind::input, "'{}' is empty: it has no rows to read", input);
    total_bytes_ += file.size();
  }
  if (!known) total_bytes_ = 0;
}

TextSource::~TextSource() = default;

// Reads up to `limit` bytes behind the first `from`; returns how many bytes there are then.
size_t TextSource::fill(TextPiece& piece, size_t from, size_t limit) {
  piece.text.grow(limit + 1);
  const uint64_t before = stream_->bytes_read();
  const size_t got = stream_->read({piece.text.data() + from, limit - from});
  bytes_read_ += stream_->bytes_read() - before;
  return from + got;
}

// How much of the line is still to come; for a message, so its text is not kept.
uint64_t TextSource::skip_line() {
  std::vector<unsigned char> bytes(piece_bytes_);
  uint64_t skipped = 0;
  while (true) {
    const size_t got = stream_->read(bytes);
    const void* newline = std::memchr(bytes.data(), '\n', got);
    if (newline != nullptr)
      return skipped + static_cast<size_t>(static_cast<const unsigned char*>(newline) - bytes.data());
    skipped += got;
    if (got < bytes.size()) return skipped;
  }
}

bool TextSource::next(TextPiece& piece) {
  while (true) {
    if (!stream_) {
      if (input_ == inputs_.size()) return false;
      stream_ = std::make_unique<Stream>(inputs_[input_], most_decoding_);
      bytes_read_ += stream_->bytes_read();
      any_compressed_ |= stream_->compressed();
      first_of_input_ = true;
    }
    size_t limit = std::max(piece_bytes_, carried_.size() + piece_bytes_ / 2);
    piece.text.resize(limit + 1);
    std::copy(carried_.begin(), carried_.end(), piece.text.data());
    size_t size = fill(piece, carried_.size(), limit);
    size_t searched = carried_.size();
    carried_.clear();
    bool ended = size < limit;
    const void* last = ::memrchr(piece.text.data() + searched, '\n', size - searched);
    piece.too_long = false;
    while (last == nullptr && !ended) {
      if (limit >= longest_line_) {
        piece.too_long = true;
        break;
      }
      searched = size;
      limit = std::min(limit * 2, longest_line_);
      size = fill(piece, size, limit);
      ended = size < limit;
      last = ::memrchr(piece.text.data() + searched, '\n', size - searched);
    }
    if (ended) {
      stream_.reset();
      if (size > 0 && piece.text.data()[size - 1] != '\n') piece.text.data()[size++] = '\n';
    } else if (!piece.too_long) {
      const auto whole = static_cast<size_t>(static_cast<const unsigned char*>(last) - piece.text.data()) + 1;
      carried_.assign(piece.text.data() + whole, piece.text.data() + size);
      size = whole;
    } else {
      piece.line_bytes = size + skip_line();
      piece.text.data()[size++] = '\n';
    }
    piece.input = input_;
    piece.first = std::exchange(first_of_input_, false);
    if (ended) ++input_;
    if (size == 0) continue;
    piece.size = size;
    std::memset(piece.text.data() + size, 0,
                piece.text.capacity() - size < Buffer::kSlack ? piece.text.capacity() - size : Buffer::kSlack);
    piece.ordinal = ordinal_++;
    return true;
  }
}

}  // namespace linblock
