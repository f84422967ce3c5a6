// Compressed inputs, known by their content and not by their name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "store/text/text_source.h"
#include "support/compress.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::error_of;
using test::Folder;
using test::Format;
using test::kFormats;
using test::words_of;
using testing::HasSubstr;

std::string some_rows(size_t rows, uint64_t seed = 1) {
  Random random(seed);
  std::string text;
  for (size_t row = 0; row < rows; ++row) {
    text += std::to_string(random.below(2));
    for (uint32_t index = 1; index < 20; ++index)
      text += " " + std::to_string(index) + ":0." + std::to_string(random.below(1000000));
    text += "\n";
  }
  return text;
}

std::string read_all(TextSource& source) {
  std::string text;
  TextPiece piece;
  while (source.next(piece)) text.append(reinterpret_cast<const char*>(piece.text.data()), piece.size);
  return text;
}

std::string read_all(const std::string& path, size_t piece_bytes = 1000, uint64_t most_decoding = UINT64_MAX) {
  TextSource source({path}, piece_bytes, 100000, most_decoding);
  return read_all(source);
}

TEST(TextSourceCompressed, ReadsEveryFormatByItsContent) {
  const Folder folder;
  const std::string text = some_rows(2000);
  for (const Format& format : kFormats) {
    const std::string bytes = format.compressed(text);
    ASSERT_LT(bytes.size(), text.size()) << format.name;
    test::write_file(folder / "data.txt", bytes);
    for (const size_t piece_bytes : {100, 5000, 10000000}) {
      TextSource source({folder / "data.txt"}, piece_bytes, 10000000);
      EXPECT_EQ(read_all(source), text) << format.name;
      EXPECT_TRUE(source.any_compressed()) << format.name;
      EXPECT_EQ(source.total_bytes(), bytes.size()) << format.name;
      EXPECT_EQ(source.bytes_read(), bytes.size()) << format.name << ": bytes as they lie on disk";
    }
  }
}

TEST(TextSourceCompressed, ReadsPlainAndCompressedFilesSideBySide) {
  const Folder folder;
  test::write_file(folder / "a.gz", "1 1:1\n");
  test::write_file(folder / "b", test::gz("2 2:2\n3 3:3"));
  test::write_file(folder / "c", "4 4:4");
  TextSource source({folder / "a.gz", folder / "b", folder / "c"}, 100, 100);
  EXPECT_EQ(read_all(source), "1 1:1\n2 2:2\n3 3:3\n4 4:4\n");
}

TEST(TextSourceCompressed, ReadsFilesOfSeveralMembers) {
  const Folder folder;
  const std::string first = some_rows(500, 1) + "7 7:";
  const std::string second = "7\n" + some_rows(500, 2);
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", format.compressed(first) + format.compressed(second));
    TextSource source({folder / "f"}, 1000, 10000);
    EXPECT_EQ(read_all(source), first + second) << format.name;
  }
}

TEST(TextSourceCompressed, ReadsThroughShortReads) {
  const Folder folder;
  const std::string text = some_rows(300);
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", format.compressed(text));
    set_file_hook([](const FileCall&) { return FileVerdict{.shortened_to = 3}; });
    TextSource source({folder / "f"}, 1000, 10000);
    EXPECT_EQ(read_all(source), text) << format.name;
    set_file_hook({});
  }
}

TEST(TextSourceCompressed, RefusesAFileThatIsCutShort) {
  const Folder folder;
  const std::string text = some_rows(1000);
  for (const Format& format : kFormats) {
    const std::string bytes = format.compressed(text);
    for (const size_t kept : {size_t{40}, bytes.size() / 2, bytes.size() - 9, bytes.size() - 1}) {
      test::write_file(folder / "cut", bytes.substr(0, kept));
      const auto error = error_of([&] {
        TextSource source({folder / "cut"}, 1000, 10000);
        read_all(source);
      });
      ASSERT_TRUE(error) << format.name << ", " << kept << " of " << bytes.size() << " bytes";
      EXPECT_EQ(error->kind(), ErrorKind::input) << format.name;
      EXPECT_THAT(error->what(), HasSubstr("'" + (folder / "cut") + "' is compressed, and cut short or damaged"));
    }
  }
}

