#include "store/text/decompress.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <new>
#include <string_view>

namespace linblock {

namespace {

using Bytes = std::span<const unsigned char>;
using Text = std::span<unsigned char>;
using DecodeState = DecodeStep::DecodeState;

// More than any compressor takes unless asked to; no file may reserve more unless the caller has it.
constexpr uint64_t kUsualLimit = uint64_t{1} << 30;

// zlib and bzip2 count in 32 bits.
unsigned count(size_t bytes) { return static_cast<unsigned>(std::min<size_t>(bytes, UINT_MAX)); }

// zlib and bzip2 take a pointer to bytes that may change, and change none.
template <typename Byte>
Byte* input_of(Bytes compressed) {
  return const_cast<Byte*>(reinterpret_cast<const Byte*>(compressed.data()));
}

class GzDecoder final : public Decoder {
 public:
  GzDecoder() {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzDecoder() override { inflateEnd(&stream_); }
  GzDecoder(const GzDecoder&) = delete;
  GzDecoder& operator=(const GzDecoder&) = delete;

  void begin_member() override { inflateReset(&stream_); }

  DecodeStep decode(Bytes compressed, Text text) override {
    stream_.next_in = input_of<Bytef>(compressed);
    stream_.avail_in = count(compressed.size());
    stream_.next_out = text.data();
    stream_.avail_out = count(text.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    DecodeStep step{.taken = count(compressed.size()) - stream_.avail_in,
                    .made = count(text.size()) - stream_.avail_out};
    if (result == Z_STREAM_END) {
      step.state = DecodeState::member_ended;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      step.state = DecodeState::damaged;
      step.why = stream_.msg == nullptr ? "it is not gz data" : stream_.msg;
    }
    return step;
  }

 private:
  z_stream stream_ = {};
};

class Bz2Decoder final : public Decoder {
 public:
  // bzip2 takes up to 3.7 MB; where that is too much, 2.3 at half the speed.
  explicit Bz2Decoder(uint64_t most_bytes) : small_(most_bytes < 3'700'000) {}
  ~Bz2Decoder() override { end(); }
  Bz2Decoder(const Bz2Decoder&) = delete;
  Bz2Decoder& operator=(const Bz2Decoder&) = delete;

  void begin_member() override {
    end();
    if (BZ2_bzDecompressInit(&stream_, 0, small_ ? 1 : 0) != BZ_OK) throw std::bad_alloc();
    begun_ = true;
  }

  DecodeStep decode(Bytes compressed, Text text) override {
    stream_.next_in = input_of<char>(compressed);
    stream_.avail_in = count(compressed.size());
    stream_.next_out = reinterpret_cast<char*>(text.data());
    stream_.avail_out = count(text.size());
    const int result = BZ2_bzDecompress(&stream_);
    DecodeStep step{.taken = count(compressed.size()) - stream_.avail_in,
                    .made = count(text.size()) - stream_.avail_out};
    if (result == BZ_STREAM_END) {
      step.state = DecodeState::member_ended;
    } else if (result == BZ_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != BZ_OK) {
      step.state = DecodeState::damaged;
      step.why = result == BZ_DATA_ERROR_MAGIC ? "it is not bz2 data" : "its bz2 data is wrong or has a wrong checksum";
    }
    return step;
  }

 private:
  void end() {
    if (begun_) BZ2_bzDecompressEnd(&stream_);
    begun_ = false;
  }

  bz_stream stream_ = {};
  bool small_;
  bool begun_ = false;
};

class XzDecoder final : public Decoder {
 public:
  explicit XzDecoder(uint64_t most_bytes) : most_bytes_(std::max(most_bytes, kUsualLimit)) {}
  ~XzDecoder() override { lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  void begin_member() override {
    if (lzma_stream_decoder(&stream_, most_bytes_, 0) != LZMA_OK) throw std::bad_alloc();
  }

  DecodeStep decode(Bytes compressed, Text text) override {
    stream_.next_in = compressed.data();
    stream_.avail_in = compressed.size();
    stream_.next_out = text.data();
    stream_.avail_out = text.size();
    const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
    DecodeStep step{.taken = compressed.size() - stream_.avail_in, .made = text.size() - stream_.avail_out};
    switch (result) {
      case LZMA_OK:
      case LZMA_BUF_ERROR: break;
      case LZMA_STREAM_END: step.state = DecodeState::member_ended; break;
      case LZMA_MEMLIMIT_ERROR: step.state = DecodeState::too_large; break;
      case LZMA_MEM_ERROR: throw std::bad_alloc();
      default:
        step.state = DecodeState::damaged;
        step.why = result == LZMA_FORMAT_ERROR    ? "it is not xz data"
                   : result == LZMA_OPTIONS_ERROR ? "it uses a filter that is not known here"
                                                  : "its xz data is wrong or has a wrong checksum";
    }
    return step;
  }

  uint64_t memory_bytes() override { return lzma_memusage(&stream_); }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  uint64_t most_bytes_;
};

class ZstDecoder final : public Decoder {
 public:
  explicit ZstDecoder(uint64_t most_bytes) : context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (!context_) throw std::bad_alloc();
    const ZSTD_bounds logs = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
    const auto log = static_cast<int>(std::bit_width(std::max(most_bytes, kUsualLimit))) - 1;
    most_log_ = std::min(log, logs.upperBound);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, most_log_);
  }

  void begin_member() override { ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only); }

