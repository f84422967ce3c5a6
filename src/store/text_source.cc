#include "store/text_source.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace linblock {

namespace {

constexpr size_t kArchiveBlock = size_t{64} << 10;

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

}  // namespace

// The bytes of one input, decompressed where they are compressed.
class TextSource::Stream {
 public:
  explicit Stream(const std::string& input)
      : file_(is_standard_input(input) ? File::standard_input() : File::open_read(input)), head_(16) {
    file_.advise_sequential();
    head_.resize(file_.read_next(head_));
    read_ = head_.size();
    if (head_.empty())
      fail(ErrorKind::input, "{} is empty: it has no rows to read",
           is_standard_input(input) ? "standard input" : "'" + input + "'");
    if (looks_compressed(head_)) open_archive();
  }

  ~Stream() {
    if (archive_ != nullptr) archive_read_free(archive_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool compressed() const { return archive_ != nullptr; }

  // Fewer bytes than asked only at the end.
  size_t read(std::span<unsigned char> into) {
    size_t done = 0;
    while (archive_ != nullptr && done < into.size()) {
      const la_ssize_t got = archive_read_data(archive_, into.data() + done, into.size() - done);
      if (got < 0) fail_archive();
      if (got == 0) return done;
      done += static_cast<size_t>(got);
    }
    if (archive_ != nullptr) return done;
    done = std::min(head_.size(), into.size());
    std::copy_n(head_.begin(), done, into.begin());
    head_.erase(head_.begin(), head_.begin() + static_cast<ptrdiff_t>(done));
    const size_t more = file_.read_next(into.subspan(done));
    read_ += more;
    return done + more;
  }

  uint64_t bytes_read() const { return read_; }

 private:
  void open_archive() {
    archive_ = archive_read_new();
    if (archive_ == nullptr) throw std::bad_alloc();
    archive_read_support_filter_gzip(archive_);
    archive_read_support_filter_bzip2(archive_);
    archive_read_support_filter_xz(archive_);
    archive_read_support_filter_zstd(archive_);
    archive_read_support_filter_lz4(archive_);
    archive_read_support_format_raw(archive_);
    const auto on_read = [](archive*, void* self, const void** block) -> la_ssize_t {
      return static_cast<Stream*>(self)->next_block(block);
    };
    archive_entry* entry = nullptr;
    if (archive_read_open(archive_, this, nullptr, on_read, nullptr) != ARCHIVE_OK ||
        archive_read_next_header(archive_, &entry) != ARCHIVE_OK)
      fail_archive();
  }

  la_ssize_t next_block(const void** block) {
    try {
      if (!head_.empty()) {
        block_.swap(head_);
        head_.clear();
      } else {
        block_.resize(kArchiveBlock);
        block_.resize(file_.read_next(block_));
        read_ += block_.size();
      }
      *block = block_.data();
      return static_cast<la_ssize_t>(block_.size());
    } catch (...) {
      failure_ = std::current_exception();  // must not travel through C code
      archive_set_error(archive_, EIO, "reading failed");
      return -1;
    }
  }

  [[noreturn]] void fail_archive() {
    if (failure_) std::rethrow_exception(failure_);
    const char* why = archive_error_string(archive_);
    fail(ErrorKind::input, "'{}' is compressed, and cut short or damaged: {}; copy or download it again", file_.path(),
         why == nullptr ? "it cannot be decompressed" : why);
  }

  File file_;
  std::vector<unsigned char> head_;  // read to look at the magic bytes, not yet handed out
  std::vector<unsigned char> block_;
  archive* archive_ = nullptr;
  std::exception_ptr failure_;
  uint64_t read_ = 0;
};

TextSource::TextSource(std::vector<std::string> inputs, size_t piece_bytes, size_t longest_line)
    : inputs_(std::move(inputs)), piece_bytes_(piece_bytes), longest_line_(std::max(longest_line, piece_bytes)) {
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
    const File file = File::open_read(input);
    if (!file.is_regular()) {
      known = false;
    } else if (file.size() == 0) {
      fail(ErrorKind::input, "'{}' is empty: it has no rows to read", input);
    } else {
      total_bytes_ += file.size();
    }
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

bool TextSource::next(TextPiece& piece) {
  while (true) {
    if (!stream_) {
      if (input_ == inputs_.size()) return false;
      stream_ = std::make_unique<Stream>(inputs_[input_]);
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
