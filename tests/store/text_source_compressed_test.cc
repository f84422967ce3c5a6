// Compressed inputs, known by their content and not by their name.
#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "store/text_source.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::error_of;
using test::Folder;
using testing::HasSubstr;

struct Format {
  const char* name;
  int (*add_filter)(archive*);
};
constexpr std::array<Format, 5> kFormats = {{{"gz", archive_write_add_filter_gzip},
                                             {"bz2", archive_write_add_filter_bzip2},
                                             {"xz", archive_write_add_filter_xz},
                                             {"zst", archive_write_add_filter_zstd},
                                             {"lz4", archive_write_add_filter_lz4}}};

std::string compressed(const Format& format, const std::string& text) {
  std::string out(text.size() * 2 + (1 << 16), '\0');
  size_t used = 0;
  archive* writer = archive_write_new();
  archive_entry* entry = archive_entry_new();
  format.add_filter(writer);
  archive_write_set_format_raw(writer);
  archive_write_set_bytes_in_last_block(writer, 1);
  bool ok = archive_write_open_memory(writer, out.data(), out.size(), &used) == ARCHIVE_OK;
  archive_entry_set_pathname(entry, "data");
  archive_entry_set_filetype(entry, AE_IFREG);
  ok = ok && archive_write_header(writer, entry) == ARCHIVE_OK &&
       archive_write_data(writer, text.data(), text.size()) == static_cast<la_ssize_t>(text.size()) &&
       archive_write_close(writer) == ARCHIVE_OK;
  EXPECT_TRUE(ok) << format.name << ": " << archive_error_string(writer);
  archive_entry_free(entry);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

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

TEST(TextSourceCompressed, ReadsEveryFormatByItsContent) {
  const Folder folder;
  const std::string text = some_rows(2000);
  for (const Format& format : kFormats) {
    const std::string bytes = compressed(format, text);
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
  test::write_file(folder / "b", compressed(kFormats[0], "2 2:2\n3 3:3"));
  test::write_file(folder / "c", "4 4:4");
  TextSource source({folder / "a.gz", folder / "b", folder / "c"}, 100, 100);
  EXPECT_EQ(read_all(source), "1 1:1\n2 2:2\n3 3:3\n4 4:4\n");
}

TEST(TextSourceCompressed, ReadsFilesOfSeveralMembers) {
  const Folder folder;
  const std::string first = some_rows(500, 1) + "7 7:";
  const std::string second = "7\n" + some_rows(500, 2);
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", compressed(format, first) + compressed(format, second));
    TextSource source({folder / "f"}, 1000, 10000);
    EXPECT_EQ(read_all(source), first + second) << format.name;
  }
}

TEST(TextSourceCompressed, ReadsThroughShortReads) {
  const Folder folder;
  const std::string text = some_rows(300);
  for (const Format& format : kFormats) {
    test::write_file(folder / "f", compressed(format, text));
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
    const std::string bytes = compressed(format, text);
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
    std::string bytes = compressed(format, text);
    for (size_t i = 0; i < 40; ++i) bytes[bytes.size() / 2 + i] = static_cast<char>(~bytes[bytes.size() / 2 + i]);
    test::write_file(folder / "bad", bytes);
    std::string back;
    const auto error = error_of([&] {
      TextSource source({folder / "bad"}, 1000, 100000);
      back = read_all(source);
    });
    if (format.add_filter == archive_write_add_filter_zstd || format.add_filter == archive_write_add_filter_lz4) {
      // Their checksums are optional, and libarchive writes none: whatever comes, it must come without a crash.
      EXPECT_TRUE(error || back != text) << format.name;
      continue;
    }
    EXPECT_TRUE(error) << format.name << " gives " << back.size() << " of " << text.size() << " bytes";
    if (!error) continue;
    EXPECT_EQ(error->kind(), ErrorKind::input) << format.name;
    EXPECT_THAT(error->what(), HasSubstr("'" + (folder / "bad") + "' is compressed, and cut short or damaged"));
  }
}

// The last eight bytes of a gz file are the checksum and the size of its text.
TEST(TextSourceCompressed, RefusesAGzFileWithAWrongChecksum) {
  const Folder folder;
  std::string bytes = compressed(kFormats[0], some_rows(100));
  bytes[bytes.size() - 8] = static_cast<char>(bytes[bytes.size() - 8] ^ 1);
  test::write_file(folder / "bad", bytes);
  const auto error = error_of([&] {
    TextSource source({folder / "bad"}, 1000, 10000);
    read_all(source);
  });
  ASSERT_TRUE(error) << "gzip -t would refuse it";
  EXPECT_EQ(error->kind(), ErrorKind::input);
}

TEST(TextSourceCompressed, PassesOnWhatTheFileSystemRefuses) {
  const Folder folder;
  test::write_file(folder / "f", compressed(kFormats[0], some_rows(5000)));
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
  for (const Format& format : std::span(kFormats).first(4)) {  // libarchive cannot write an lz4 file of nothing
    test::write_file(folder / "nothing", compressed(format, ""));
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