TEST(TextSourceCompressed, RefusesAFileThatIsDamaged) {
  const Folder folder;
  const std::string text = some_rows(1000);
  for (const Format& format : kFormats) {
    std::string bytes = format.compressed(text);
    for (size_t i = 0; i < 40; ++i) bytes[bytes.size() / 2 + i] = static_cast<char>(~bytes[bytes.size() / 2 + i]);
    test::write_file(folder / "bad", bytes);
    std::string back;
    const auto error = error_of([&] {
      TextSource source({folder / "bad"}, 1000, 100000);
      back = read_all(source);
    });
    EXPECT_TRUE(error) << format.name << " gives " << back.size() << " of " << text.size() << " bytes";
    if (!error) continue;
    EXPECT_EQ(error->kind(), ErrorKind::input) << format.name;
    EXPECT_THAT(error->what(), HasSubstr("'" + (folder / "bad") + "' is compressed, and cut short or damaged"));
  }
}

// Every byte is covered: by a checksum, by a field that must have one value, or by one that does not change the text.
TEST(TextSourceCompressed, GivesNoOtherTextWhereOneBitIsWrong) {
  const Folder folder;
  const std::string text = some_rows(3);
  for (const Format& format : kFormats) {
    const std::string bytes = format.compressed(text);
    size_t refused = 0;
    for (size_t at = format.magic_bytes; at < bytes.size(); ++at) {
      std::string altered = bytes;
      altered[at] = static_cast<char>(altered[at] ^ 1);
      test::write_file(folder / "bad", altered);
      std::string back;
      if (error_of([&] { back = read_all(folder / "bad"); }))
        ++refused;
      else
        EXPECT_EQ(back, text) << format.name << ", byte " << at;
    }
    EXPECT_GT(refused, bytes.size() - 20) << format.name;
  }
}

TEST(TextSourceCompressed, RefusesACutAtEveryByte) {
  const Folder folder;
  const std::string text = some_rows(3);
  for (const Format& format : kFormats) {
    const std::string bytes = format.compressed(text);
    // Of two members, the second is cut; in its place nothing at all would be fine.
    for (const std::string& before : {std::string(), bytes}) {
      for (size_t kept = before.empty() ? format.magic_bytes : 1; kept < bytes.size(); ++kept) {
        test::write_file(folder / "cut", before + bytes.substr(0, kept));
        for (const size_t piece_bytes : {1, 1000}) {
          const auto error = error_of([&] { read_all(folder / "cut", piece_bytes); });
          ASSERT_TRUE(error) << format.name << ", " << kept << " of " << bytes.size() << " bytes";
          ASSERT_EQ(error->kind(), ErrorKind::input) << format.name;
          ASSERT_THAT(error->what(), HasSubstr("cut short or damaged: it ends in the middle")) << format.name;
        }
      }
    }
  }
}

TEST(TextSourceCompressed, SkipsZerosBehindAMember) {
  const Folder folder;
  const std::string zeros(512, '\0');
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", format.compressed("1 1:1\n") + zeros + format.compressed("2 2:2\n") + zeros);
    EXPECT_EQ(read_all(folder / "f"), "1 1:1\n2 2:2\n") << format.name;
  }
}

TEST(TextSourceCompressed, RefusesWhatIsNotCompressedBehindAMember) {
  const Folder folder;
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", format.compressed("1 1:1\n") + "2 2:2\n" + std::string(100, 'x'));
    const auto error = error_of([&] { read_all(folder / "f"); });
    ASSERT_TRUE(error) << format.name;
    EXPECT_EQ(error->kind(), ErrorKind::input);
    EXPECT_THAT(error->what(), HasSubstr("cut short or damaged")) << format.name;
  }
}

