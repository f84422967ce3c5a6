// Objects by named fields in a snapshot: every kind of field comes back, and what does not fit is refused by its name.
#include "base/fields.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/bytes.h"
#include "support/errors.h"
#include "support/folder.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

enum class Color { red, green, blue };
constexpr Color last_of(Color) { return Color::blue; }

struct Inner {
  double x = 0;
  int32_t y = 0;

  bool operator==(const Inner&) const = default;
  bool is_possible() const { return y >= 0; }
  static void visit_fields(auto& self, auto&& field) { field("x", self.x), field("y", self.y); }
};

struct Painted {
  Color color = Color::red;
  static void visit_fields(auto& self, auto&& field) { field("color", self.color); }
};

// With padding, an enum and a bool: what a raw copy would save wrongly.
struct Entry {
  uint8_t small = 0;
  double large = 0;
  bool flag = false;
  Color color = Color::red;
  Inner inner = {};

  bool operator==(const Entry&) const = default;
  static void visit_fields(auto& self, auto&& field) {
    field("small", self.small), field("large", self.large), field("flag", self.flag), field("color", self.color);
    field("inner", self.inner);
  }
};

class Careful {
 public:
  std::vector<uint32_t> numbers = {1, 2, 3};

  void save(FieldWriter& to) const { to("numbers", numbers); }
  void restore(FieldReader& from) {
    from("numbers", numbers);
    if (numbers.size() > 3) from.refuse("has too many numbers");
  }
  bool operator==(const Careful&) const = default;
};

struct Everything {
  double f64 = 0;
  float f32 = 0;
  uint64_t u64 = 0;
  uint32_t u32 = 0;
  uint16_t u16 = 0;
  uint8_t u8 = 0;
  int64_t i64 = 0;
  int32_t i32 = 0;
  bool flag = false;
  Color color = Color::red;
  std::string text = {};
  std::optional<double> perhaps = {};
  std::vector<float> floats = {};
  std::array<double, 3> triple = {};
  std::vector<double> fixed = {};
  std::vector<Entry> entries = {};
  Inner inner = {};
  Careful careful = {};

  bool operator==(const Everything&) const = default;
  static void visit_fields(auto& self, auto&& field) {
    field("f64", self.f64), field("f32", self.f32), field("u64", self.u64), field("u32", self.u32);
    field("u16", self.u16), field("u8", self.u8), field("i64", self.i64), field("i32", self.i32);
    field("flag", self.flag), field("color", self.color), field("text", self.text), field("perhaps", self.perhaps);
    field("floats", self.floats), field("triple", self.triple), field("fixed", std::span(self.fixed));
    field("entries", self.entries), field("inner", self.inner), field("careful", self.careful);
  }
};

Everything filled() {
  Everything all{.f64 = -0.0,
                 .f32 = 1e-40F,
                 .u64 = UINT64_MAX,
                 .u32 = UINT32_MAX,
                 .u16 = UINT16_MAX,
                 .u8 = UINT8_MAX,
                 .i64 = INT64_MIN,
                 .i32 = INT32_MIN,
                 .flag = true,
                 .color = Color::blue,
                 .text = "several\nlines",
                 .perhaps = std::numeric_limits<double>::infinity(),
                 .floats = {1, 2.5F},
                 .triple = {1, 2, 3},
                 .fixed = {4, 5},
                 .inner = {.x = 0.5, .y = 7},
                 .careful = {.numbers = {9}}};
  // More than one piece of what is gathered.
  for (int i = 0; i < 10000; ++i)
    all.entries.push_back({.small = static_cast<uint8_t>(i),
                           .large = i * 0.1,
                           .flag = i % 3 == 0,
                           .color = static_cast<Color>(i % 3),
                           .inner = {.x = -i * 0.1, .y = i}});
  return all;
}

class Fields : public testing::Test {
 protected:
  template <class Save>
  void write(const Save& save) {
    SnapshotWriter file(path_);
    FieldWriter to(file);
    save(to);
    file.commit();
  }
  template <class T>
  void write_one(std::string_view name, const T& value) {
    write([&](FieldWriter& to) { to(name, value); });
  }
  template <class T>
  void expect_refused(std::string_view name, T&& value, const std::string& words) {
    const auto read = [&] {
      FieldReader from(path_);
      from(name, value);
    };
    EXPECT_THAT(read, fails_with(ErrorKind::damaged, words));
    EXPECT_THAT(read, fails_with(ErrorKind::damaged, "start over with fresh"));
  }

