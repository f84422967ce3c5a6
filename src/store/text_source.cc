#include "store/text_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace linblock {

namespace {

constexpr size_t kCompressedBlock = size_t{64} << 10;

bool is_standard_input(const std::string& input) { return input == "-"; }

// The magic bytes of what libarchive can decompress. Anything else is text, and text errors are ours to explain.
bool looks_compressed(std::span<const unsigned char> head) {
  using namespace std::string_view_literals;
  constexpr std::array<std::string_view, 5> magics = {"\x1f\x8b"sv, "BZh"sv,
                                                      "\xfd"
                                                      "7zXZ\0"sv,
                                                      "\x28\xb5\x2f\xfd"sv, "\x04\x22\x4d\x18"sv};
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return std::any_of(magics.begin(), magics.end(), [&](std::string_view magic) { return text.starts_with(magic); });
}

// The memory a decompressor needs to look back in, as far as the first bytes tell: zst and xz choose it when they
// compress.
uint64_t window_bytes(std::span<const unsigned char> head) {
  constexpr uint64_t kUsual = uint64_t{1} << 20;
  if (head.size() >= 14 && head[0] == 0x28 && head[1] == 0xb5) {  // zstd, RFC 8878, 3.1.1.1
    const unsigned descriptor = head[4];
    if ((descriptor & 0x20) == 0) {
      const unsigned exponent = head[5] >> 3;
      return (uint64_t{1} << (10 + exponent)) / 8 * (8 + (head[5] & 7U));
    }
    // A single segment: the window is the contents.
    constexpr std::array<unsigned, 4> kIdBytes = {0, 1, 2, 4};
    const unsigned at = 5 + kIdBytes[descriptor & 3U];
    switch (descriptor >> 6) {
      case 0:
      case 1: return kUsual;
      case 2: return load<uint32_t>(&head[at]);
      default: return at + 8 <= head.size() ? load<uint64_t>(&head[at]) : kUsual;
    }
  }
  if (head.size() >= 17 && head[0] == 0xfd && head[1] == '7') {  // xz: stream header, block header, filter flags
    const unsigned flags = head[13];
    size_t at = 14;
    const unsigned sizes = ((flags >> 6) & 1U) + (flags >> 7);  // compressed and uncompressed size, where present
    for (unsigned i = 0; i < sizes; ++i) {
      while (at < head.size() && (head[at] & 0x80) != 0) ++at;
      ++at;
    }
    if (at + 2 >= head.size() || head[at] != 0x21) return kUsual;
    const unsigned bits = head[at + 2] & 63U;
    return bits >= 40 ? UINT32_MAX : (uint64_t{2} | (bits & 1U)) << (bits / 2 + 11);
  }
  return kUsual;
}

}  // namespace

// The bytes of one input, decompressed where they are compressed: gz by zlib, which unlike libarchive checks its
// checksum, all else by libarchive.
class TextSource::Stream {
 public:
  Stream(const std::string& input, uint64_t most_window)
      : file_(is_standard_input(input) ? File::standard_input() : File::open_read(input)), head_(kHeadBytes) {
    file_.advise_sequential();
    head_.resize(file_.read_next(head_));
    read_ = head_.size();
    if (head_.empty()) fail_empty();
    if (!looks_compressed(head_)) return;
    // A short file does not fill a large window: twenty times its size is more than text compresses to.
    uint64_t window = window_bytes(head_);
    if (file_.is_regular()) window = std::min(window, 20 * file_.size());
    if (window > most_window)
      fail(
          ErrorKind::memory,
          "'{}' was compressed with a window of {}, which must be held in memory: give more --memory, or decompress it "
          "first",
          file_.path(), human_bytes(window));
    if (head_[0] == 0x1f)
      open_gzip();
    else
      open_archive();
  }

  ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool compressed() const { return archive_ || gzip_; }

  // Fewer bytes than asked only at the end.
  size_t read(std::span<unsigned char> into) {
    const size_t done = gzip_ ? read_gzip(into) : archive_ ? read_archive(into) : read_plain(into);
    any_ |= done > 0;
    if (!any_ && !into.empty()) fail_empty();
    return done;
  }

  uint64_t bytes_read() const { return read_; }

 private:
  static constexpr size_t kHeadBytes = 64;

  // A constructor that throws must not leak what C code gave it.
  struct FreeArchive {
    void operator()(archive* opened) const { archive_read_free(opened); }
  };
  struct EndInflate {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };

  [[noreturn]] void fail_empty() const {
    fail(ErrorKind::input, "{} is empty: it has no rows to read",
         file_.path() == "standard input" ? file_.path() : "'" + file_.path() + "'");
  }

  [[noreturn]] void fail_damaged(const char* why) const {
    fail(ErrorKind::input, "'{}' is compressed, and cut short or damaged: {}; copy or download it again", file_.path(),
         why == nullptr ? "it cannot be decompressed" : why);
  }