  DecodeStep decode(Bytes compressed, Text text) override {
    ZSTD_inBuffer from{compressed.data(), compressed.size(), 0};
    ZSTD_outBuffer to{text.data(), text.size(), 0};
    const size_t result = ZSTD_decompressStream(context_.get(), &to, &from);
    DecodeStep step{.taken = from.pos, .made = to.pos};
    if (ZSTD_isError(result) != 0) {
      const ZSTD_ErrorCode error = ZSTD_getErrorCode(result);
      if (error == ZSTD_error_memory_allocation) throw std::bad_alloc();
      too_large_ = error == ZSTD_error_frameParameter_windowTooLarge;
      step.state = too_large_ ? DecodeState::too_large : DecodeState::damaged;
      step.why = ZSTD_getErrorName(result);
    } else if (result == 0) {
      step.state = DecodeState::member_ended;
    }
    return step;
  }

  // It does not tell how much too large: the next power of two, then.
  uint64_t memory_bytes() override { return too_large_ ? uint64_t{2} << most_log_ : ZSTD_sizeof_DCtx(context_.get()); }

 private:
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  int most_log_ = 0;
  bool too_large_ = false;
};

class Lz4Decoder final : public Decoder {
 public:
  Lz4Decoder() {
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) != 0) throw std::bad_alloc();
  }
  ~Lz4Decoder() override { LZ4F_freeDecompressionContext(context_); }
  Lz4Decoder(const Lz4Decoder&) = delete;
  Lz4Decoder& operator=(const Lz4Decoder&) = delete;

  void begin_member() override { LZ4F_resetDecompressionContext(context_); }

  DecodeStep decode(Bytes compressed, Text text) override {
    DecodeStep step{.taken = compressed.size(), .made = text.size()};
    const size_t result = LZ4F_decompress(context_, text.data(), &step.made, compressed.data(), &step.taken, nullptr);
    if (LZ4F_isError(result) != 0) {
      step.state = DecodeState::damaged;
      step.why = LZ4F_getErrorName(result);
      if (step.why == "ERROR_allocation_failed") throw std::bad_alloc();
    } else if (result == 0) {
      step.state = DecodeState::member_ended;
    }
    return step;
  }

  // A block as it is stored, and one as it was: lz4 files have blocks of up to 4 MB.
  uint64_t memory_bytes() override {
    LZ4F_frameInfo_t info = {};
    size_t no_bytes = 0;
    if (LZ4F_isError(LZ4F_getFrameInfo(context_, &info, nullptr, &no_bytes)) != 0) return 0;
    return info.blockSizeID < LZ4F_max64KB ? 0 : uint64_t{2} << (8 + 2 * static_cast<unsigned>(info.blockSizeID));
  }

 private:
  LZ4F_dctx* context_ = nullptr;
};

enum class Format { text, gz, bz2, xz, zst, lz4 };

Format format_of(Bytes head) {
  using namespace std::string_view_literals;
  const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
  if (bytes.starts_with("\x1f\x8b"sv)) return Format::gz;
  if (bytes.starts_with("BZh"sv)) return Format::bz2;
  if (bytes.starts_with("\xfd\x37zXZ\0"sv)) return Format::xz;
  if (bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return Format::zst;
  if (bytes.starts_with("\x04\x22\x4d\x18"sv)) return Format::lz4;
  // A frame to be skipped: pzstd begins its files with one.
  if (bytes.size() >= 4 && bytes.substr(1, 3) == "\x2a\x4d\x18"sv && (head[0] & 0xf0U) == 0x50) return Format::zst;
  return Format::text;
}

}  // namespace

bool looks_compressed(Bytes head) { return format_of(head) != Format::text; }

std::unique_ptr<Decoder> make_decoder(Bytes head, uint64_t most_bytes) {
  switch (format_of(head)) {
    case Format::text: return nullptr;
    case Format::gz: return std::make_unique<GzDecoder>();
    case Format::bz2: return std::make_unique<Bz2Decoder>(most_bytes);
    case Format::xz: return std::make_unique<XzDecoder>(most_bytes);
    case Format::zst: return std::make_unique<ZstDecoder>(most_bytes);
    case Format::lz4: return std::make_unique<Lz4Decoder>();
  }
  return nullptr;
}

}  // namespace linblock
