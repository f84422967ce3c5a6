#include "store/chunk/codec.h"

#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "base/file.h"

namespace linblock {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"none", "lz4", "zstd", "zlib"};
constexpr int kZstdLevel = 1;
constexpr int kZlibLevel = 1;

size_t compressed_limit(Codec codec, size_t bytes) {
  switch (codec) {
    case Codec::none: return bytes;
    case Codec::lz4: return static_cast<size_t>(LZ4_compressBound(static_cast<int>(bytes)));
    case Codec::zstd: return ZSTD_compressBound(bytes);
    case Codec::zlib: return compressBound(bytes);
  }
  return bytes;
}

// Contexts are a few hundred kilobytes: one a thread, made at the first use.
ZSTD_CCtx* zstd_compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  return context.get();
}

ZSTD_DCtx* zstd_decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return context.get();
}

}  // namespace

std::string_view codec_name(Codec codec) { return kNames[static_cast<size_t>(codec)]; }

Codec codec_of(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Codec>(i);
  fail(ErrorKind::usage, "'{}' is not a codec: choose auto, none, lz4, zstd or zlib", name);
}

bool is_codec(std::string_view name) { return std::find(kNames.begin(), kNames.end(), name) != kNames.end(); }

void compress(Codec codec, std::span<const unsigned char> raw, Buffer& out) {
  out.resize(compressed_limit(codec, raw.size()));
  size_t used = 0;
  switch (codec) {
    case Codec::none:
      std::copy(raw.begin(), raw.end(), out.data());
      used = raw.size();
      break;
    case Codec::lz4:
      used = static_cast<size_t>(LZ4_compress_default(reinterpret_cast<const char*>(raw.data()),
                                                      reinterpret_cast<char*>(out.data()), static_cast<int>(raw.size()),
                                                      static_cast<int>(out.size())));
      break;
    case Codec::zstd:
      used = ZSTD_compressCCtx(zstd_compressor(), out.data(), out.size(), raw.data(), raw.size(), kZstdLevel);
      if (ZSTD_isError(used) != 0) used = 0;
      break;
    case Codec::zlib: {
      uLongf length = out.size();
      if (compress2(out.data(), &length, raw.data(), raw.size(), kZlibLevel) == Z_OK) used = length;
      break;
    }
  }
  if (used == 0 && !raw.empty())
    fail(ErrorKind::io, "{} could not compress a chunk of {} bytes", codec_name(codec), raw.size());
  out.resize(used);
}

void decompress(Codec codec, std::span<const unsigned char> stored, size_t raw_bytes, Buffer& out,
                std::string_view where) {
  out.resize(raw_bytes);
  bool whole = false;
  switch (codec) {
    case Codec::none:
      whole = stored.size() == raw_bytes;
      if (whole) std::copy(stored.begin(), stored.end(), out.data());
      break;
    case Codec::lz4:
      whole = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(out.data()),
                                  static_cast<int>(stored.size()),
                                  static_cast<int>(raw_bytes)) == static_cast<int>(raw_bytes);
      break;
    case Codec::zstd:
      whole =
          ZSTD_decompressDCtx(zstd_decompressor(), out.data(), raw_bytes, stored.data(), stored.size()) == raw_bytes;
      break;
    case Codec::zlib: {
      uLongf length = raw_bytes;
      whole = uncompress(out.data(), &length, stored.data(), stored.size()) == Z_OK && length == raw_bytes;
      break;
    }
  }
  if (!whole) fail(ErrorKind::damaged, "{}: its {} data cannot be decompressed", where, codec_name(codec));
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Reads back, from the disk and not from the page cache, what it has just written.
double measure_disk(const std::string& folder) {
  constexpr size_t kBytes = size_t{2} << 20;
  const std::string path = fmt::format("{}/{}", folder, format::kProbeName);
  std::vector<unsigned char> bytes(kBytes);
  for (size_t i = 0; i < kBytes; i += 8) store_le(&bytes[i], i * 0x9e3779b97f4a7c15ULL);
  File file = File::create(path, "");
  file.write_at(bytes, 0);
  file.sync();
  file.drop_from_cache();
  const auto begin = Clock::now();
  file.read_exactly_at(bytes, 0);
  const double seconds = seconds_since(begin);
  file.close();
  remove_file(path);
  return kBytes / std::max(seconds, 1e-6);
}

}  // namespace

CodecChoice choose_codec(std::span<const unsigned char> sample_chunk, const std::string& folder) {
  if (sample_chunk.size() < size_t{32} << 10) return {Codec::none, "the data is too small for compression to matter"};
  const double disk = measure_disk(folder);
  // Seconds a raw byte, to read and to decompress: the two may overlap, but a processor that decompresses does not
  // train meanwhile.
  double best_cost = 1 / disk;
  const double none_cost = best_cost;
  CodecChoice choice;
  std::string tried;
  Buffer stored;
  Buffer back;
  for (const Codec codec : {Codec::lz4, Codec::zstd}) {
    compress(codec, sample_chunk, stored);
    double seconds = 1e9;
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto begin = Clock::now();
      decompress(codec, stored.span(), sample_chunk.size(), back, "the codec probe");
      seconds = std::min(seconds, seconds_since(begin));
    }
    const auto raw = static_cast<double>(sample_chunk.size());
    const double share = static_cast<double>(stored.size()) / raw;
    const double cost = share / disk + seconds / raw;
    tried += fmt::format(", {} would leave {:.0f}% and decode at {:.0f} MB/s", codec_name(codec), 100 * share,
                         raw / seconds / 1e6);
    if (cost < best_cost && cost < 0.95 * none_cost) {
      best_cost = cost;
      choice.codec = codec;
    }
  }
  choice.reason = "chosen by measuring the disk and the codecs";
  choice.measured = fmt::format("the disk reads {:.0f} MB/s{}", disk / 1e6, tried);
  return choice;
}

}  // namespace linblock
