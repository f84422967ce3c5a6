#include "store/chunk/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::fails_with;
using testing::AllOf;
using testing::HasSubstr;
using Bytes = std::vector<unsigned char>;

constexpr std::array<Codec, 4> kCodecs = {Codec::none, Codec::lz4, Codec::zstd, Codec::zlib};

// From all the same byte to noise.
Bytes some_bytes(size_t size, uint64_t kinds) {
  Random random(size, kinds);
  Bytes bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.below(kinds));
  return bytes;
}

Bytes compressed(Codec codec, const Bytes& raw) {
  Buffer out;
  compress(codec, raw, out);
  return {out.data(), out.data() + out.size()};
}

Bytes decompressed(Codec codec, const Bytes& stored, size_t raw_bytes) {
  Buffer out;
  decompress(codec, stored, raw_bytes, out, "chunk 7");
  EXPECT_EQ(out.size(), raw_bytes);
  return {out.data(), out.data() + out.size()};
}

TEST(Codec, GivesBackWhatWentInForAllSizes) {
  for (const Codec codec : kCodecs)
    for (const size_t size : {0, 1, 2, 3, 15, 16, 100, 4096, 65536, 1000000})
      for (const uint64_t kinds : {1, 4, 256}) {
        const Bytes raw = some_bytes(size, kinds);
        EXPECT_EQ(decompressed(codec, compressed(codec, raw), size), raw) << codec_name(codec) << ", " << size;
      }
}

RC_GTEST_PROP(Codec, GivesBackAnyBytes, (const Bytes& raw)) {
  const Codec codec = *rc::gen::elementOf(kCodecs);
  RC_ASSERT(decompressed(codec, compressed(codec, raw), raw.size()) == raw);
}

TEST(Codec, MakesRepetitiveBytesSmallerAndNoneLeavesThemAlone) {
  const Bytes raw = some_bytes(50000, 2);
  EXPECT_EQ(compressed(Codec::none, raw), raw);
  for (const Codec codec : {Codec::lz4, Codec::zstd, Codec::zlib})
    EXPECT_LT(compressed(codec, raw).size(), raw.size() * 3 / 4) << codec_name(codec);
}

TEST(Codec, CallsAFrameOfAnotherSizeDamaged) {
  for (const Codec codec : kCodecs)
    for (const size_t size : {2, 100, 5000}) {
      const Bytes stored = compressed(codec, some_bytes(size, 8));
      for (const size_t claimed : {size - 1, size + 1, 2 * size + 50, size_t{0}})
        EXPECT_THAT([&] { decompressed(codec, stored, claimed); }, fails_with(ErrorKind::damaged, "chunk 7"))
            << codec_name(codec) << ", " << claimed << " instead of " << size;
    }
}

TEST(Codec, CallsATruncatedFrameDamaged) {
  for (const Codec codec : kCodecs) {
    const Bytes stored = compressed(codec, some_bytes(2000, 5));
    for (size_t kept = 0; kept < stored.size(); kept += 1 + stored.size() / 50)
      EXPECT_THAT(
          [&] {
            decompressed(codec, {stored.begin(), stored.begin() + static_cast<ptrdiff_t>(kept)}, 2000);
          },
          fails_with(ErrorKind::damaged, std::string(codec_name(codec)) + " data cannot be decompressed"))
          << codec_name(codec) << ", " << kept << " of " << stored.size() << " bytes";
  }
}

// Chunks are checked before they are decompressed; here only safety is at stake: damaged, or some bytes of the size.
TEST(Codec, TakesAnyBytesWithoutWritingPastItsSize) {
  Random random(11);
  for (const Codec codec : kCodecs) {
    const Bytes stored = compressed(codec, some_bytes(3000, 5));
    size_t refused = 0;
    for (int repeat = 0; repeat < 500; ++repeat) {
      Bytes altered = stored;
      for (uint64_t change = 1 + random.below(3); change > 0; --change)
        altered[random.below(altered.size())] = static_cast<unsigned char>(random.next());
      try {
        EXPECT_EQ(decompressed(codec, altered, 3000).size(), 3000U);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::damaged);
        ++refused;
      }
    }
    EXPECT_EQ(refused == 0, codec == Codec::none) << codec_name(codec);
  }
}

TEST(Codec, IsKnownByItsName) {
  for (const Codec codec : kCodecs) EXPECT_EQ(codec_of(codec_name(codec)), codec);
  EXPECT_EQ(codec_name(Codec::zstd), "zstd");
  for (const char* name : {"", "gzip", "ZSTD", "auto", "zstd "})
    EXPECT_THAT([&] { codec_of(name); }, fails_with(ErrorKind::usage, "'" + std::string(name) + "' is not a codec"));
}

TEST(ChooseCodec, SaysWhyAndLeavesNoFileBehind) {
  const test::Folder folder;
  for (const uint64_t kinds : {2, 256}) {
    const CodecChoice choice = choose_codec(some_bytes(200000, kinds), folder.path());
    EXPECT_THAT(kCodecs, testing::Contains(choice.codec));
    EXPECT_EQ(choice.reason, "chosen by measuring the disk and the codecs") << "it is part of the store's identity";
    EXPECT_THAT(choice.measured, HasSubstr("the disk reads"));
    EXPECT_THAT(choice.measured, AllOf(HasSubstr("lz4"), HasSubstr("zstd"), HasSubstr("MB/s")));
    EXPECT_TRUE(list_directory(folder.path()).empty());
  }
}

TEST(ChooseCodec, LeavesNoiseAsItIs) {
  const test::Folder folder;
  EXPECT_EQ(choose_codec(some_bytes(1000000, 256), folder.path()).codec, Codec::none);
}

TEST(ChooseCodec, DoesNotMeasureForSmallData) {
  const test::Folder folder;
  set_file_hook([](const FileCall&) { return FileVerdict{.error = EIO}; });
  const CodecChoice choice = choose_codec(some_bytes(1000, 2), folder.path());
  set_file_hook({});
  EXPECT_EQ(choice.codec, Codec::none);
  EXPECT_THAT(choice.reason, HasSubstr("too small"));
}

TEST(ChooseCodec, PassesOnWhatTheFileSystemRefuses) {
  const test::Folder folder;
  EXPECT_THAT([&] { choose_codec(some_bytes(200000, 2), folder / "absent"); },
              fails_with(ErrorKind::io, folder / "absent"));
}

}  // namespace
}  // namespace linblock