  const Folder folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(Fields, OfEveryKindComeBack) {
  const Everything before = filled();
  write_one("all", before);
  Everything after{.fixed = {0, 0}};
  FieldReader from(path_);
  from("all", after);
  from.finish();
  EXPECT_EQ(after, before);
  EXPECT_TRUE(std::signbit(after.f64));
}

TEST_F(Fields, ThatAreEmptyComeBack) {
  write_one("all", Everything());
  Everything after = filled();
  after.fixed.clear();
  FieldReader from(path_);
  from("all", after);
  from.finish();
  EXPECT_EQ(after, Everything());
}

TEST_F(Fields, OfObjectsInAVectorAreArraysWithoutPadding) {
  write_one("e", std::vector<Entry>(7));
  const SnapshotReader file(path_);
  EXPECT_EQ(file.names(),
            (std::vector<std::string>{"e.color", "e.flag", "e.inner.x", "e.inner.y", "e.large", "e.small"}));
  EXPECT_EQ(file.count("e.color", ElementType::u32), 7U);
  EXPECT_EQ(file.count("e.flag", ElementType::boolean), 7U);
  EXPECT_EQ(file.count("e.small", ElementType::u8), 7U);
}

TEST_F(Fields, ThatAreMissingAreRefused) {
  write_one("a", 1.0);
  double value = 0;
  expect_refused("b", value, "lacks the field 'b'");
  expect_refused("a.x", value, "lacks the field 'a.x'");
  Inner inner;
  expect_refused("a", inner, "lacks the field 'a.x'");
}

TEST_F(Fields, OfAnotherTypeAreRefused) {
  write_one("a", 1.0F);
  double value = 0;
  expect_refused("a", value, "has f32 in the field 'a' instead of f64");
  std::vector<double> values;
  expect_refused("a", values, "has f32 in the field 'a' instead of f64");
  bool flag = false;
  expect_refused("a", flag, "instead of bool");
  std::string text;
  expect_refused("a", text, "instead of text");
  Color color = Color::red;
  expect_refused("a", color, "instead of u32");
  std::optional<uint64_t> perhaps;
  expect_refused("a", perhaps, "instead of u64");
}

TEST_F(Fields, OfAnotherSizeAreRefused) {
  write_one("a", std::vector<double>{1, 2, 3});
  std::vector<double> two(2);
  expect_refused("a", std::span(two), "has 3 values in the field 'a' instead of 2");
  std::array<double, 4> four{};
  expect_refused("a", four, "has 3 values in the field 'a' instead of 4");
  double one = 0;
  expect_refused("a", one, "has 3 values in the field 'a' instead of 1");
  std::optional<double> perhaps;
  expect_refused("a", perhaps, "has 3 values in the field 'a' instead of 1");
}

TEST_F(Fields, OfObjectsMustAllBeAsMany) {
  write([](FieldWriter& to) {
    to("e.x", std::vector<double>(3));
    to("e.y", std::vector<int32_t>(2));
  });
  std::vector<Inner> inner;
  expect_refused("e", inner, "has 2 values in the field 'e.y' instead of 3");
}

TEST_F(Fields, WithValuesThatCannotBeAreRefused) {
  write([](FieldWriter& to) {
    to("color", uint32_t{3});
    to("negative.x", 0.0);
    to("negative.y", -1);
    to("colors.color", std::vector<uint32_t>{0, 3});
  });
  Color color = Color::red;
  expect_refused("color", color, "has a value in the field 'color' that is not possible");
  EXPECT_EQ(color, Color::red);
  Inner inner;
  expect_refused("negative", inner, "has a value in the field 'negative' that is not possible");
  std::vector<Painted> painted;
  expect_refused("colors", painted, "has a value in the field 'colors.color' that is not possible");
}

TEST_F(Fields, ThatAreFlagsAreNothingButTrueOrFalse) {
  SnapshotWriter file(path_);
  file.begin("flag", ElementType::boolean, 1);
  const unsigned char two = 2;
  file.add({&two, 1});
  file.commit();
  bool flag = false;
  expect_refused("flag", flag, "has a value in the field 'flag' that is not possible");
}

TEST_F(Fields, ThatNobodyAskedForAreRefused) {
  write([](FieldWriter& to) {
    to("known", 1.0);
    to("part.unknown", 2.0);
  });
  FieldReader from(path_);
  EXPECT_EQ(from.take<double>("known"), 1);
  EXPECT_THAT([&] { from.finish(); },
              fails_with(ErrorKind::damaged, "has the field 'part.unknown', which this version does not know"));
  FieldReader part = from.inside("part");
  EXPECT_EQ(part.take<double>("unknown"), 2);
  from.finish();
}

TEST_F(Fields, CanBeWrittenAndReadInPieces) {
  const std::vector<double> numbers = {1, 2, 3, 4, 5};
  write([&](FieldWriter& to) {
    to.begin<double>("numbers", 5);
    to.add_piece(std::span(numbers).first(2));
    to.add_piece(std::span(numbers).last(3));
  });
  FieldReader from(path_);
  EXPECT_EQ(from.count<double>("numbers"), 5U);
  std::vector<double> part(2);
  from.take_part("numbers", 3, std::span(part));
  EXPECT_EQ(part, (std::vector<double>{4, 5}));
  EXPECT_THAT([&] { from.take_part("numbers", 4, std::span(part)); },
              fails_with(ErrorKind::damaged, "has too few values in the field 'numbers'"));
  EXPECT_THAT([&] { from.take_part("numbers", UINT64_MAX, std::span(part)); },
              fails_with(ErrorKind::damaged, "has too few values in the field 'numbers'"));
  from.finish();
}

// A snapshot of these bytes with the right checksum.
void seal(const std::string& path, std::string bytes) {
  const uint64_t sum = checksum(as_raw(std::span<const char>(bytes)));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  write_file(path, bytes);
}

std::string header(uint32_t name_bytes, const std::string& type, uint64_t bytes) {
  std::string text(16, '\0');
  store_le(text.data(), name_bytes);
  text.replace(4, type.size(), type);
  store_le(text.data() + 8, bytes);
  return text;
}

class Snapshots : public Fields {
 protected:
  void expect_refused(const std::string& bytes, const std::string& words) {
    seal(path_, bytes);
    EXPECT_THAT([&] { SnapshotReader reader(path_); }, fails_with(ErrorKind::damaged, words));
  }
};

TEST_F(Snapshots, OfAnotherVersionAreRefusedWithTheReason) {
  expect_refused("LBSNAP01", "was written by an older version of linblock (start over with fresh)");
  expect_refused("LBSNAP03", "was written by a newer version of linblock (start over with fresh)");
  expect_refused("LBOTHER2", "is damaged");
  seal(path_, "LBSNAP02");
  EXPECT_TRUE(SnapshotReader(path_).names().empty());
}

TEST_F(Snapshots, WithoutTheirChecksumAreDamaged) {
  write_one("a", 1.0);
  std::string bytes = read_file(path_);
  bytes[20] ^= 1;
  write_file(path_, bytes);
  EXPECT_THAT([&] { SnapshotReader reader(path_); }, fails_with(ErrorKind::damaged, "is damaged"));
}

TEST_F(Snapshots, ThatClaimMoreThanTheyHaveAreRefused) {
  const std::string magic(kSnapshotMagic);
  expect_refused(magic + "short", "is damaged");
  expect_refused(magic + header(300, "u8", 0) + std::string(300, 'a'), "is damaged");
  expect_refused(magic + header(2, "u8", 0) + "a", "is damaged");
  expect_refused(magic + header(1, "u8", 2) + "ab", "is damaged");
  expect_refused(magic + header(1, "u8", UINT64_MAX) + "ab", "is damaged");
  expect_refused(magic + header(1, "f16", 0) + "a", "has no known type for the field 'a'");
  expect_refused(magic + header(1, "f64", 4) + "a1234", "has no known type for the field 'a'");
  expect_refused(magic + header(1, "u8", 0) + "a" + header(1, "u8", 0) + "a", "has the field 'a' twice");
}

TEST_F(Snapshots, AreNotCommittedWithAnArrayThatIsNotComplete) {
  SnapshotWriter file(path_);
  file.begin("a", ElementType::f64, 2);
  EXPECT_THROW(file.begin("b", ElementType::f64, 2), Error);
  EXPECT_THROW(file.commit(), Error);
  const std::vector<double> three(3);
  EXPECT_THROW(file.add(as_raw(std::span(three))), Error);
}

}  // namespace
}  // namespace linblock
