// Names of features in a store: the file NAMES.
#include "store/core/feature_names.h"

#include <gtest/gtest.h>

#include <set>

#include "store/core/compact.h"
#include "store/core/store_snapshot.h"
#include "support/packing.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words
using Names = std::map<uint64_t, std::string>;

class FeatureNamesOfAStore : public testing::Test {
 protected:
  void pack_with(const std::string& names, PackOptions options = small_options()) {
    write_file(folder_ / "names", names);
    options.names = folder_ / "names";
    pack_rows(sample_rows(60), store_, options);
  }
  Names read(const std::string& store) const {
    Names names;
    Store::open(store).feature_names().each([&](uint64_t index, std::string_view name) { names.emplace(index, name); });
    return names;
  }
  std::string names_file() const { return feature_names_path(store_); }

  const Folder folder_;
  const std::string store_ = folder_ / "store";
};

TEST_F(FeatureNamesOfAStore, AreThoseOfTheLines) {
  pack_with("the\n\n  of a kind \r\n\xC3\xA9t\xC3\xA9\n\n");
  EXPECT_EQ(read(store_), (Names{{1, "the"}, {3, "of a kind"}, {4, "\xC3\xA9t\xC3\xA9"}}));
  const FeatureNamesInfo info = Store::open(store_).info().feature_names;
  EXPECT_EQ(info.count, 4U);
  EXPECT_EQ(info.named, 3U);
  EXPECT_EQ(info.bytes, read_file(names_file()).size());
}

TEST_F(FeatureNamesOfAStore, HaveTheBytesThatTheFormatSays) {
  pack_with("the\n\nof\n");
  const std::string expected("LBFNAMES\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\3\0the\0\0\2\0of", 35);
  EXPECT_EQ(read_file(names_file()), expected);
  EXPECT_EQ(manifest_version(Store::open(store_).info()), 2U);
}

TEST_F(FeatureNamesOfAStore, BeginWithTheIndexBase) {
  PackOptions options = small_options();
  options.index_base = 0;
  pack_with("zero\none\n", options);
  EXPECT_EQ(read(store_), (Names{{0, "zero"}, {1, "one"}}));
}

TEST_F(FeatureNamesOfAStore, AreReadPieceByPieceWhateverTheirLength) {
  Names expected;
  std::string text;
  for (uint64_t i = 1; i <= 3000; ++i) {
    const std::string name = i % 5 == 0 ? "" : std::to_string(i) + std::string(i % 1000, 'x');
    text += name + "\n";
    if (!name.empty()) expected[i] = name;
  }
  pack_with(text);
  EXPECT_EQ(read(store_), expected);
}

TEST_F(FeatureNamesOfAStore, StayThroughAppendCompactAndSnapshot) {
  pack_with("a\nb\n");
  const std::string before = read_file(names_file());
  append_rows(sample_rows(20, 2), store_, small_options());
  EXPECT_EQ(read(store_), (Names{{1, "a"}, {2, "b"}}));
  compact(store_, {});
  EXPECT_EQ(read(store_), (Names{{1, "a"}, {2, "b"}}));
  snapshot_store(store_, folder_ / "kept");
  EXPECT_EQ(read(folder_ / "kept"), (Names{{1, "a"}, {2, "b"}}));
  EXPECT_EQ(read_file(names_file()), before);
}

TEST_F(FeatureNamesOfAStore, AStoreWithoutThemKeepsItsVersion) {
  pack_rows(sample_rows(60), store_, small_options());
  EXPECT_TRUE(Store::open(store_).feature_names().empty());
  EXPECT_EQ(manifest_version(Store::open(store_).info()), 1U);
  EXPECT_EQ(path_kind(names_file()), PathKind::absent);
}

TEST_F(FeatureNamesOfAStore, TextThatIsNoNamesIsRefusedWithItsLine) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"a\nb\xFF\n", "names:2: this is no name of a feature: it is not UTF-8"},
           {"a\tb\n", "names:1: this is no name of a feature: it has a control character"},
           {"\n" + std::string(1025, 'x') + "\n", "names:2: this is no name of a feature: it is longer than 1024"},
           {"\xEF\xBB\xBFthe\n", "byte order mark"},
           {"\n\n", "has no names"}}) {
    const auto packing = [&, names = text] { pack_with(names); };
    EXPECT_THAT(packing, fails_with(ErrorKind::input, words));
    EXPECT_EQ(path_kind(store_), PathKind::absent);
  }
  pack_with(std::string(1024, 'x') + "\n");
  EXPECT_EQ(read(store_).at(1).size(), 1024U);
}

TEST_F(FeatureNamesOfAStore, EveryChangedByteIsFound) {
  pack_with("the\n\nof\n");
  const std::string whole = read_file(names_file());
  const auto verified = [&] { verify(Store::open(store_), 1); };
  verified();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 2, 16, 128, 255}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      write_file(names_file(), changed);
      SCOPED_TRACE(testing::Message() << "byte " << at << " ^ " << change);
      EXPECT_THAT(verified, fails_with(ErrorKind::damaged, "NAMES"));
    }
    write_file(names_file(), whole.substr(0, at));
    EXPECT_THAT(verified, fails_with(ErrorKind::damaged, "NAMES"));
  }
  write_file(names_file(), whole + "x");
  EXPECT_THAT(verified, fails_with(ErrorKind::damaged, "NAMES"));
  remove_file(names_file());
  EXPECT_THAT(verified, fails_with(ErrorKind::damaged, "NAMES' is missing"));
}

TEST_F(FeatureNamesOfAStore, AManifestThatContradictsItselfIsDamage) {
  pack_with("the\n\nof\n");
  const StoreInfo whole = read_manifest(store_);
  for (const auto& change : std::vector<std::function<void(FeatureNamesInfo&)>>{
           [](FeatureNamesInfo& names) { names.named = 4; }, [](FeatureNamesInfo& names) { names.named = 0; },
           [](FeatureNamesInfo& names) { names.bytes = 31; }, [](FeatureNamesInfo& names) { names.bytes = 5000; },
           [](FeatureNamesInfo& names) { names.count = uint64_t{1} << 33; }}) {
    StoreInfo info = whole;
    change(info.feature_names);
    write_manifest(store_, info);
    EXPECT_THAT([&] { read_manifest(store_); }, fails_with(ErrorKind::damaged, "MANIFEST"));
  }
}

TEST_F(FeatureNamesOfAStore, AreReadableAfterTheStoreIsGone) {
  pack_with("the\n");
  const FeatureNames names = Store::open(store_).feature_names();
  remove_file(names_file());
  names.check();
}

}  // namespace
}  // namespace linblock
