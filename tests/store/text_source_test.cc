// Pieces of whole lines from plain files, and what is refused before any work.
#include "store/text/text_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "store/text/svmlight.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using test::fails_with;
using test::Folder;
using testing::ElementsAre;
using testing::HasSubstr;

struct Seen {
  std::string text;
  size_t input;
  bool first;
  bool too_long;
};

std::vector<Seen> all_pieces(TextSource& source) {
  std::vector<Seen> pieces;
  TextPiece piece;
  while (source.next(piece)) {
    EXPECT_EQ(piece.ordinal, pieces.size());
    EXPECT_GT(piece.size, 0U);
    EXPECT_EQ(piece.text.data()[piece.size - 1], '\n');
    EXPECT_GE(piece.text.capacity(), piece.size + Buffer::kSlack);
    pieces.push_back({std::string(reinterpret_cast<const char*>(piece.text.data()), piece.size), piece.input,
                      piece.first, piece.too_long});
  }
  EXPECT_FALSE(source.next(piece)) << "the end stays the end";
  return pieces;
}

std::vector<std::string> texts(const std::vector<Seen>& pieces) {
  std::vector<std::string> only;
  for (const Seen& piece : pieces) only.push_back(piece.text);
  return only;
}

class Hooked {
 public:
  explicit Hooked(FileHook hook) { set_file_hook(std::move(hook)); }
  ~Hooked() { set_file_hook({}); }
};

rc::Gen<std::string> arbitrary_text() {
  return rc::gen::nonEmpty(rc::gen::container<std::string>(
      rc::gen::weightedElement<char>({{8, 'a'}, {4, '1'}, {2, ' '}, {1, '\r'}, {3, '\n'}})));
}