TEST(TextSourceCompressed, RefusesTextCompressedTwice) {
  const Folder folder;
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", format.compressed(test::bz2("1 1:1\n")));
    const auto error = error_of([&] { read_all(folder / "f"); });
    ASSERT_TRUE(error) << format.name;
    EXPECT_EQ(error->kind(), ErrorKind::input);
    EXPECT_THAT(error->what(), HasSubstr("compressed twice")) << format.name;
  }
}

// pzstd begins its files so.
TEST(TextSourceCompressed, SkipsTheFramesOfZstdThatAreThereToBeSkipped) {
  const Folder folder;
  const std::string skipped = std::string("\x50\x2a\x4d\x18\x04\0\0\0", 8) + "size";
  test::write_file(folder / "f", skipped + test::zst("1 1:1\n") + skipped + test::zst("2 2:2\n") + skipped);
  EXPECT_EQ(read_all(folder / "f"), "1 1:1\n2 2:2\n");
}

// xz asks for 8 MB, whatever the size of the text; lz4 for twice 1 MB.
TEST(TextSourceCompressed, RefusesTextThatTakesTooMuchMemoryWhenItDoes) {
  const Folder folder;
  const std::string few = some_rows(10);
  std::string repeated;
  while (repeated.size() < 1 << 20) repeated += few;
  const std::string varied = some_rows(5000);
  for (const Format& format : kFormats) {
    if (format.compressed == test::gz || format.compressed == test::bz2) continue;
    constexpr uint64_t kMost = 400000;
    test::write_file(folder / "short", format.compressed(few) + format.compressed(few));
    EXPECT_EQ(read_all(folder / "short", 1000, kMost), few + few) << format.name;
    for (const std::string& text : {varied, repeated}) {  // a long file, and a short one of much text
      test::write_file(folder / "long", format.compressed(text));
      EXPECT_EQ(read_all(folder / "long", 1000, 10 << 20), text) << format.name;
      test::write_file(folder / "long", format.compressed(few) + format.compressed(text));
      const auto error = error_of([&] { read_all(folder / "long", 1000, kMost); });
      ASSERT_TRUE(error) << format.name << ", " << text.size();
      EXPECT_EQ(error->kind(), ErrorKind::memory) << format.name;
      EXPECT_THAT(words_of(*error), HasSubstr("(give more memory) (decompress it first)")) << format.name;
    }
  }
}

TEST(TextSourceCompressed, ReadsBz2InLittleMemory) {
  const Folder folder;
  const std::string text = some_rows(2000);
  test::write_file(folder / "f", test::bz2(text));
  EXPECT_EQ(read_all(folder / "f", 1000, 1 << 20), text);
}

TEST(TextSourceCompressed, PassesOnWhatTheFileSystemRefuses) {
  const Folder folder;
  test::write_file(folder / "f", test::gz(some_rows(5000)));
  int reads = 0;
  set_file_hook([&](const FileCall& call) {
    return FileVerdict{.error = call.kind == FileCall::Kind::read && ++reads == 3 ? EIO : 0};
  });
  const auto error = error_of([&] {
    TextSource source({folder / "f"}, 1000, 10000);
    read_all(source);
  });
  set_file_hook({});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::io);
  EXPECT_THAT(error->what(), HasSubstr(folder / "f"));
}

TEST(TextSourceCompressed, RefusesACompressedNothingAsItRefusesAnEmptyFile) {
  const Folder folder;
  for (const Format& format : kFormats) {
    test::write_file(folder / "nothing", format.compressed(""));
    const auto error = error_of([&] {
      TextSource source({folder / "nothing"}, 1000, 10000);
      read_all(source);
    });
    ASSERT_TRUE(error) << format.name;
    EXPECT_EQ(error->kind(), ErrorKind::input);
    EXPECT_THAT(error->what(), HasSubstr("is empty")) << format.name;
  }
}

}  // namespace
}  // namespace linblock
