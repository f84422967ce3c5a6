#include "base/option.h"

#include <gtest/gtest.h>

namespace linblock {
namespace {

enum class Order { permuted, cyclic };
constexpr std::array<std::pair<std::string_view, Order>, 2> choices(Order) {
  return {{{"permuted", Order::permuted}, {"cyclic", Order::cyclic}}};
}

// "block", "row" or a number.
struct Rows {
  size_t count = 1;
  static std::optional<Rows> read(std::string_view text) {
    if (text == "block") return Rows{0};
    const std::optional<size_t> count = Text<size_t>::read(text, {.from = 1});
    return count ? std::optional(Rows{*count}) : std::nullopt;
  }
  std::string show() const { return count == 0 ? "block" : std::to_string(count); }
  static std::string what() { return "block or a number of rows"; }
};

struct Sample {
  static constexpr std::string_view kName = "sample", kHelp = "for tests";
  Order order = Order::permuted;
  std::optional<double> share = {};
  Rows rows = {};
  uint64_t threads = 2;
  bool force = false;
  int32_t label = -3;

  static constexpr auto options() {
    return std::tuple{option("order", &Sample::order, "NAME", "order of features"),
                      option("cache_fraction", &Sample::share, "F", "share of memory", {.from = 0, .below = 1}),
                      option("rows", &Sample::rows, "N", "rows per step"),
                      option("threads", &Sample::threads, "N", "threads", {.from = 1, .to = 1024}, "", false),
                      option("force", &Sample::force, "", "do it"),
                      option("label", &Sample::label, "LABEL", "a label")};
  }
};
static_assert(Unit<Sample>);

Setting& find(std::vector<Setting>& settings, std::string_view name) {
  for (Setting& setting : settings)
    if (setting.name == name) return setting;
  throw std::out_of_range(std::string(name));
}

TEST(Option, ReadsAndShowsEveryKindOfValue) {
  Sample sample;
  std::vector<Setting> settings = settings_of(sample);
  for (const auto& [name, text] : std::initializer_list<std::pair<const char*, const char*>>{{"order", "cyclic"},
                                                                                             {"cache_fraction", "0.25"},
                                                                                             {"rows", "block"},
                                                                                             {"threads", "7"},
                                                                                             {"force", "true"},
                                                                                             {"label", "-1"}}) {
    EXPECT_EQ(find(settings, name).set(text), "") << name;
    EXPECT_EQ(find(settings, name).get(), text) << name;
  }
  EXPECT_EQ(sample.order, Order::cyclic);
  EXPECT_EQ(sample.share, 0.25);
  EXPECT_EQ(sample.rows.count, 0U);
  EXPECT_EQ(sample.threads, 7U);
  EXPECT_TRUE(sample.force);
  EXPECT_EQ(sample.label, -1);
  EXPECT_EQ(find(settings, "label").set("+5"), "");
  EXPECT_EQ(sample.label, 5);
}

TEST(Option, TheDefaultIsTheFieldsOwn) {
  Sample changed{.order = Order::cyclic, .share = 0.5};
  std::vector<Setting> settings = settings_of(changed);
  EXPECT_EQ(find(settings, "order").standard, "permuted");
  EXPECT_EQ(find(settings, "cache_fraction").standard, "auto");
  EXPECT_EQ(find(settings, "rows").standard, "1");
  EXPECT_TRUE(find(settings, "force").is_flag);
}

TEST(Option, SaysWhatAValueMustBe) {
  Sample sample;
  std::vector<Setting> settings = settings_of(sample);
  EXPECT_EQ(find(settings, "order").set("up"), "'up' is not permuted or cyclic");
  EXPECT_EQ(find(settings, "cache_fraction").set("1"), "'1' is not auto or a number from 0 to below 1");
  EXPECT_EQ(find(settings, "cache_fraction").set("nan"), "'nan' is not auto or a number from 0 to below 1");
  EXPECT_EQ(find(settings, "threads").set("0"), "'0' is not a whole number from 1 to 1024");
  EXPECT_EQ(find(settings, "threads").set("3x"), "'3x' is not a whole number from 1 to 1024");
  EXPECT_EQ(find(settings, "rows").set("half"), "'half' is not block or a number of rows");
  EXPECT_EQ(find(settings, "label").set("9999999999"),
            "'9999999999' is not a whole number from -2147483648 to 2147483647");
  // Nothing of it was taken.
  EXPECT_EQ(identity_of(sample), identity_of(Sample{}));
}

TEST(Option, AbsentValuesHaveAWord) {
  Sample sample{.share = 0.5};
  std::vector<Setting> settings = settings_of(sample);
  EXPECT_EQ(find(settings, "cache_fraction").set("auto"), "");
  EXPECT_FALSE(sample.share);
}

TEST(Option, TheIdentityHasEveryOptionThatTellsRunsApart) {
  EXPECT_EQ(identity_of(Sample{.share = 0.25}),
            "order: permuted\ncache_fraction: 0.25\nrows: 1\nforce: false\nlabel: -3\n");
}

TEST(Option, RangesAreSaidInWords) {
  EXPECT_EQ((ValueRange{.above = 0}.words()), "a number above 0");
  EXPECT_EQ((ValueRange{.from = 0}.words()), "a number from 0 up");
  EXPECT_EQ((ValueRange{.above = 0, .to = 0.5}.words()), "a number above 0 and up to 0.5");
  EXPECT_EQ((ValueRange{.from = 2, .to = 65535}.whole_words<uint64_t>()), "a whole number from 2 to 65535");
}

struct First {
  static constexpr std::string_view kName = "first";
};
struct Second {
  static constexpr std::string_view kName = "second";
};

TEST(List, MakesByName) {
  using Both = List<First, Second>;
  EXPECT_EQ(Both::kNames[1], "second");
  ASSERT_TRUE(Both::make("second"));
  EXPECT_TRUE(std::holds_alternative<Second>(*Both::make("second")));
  EXPECT_FALSE(Both::make("third"));
}

TEST(List, JoinsWords) {
  EXPECT_EQ(join_words({"a"}), "a");
  EXPECT_EQ(join_words({"a", "b"}), "a or b");
  EXPECT_EQ(join_words({"a", "b", "c"}, " and "), "a, b and c");
}

}  // namespace
}  // namespace linblock