RC_GTEST_PROP(TextSource, GivesWholeLinesThatMakeUpTheInputsForAnyPieceSize, ()) {
  const Folder folder;
  const auto contents = *rc::gen::resize(
      300, rc::gen::nonEmpty(rc::gen::resize(
               5, rc::gen::container<std::vector<std::string>>(rc::gen::resize(300, arbitrary_text())))));
  std::vector<std::string> inputs;
  uint64_t bytes = 0;
  for (const std::string& content : contents) {
    inputs.push_back(folder / std::to_string(inputs.size()));
    test::write_file(inputs.back(), content);
    bytes += content.size();
  }
  const auto shortened = *rc::gen::inRange<uint64_t>(1, 100);
  const Hooked hooked([&](const FileCall&) { return FileVerdict{.shortened_to = shortened}; });
  TextSource source(inputs, *rc::gen::inRange<size_t>(1, 200), 100000);
  RC_ASSERT(source.total_bytes() == bytes);
  std::vector<std::string> back(inputs.size());
  size_t input = 0;
  for (const Seen& piece : all_pieces(source)) {
    RC_ASSERT(piece.input >= input);
    RC_ASSERT(piece.first == back[piece.input].empty());
    RC_ASSERT(!piece.too_long);
    RC_ASSERT(piece.text.back() == '\n');
    input = piece.input;
    back[input] += piece.text;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    RC_ASSERT(back[i] == contents[i] + (contents[i].back() == '\n' ? "" : "\n"));
  RC_ASSERT(source.bytes_read() == bytes);
  RC_ASSERT(!source.any_compressed());
  RC_ASSERT(source.name(0) == inputs[0]);
}

TEST(TextSource, EndsTheLastLineOfEachFileWhereTheFileDoesNot) {
  const Folder folder;
  test::write_file(folder / "a", "1 1:1\n2 2:2");
  test::write_file(folder / "b", "3 3:3");
  TextSource source({folder / "a", folder / "b"}, 1000, 1000);
  TextPiece piece;
  std::vector<int32_t> labels;
  ParsedRows rows;
  while (source.next(piece)) {
    parse_svmlight({piece.text.data(), piece.size}, {}, rows);
    ASSERT_TRUE(rows.bad().empty());
    for (size_t row = 0; row < rows.size(); ++row) labels.push_back(rows.label(row));
  }
  EXPECT_THAT(labels, ElementsAre(1, 2, 3));
}

TEST(TextSource, GivesALineLongerThanAPieceAsAWhole) {
  const Folder folder;
  const std::string line(950, 'x');
  test::write_file(folder / "f", "short\n" + line + "\nlast\n");
  TextSource source({folder / "f"}, 16, 1000);
  EXPECT_THAT(texts(all_pieces(source)), testing::Contains(testing::HasSubstr(line + "\n")));
}

TEST(TextSource, SaysWhichPieceIsTheBeginningOfALineThatIsTooLong) {
  const Folder folder;
  test::write_file(folder / "f", "1 1:1\n2 2:2\n" + std::string(5000, '7') + "\n3 3:3\n");
  TextSource source({folder / "f"}, 16, 1000);
  TextPiece piece;
  std::string before;
  while (source.next(piece) && !piece.too_long)
    before.append(reinterpret_cast<const char*>(piece.text.data()), piece.size);
  EXPECT_EQ(before, "1 1:1\n2 2:2\n");
  ASSERT_TRUE(piece.too_long);
  EXPECT_GE(piece.size, 1000U);
  EXPECT_LE(piece.size, 5001U);
  EXPECT_EQ(piece.text.data()[0], '7');
  EXPECT_EQ(piece.text.data()[piece.size - 1], '\n') << "a parser may be given it";
}

TEST(TextSource, TakesALineUpToTheLongestAllowed) {
  const Folder folder;
  for (const size_t length : {998, 999}) {
    test::write_file(folder / "f", std::string(length, '7') + "\n1\n");
    TextSource source({folder / "f"}, 16, 1000);
    for (const Seen& piece : all_pieces(source)) EXPECT_FALSE(piece.too_long) << length;
  }
  test::write_file(folder / "f", std::string(1001, '7') + "\n1\n");
  TextSource source({folder / "f"}, 16, 1000);
  EXPECT_TRUE(all_pieces(source)[0].too_long);
}

TEST(TextSource, RefusesAMissingFileAtOnce) {
  const Folder folder;
  test::write_file(folder / "there", "1\n");
  EXPECT_THAT(
      [&] {
        TextSource({folder / "there", folder / "absent"}, 100, 100);
      },
      fails_with(ErrorKind::input, "'" + (folder / "absent") + "' does not exist"));
}

TEST(TextSource, RefusesAFolderAtOnce) {
  const Folder folder;
  EXPECT_THAT([&] { TextSource({folder.path()}, 100, 100); },
              fails_with(ErrorKind::input, "'" + folder.path() + "' is a folder"));
}

TEST(TextSource, RefusesAnEmptyFileAtOnce) {
  const Folder folder;
  test::write_file(folder / "there", "1\n");
  test::write_file(folder / "empty", "");
  EXPECT_THAT(
      [&] {
        TextSource({folder / "there", folder / "empty"}, 100, 100);
      },
      fails_with(ErrorKind::input, "'" + (folder / "empty") + "' is empty"));
}

TEST(TextSource, RefusesStandardInputTwice) {
  EXPECT_THAT([] { TextSource({"-", "x", "-"}, 100, 100); }, fails_with(ErrorKind::usage, "standard input"));
}

TEST(TextSource, NamesTheFileWhenReadingFails) {
  const Folder folder;
  test::write_file(folder / "f", std::string(1000, '1') + "\n");
  TextSource source({folder / "f"}, 100, 10000);
  int reads = 0;
  const Hooked hooked([&](const FileCall& call) {
    return FileVerdict{.error = call.kind == FileCall::Kind::read && ++reads == 2 ? EIO : 0};
  });
  TextPiece piece;
  EXPECT_THAT(
      [&] {
        while (source.next(piece)) continue;
      },
      fails_with(ErrorKind::io, folder / "f"));
}

// Standard input becomes these bytes for a while.
class StandardInput {
 public:
  explicit StandardInput(const std::string& bytes) : saved_(::dup(STDIN_FILENO)) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0 || ::write(ends[1], bytes.data(), bytes.size()) < 0) ADD_FAILURE() << "no pipe";
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST(TextSource, ReadsStandardInputBetweenFiles) {
  const Folder folder;
  test::write_file(folder / "a", "1\n");
  test::write_file(folder / "b", "3\n");
  const StandardInput input("2");
  TextSource source({folder / "a", "-", folder / "b"}, 100, 100);
  EXPECT_EQ(source.total_bytes(), 0U) << "unknown";
  EXPECT_THAT(texts(all_pieces(source)), ElementsAre("1\n", "2\n", "3\n"));
}

TEST(TextSource, RefusesEmptyStandardInput) {
  const StandardInput input("");
  TextSource source({"-"}, 100, 100);
  TextPiece piece;
  EXPECT_THAT([&] { source.next(piece); }, fails_with(ErrorKind::input, "standard input is empty"));
}

TEST(TextSource, ReadsAPipeNamedAsAFile) {
  const StandardInput input("1 1:1\n2 2:2\n");
  TextSource source({"/dev/fd/0"}, 4, 100);
  EXPECT_EQ(source.total_bytes(), 0U);
  EXPECT_THAT(texts(all_pieces(source)), ElementsAre("1 1:1\n", "2 2:2\n"));
}

// Opening and closing it would end its writer with a broken pipe, or make the second opening wait for ever.
TEST(TextSource, OpensANamedPipeOnlyToReadIt) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int both_ends = ::open((folder / "pipe").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(both_ends, 0);
  int opened = 0;
  {
    const Hooked hooked([&](const FileCall& call) {
      opened += call.kind == FileCall::Kind::open ? 1 : 0;
      return FileVerdict{};
    });
    const TextSource source({folder / "pipe"}, 100, 100);
    EXPECT_EQ(source.total_bytes(), 0U);
  }
  ::close(both_ends);
  EXPECT_EQ(opened, 0);
}

}  // namespace
}  // namespace linblock
