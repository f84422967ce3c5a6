// What the compression tools write, with their checksums, in one piece.
#pragma once

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <memory>
#include <string>

namespace linblock::test {

struct Format {
  const char* name;
  size_t magic_bytes;
  std::string (*compressed)(const std::string& text);
};

inline std::string room_for(const std::string& text) { return std::string(text.size() * 2 + (1 << 16), '\0'); }

inline std::string gz(const std::string& text) {
  std::string out = room_for(text);
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string bz2(const std::string& text) {
  std::string out = room_for(text);
  auto used = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &used, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 9, 0, 0),
            BZ_OK);
  out.resize(used);
  return out;
}

inline std::string xz(const std::string& text) {
  std::string out = room_for(text);
  size_t used = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                                    text.size(), reinterpret_cast<uint8_t*>(out.data()), &used, out.size()),
            LZMA_OK);
  out.resize(used);
  return out;
}

inline std::string zst(const std::string& text) {
  std::string out = room_for(text);
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const size_t used = ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size());
  EXPECT_EQ(ZSTD_isError(used), 0U);
  out.resize(used);
  return out;
}

inline std::string lz4(const std::string& text) {
  std::string out = room_for(text);
  LZ4F_preferences_t wanted = {};
  wanted.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  wanted.frameInfo.blockSizeID = LZ4F_max1MB;
  const size_t used = LZ4F_compressFrame(out.data(), out.size(), text.data(), text.size(), &wanted);
  EXPECT_EQ(LZ4F_isError(used), 0U);
  out.resize(used);
  return out;
}

inline constexpr std::array<Format, 5> kFormats = {
    {{"gz", 2, gz}, {"bz2", 3, bz2}, {"xz", 6, xz}, {"zst", 4, zst}, {"lz4", 4, lz4}}};

}  // namespace linblock::test