  // What was read to look at the magic bytes comes first.
  size_t read_plain(std::span<unsigned char> into) {
    const size_t first = std::min(head_.size(), into.size());
    std::copy_n(head_.begin(), first, into.begin());
    head_.erase(head_.begin(), head_.begin() + static_cast<ptrdiff_t>(first));
    const size_t more = file_.read_next(into.subspan(first));
    read_ += more;
    return first + more;
  }

  // The next compressed bytes; none at the end.
  std::span<unsigned char> next_block() {
    if (!head_.empty()) {
      block_.swap(head_);
      head_.clear();
    } else {
      block_.resize(kCompressedBlock);
      block_.resize(file_.read_next(block_));
      read_ += block_.size();
    }
    return block_;
  }

  void open_gzip() {
    gzip_.reset(new z_stream());
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(gzip_.get(), kGzipOnly) != Z_OK) throw std::bad_alloc();
  }

  size_t read_gzip(std::span<unsigned char> into) {
    gzip_->next_out = into.data();
    gzip_->avail_out = static_cast<uInt>(std::min<size_t>(into.size(), UINT32_MAX));
    while (gzip_->avail_out > 0) {
      if (gzip_->avail_in == 0) {
        const std::span<unsigned char> block = next_block();
        if (block.empty()) {
          if (!between_members_) fail_damaged("it ends in the middle");
          break;
        }
        gzip_->next_in = block.data();
        gzip_->avail_in = static_cast<uInt>(block.size());
      }
      if (between_members_ && any_member_) {
        if (*gzip_->next_in == 0) {  // padding, as tapes have it
          ++gzip_->next_in;
          --gzip_->avail_in;
          continue;
        }
        inflateReset(gzip_.get());
      }
      between_members_ = false;
      const int state = inflate(gzip_.get(), Z_NO_FLUSH);
      if (state == Z_STREAM_END) {
        between_members_ = true;
        any_member_ = true;
      } else if (state != Z_OK && state != Z_BUF_ERROR) {
        fail_damaged(gzip_->msg);
      }
    }
    return into.size() - gzip_->avail_out;
  }

  void open_archive() {
    archive_.reset(archive_read_new());
    if (!archive_) throw std::bad_alloc();
    archive_read_support_filter_bzip2(archive_.get());
    archive_read_support_filter_xz(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    archive_read_support_filter_lz4(archive_.get());
    archive_read_support_format_raw(archive_.get());
    archive_read_support_format_empty(archive_.get());
    const auto on_read = [](archive*, void* self, const void** block) -> la_ssize_t {
      return static_cast<Stream*>(self)->give_block(block);
    };
    if (archive_read_open(archive_.get(), this, nullptr, on_read, nullptr) != ARCHIVE_OK) fail_archive();
    archive_entry* entry = nullptr;
    const int state = archive_read_next_header(archive_.get(), &entry);
    if (state == ARCHIVE_EOF) fail_empty();
    if (state != ARCHIVE_OK) fail_archive();
  }

  size_t read_archive(std::span<unsigned char> into) {
    size_t done = 0;
    while (done < into.size()) {
      const la_ssize_t got = archive_read_data(archive_.get(), into.data() + done, into.size() - done);
      if (got < 0) fail_archive();
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  la_ssize_t give_block(const void** block) {
    try {
      const std::span<unsigned char> bytes = next_block();
      *block = bytes.data();
      return static_cast<la_ssize_t>(bytes.size());
    } catch (...) {
      failure_ = std::current_exception();  // must not travel through C code
      archive_set_error(archive_.get(), EIO, "reading failed");
      return -1;
    }
  }

  [[noreturn]] void fail_archive() {
    if (failure_) std::rethrow_exception(failure_);
    fail_damaged(archive_error_string(archive_.get()));
  }

  File file_;
  std::vector<unsigned char> head_;  // read to look at the magic bytes, not yet handed out
  std::vector<unsigned char> block_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::unique_ptr<z_stream, EndInflate> gzip_;
  bool between_members_ = true;
  bool any_member_ = false;
  bool any_ = false;
  std::exception_ptr failure_;
  uint64_t read_ = 0;
};

TextSource::TextSource(std::vector<std::string> inputs, size_t piece_bytes, size_t longest_line, uint64_t most_window)
    : inputs_(std::move(inputs)),
      piece_bytes_(piece_bytes),
      longest_line_(std::max(longest_line, piece_bytes)),
      most_window_(most_window) {
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
  std::vector<unsigned char> some(piece_bytes_);
  uint64_t skipped = 0;
  while (true) {
    const size_t got = stream_->read(some);
    const void* newline = std::memchr(some.data(), '\n', got);
    if (newline != nullptr)
      return skipped + static_cast<size_t>(static_cast<const unsigned char*>(newline) - some.data());
    skipped += got;
    if (got < some.size()) return skipped;
  }
}

bool TextSource::next(TextPiece& piece) {
  while (true) {
    if (!stream_) {
      if (input_ == inputs_.size()) return false;
      stream_ = std::make_unique<Stream>(inputs_[input_], most_window_);
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
