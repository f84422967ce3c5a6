// Model files that are not what was written: refused as damaged, or a model that is whole in itself; never a crash.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/checksum.h"
#include "support/errors.h"
#include "support/folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

const std::string kHeader = "solver_type L2R_LR_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n";
const std::string kPlain = kHeader + "0.5 \n-2.25 \n120 \n3 \n";
const std::string kWhole = kHeader + "0.5 \n-2.25e-05 \n1e+20 \n3 \n";

// How MODEL.json of linblock 0.1.0 begins.
const std::string kJson = "{\n \"program\": \"linblock 0.1.0\"";

class ModelDamage : public testing::Test {
 protected:
  Model loaded(const std::string& text) {
    write_file(path_, text);
    return load_model(path_);
  }
  void expect_refused(const std::string& text, const std::string& words) {
    SCOPED_TRACE(text.substr(0, 200));
    EXPECT_THAT([&] { loaded(text); }, fails_with(ErrorKind::damaged, words));
  }
  // What loading these bytes leads to, where it is neither a whole model nor called damage.
  std::string trouble(const std::string& text) {
    std::optional<Model> model;
    const std::optional<Error> error = error_of([&] { model = loaded(text); });
    if (error) return error->kind() == ErrorKind::damaged ? "" : std::string("not called damage: ") + error->what();
    std::vector<double> decisions(model->columns());
    uint64_t unknown = 0;
    model->decide(std::vector<uint32_t>{0, 1, 2, 3, 4000000000U}, std::vector<float>(5, 1), decisions, unknown);
    model->label_of(decisions);
    return inconsistency(*model);
  }
  // Each byte changed into others, left out, and doubled.
  void expect_no_trouble_from_changes(const std::string& whole) {
    for (size_t at = 0; at < whole.size(); ++at) {
      for (int byte = 0; byte < 256; byte += at % 3 == 0 ? 1 : 5) {
        std::string changed = whole;
        changed[at] = static_cast<char>(byte);
        ASSERT_EQ(trouble(changed), "") << "byte " << at << " is " << byte << "\n" << changed;
      }
      ASSERT_EQ(trouble(whole.substr(0, at) + whole.substr(at + 1)), "") << "without byte " << at;
      ASSERT_EQ(trouble(whole.substr(0, at) + whole[at] + whole.substr(at)), "") << "twice byte " << at;
    }
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  const Folder folder_;
  const std::string path_ = folder_ / "model";
};

TEST_F(ModelDamage, TheModelIsWholeBeforeItIsDamaged) {
  EXPECT_EQ(loaded(kWhole).weights, (std::vector<float>{0.5F, -2.25e-05F, 1e+20F, 3}));
}

TEST_F(ModelDamage, EveryTruncationIsRefusedThatLosesAWeight) {
  const size_t last_digit = kWhole.rfind('3');
  for (size_t size = 0; size <= last_digit; ++size) {
    SCOPED_TRACE(testing::Message() << size << " bytes");
    EXPECT_THAT([&] { loaded(kWhole.substr(0, size)); }, fails_with(ErrorKind::damaged, "not a usable model"));
  }
}

TEST_F(ModelDamage, EveryChangedByteIsRefusedOrLeavesAWholeModel) { expect_no_trouble_from_changes(kPlain); }

TEST_F(ModelDamage, EveryChangedByteOfExponentsIsRefusedOrLeavesAWholeModel) { expect_no_trouble_from_changes(kWhole); }

TEST_F(ModelDamage, AbsurdSizesAreRefusedBeforeAnythingIsAllocated) {
  for (const char* features : {"4", "1000000", "4294967294", "4294967296", "99999999999", "18446744073709551615"})
    expect_refused(replaced(kWhole, "nr_feature 3", std::string("nr_feature ") + features), "");
  expect_refused(replaced(kWhole, "nr_feature 3", "nr_feature 99999999999"), "claims 99999999999 features");
  for (const char* features : {"-3", "18446744073709551616", "1e9", "3.5", "three", ""})
    expect_refused(replaced(kWhole, "nr_feature 3", std::string("nr_feature ") + features), "not a number");
  for (const char* classes : {"0", "1", "4000000000", "65537"})
    expect_refused(replaced(kWhole, "nr_class 2", std::string("nr_class ") + classes), "number of classes");
}

TEST_F(ModelDamage, AHeaderThatIsNotCompleteIsRefused) {
  for (const char* line : {"solver_type L2R_LR_DUAL\n", "nr_class 2\n", "label 1 -1\n", "nr_feature 3\n", "w\n"})
    expect_refused(replaced(kWhole, line, ""), "not a usable model");
  expect_refused(replaced(kWhole, "nr_class 2\nlabel 1 -1\n", "label 1 -1\nnr_class 2\n"), "labels come before");
  expect_refused(replaced(kWhole, "bias", "bais"), "'bais'");
  expect_refused("", "ends too early");
  expect_refused(
      "\x7f"
      "ELF\x02\x01",
      "not a usable model");
}

TEST_F(ModelDamage, TooFewLabelsOrTooManyAreRefused) {
  expect_refused(replaced(kWhole, "label 1 -1", "label 1"), "its label is 'nr_feature'");
  expect_refused(replaced(kWhole, "label 1 -1", "label 1 -1 2"), "its header has '2'");
  expect_refused(replaced(kWhole, "label 1 -1", "label 1 99999999999"), "not a number");
  expect_refused(replaced(kWhole, "nr_class 2", "nr_class 3"), "not a usable model");
}

TEST_F(ModelDamage, WeightsThatAreNotNumbersAreRefused) {
  for (const char* weight : {"nan", "-nan", "inf", "-inf", "abc", "0.5x", "0x10", "1e999", "--1"})
    expect_refused(replaced(kWhole, "0.5 ", std::string(weight) + " "), "its weight is");
  expect_refused(replaced(kWhole, "bias 1", "bias nan"), "its bias is");
  expect_refused(kWhole + "4 \n", "more weights than features");
}

TEST_F(ModelDamage, AWeightThatAFloatCannotHoldIsRefused) {
  for (const char* weight : {"1e39", "-1e300"})
    expect_refused(replaced(kWhole, "0.5 ", std::string(weight) + " "), "its weight is");
}

TEST_F(ModelDamage, AKeyThatComesTwiceIsRefused) {
  expect_refused(replaced(kWhole, "label 1 -1\n", "label 1 -1\nlabel 1 -1\n"), "label");
  expect_refused(replaced(kWhole, "label 1 -1\n", "label 1 -1\nnr_class 3\n"), "class");
}

TEST_F(ModelDamage, TheSameLabelTwiceIsRefused) {
  expect_refused(replaced(kWhole, "label 1 -1", "label 1 1"), "label");
}

// Every byte counts where there is a checksum.
TEST_F(ModelDamage, EveryChangedByteOfAModelWithAChecksumIsRefused) {
  Model model = two_class_model({0.5F, -2, 0, 1e-5F}, 1);
  model.calibration = {{.slope = -1.5, .offset = 0.25}};
  save_model(path_, model, kPlainMetadata, 1);
  const std::string whole = read_file(path_);
  EXPECT_EQ(load_model(path_).weights, model.weights);
  for (size_t at = 0; at < whole.size(); ++at) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    for (const int flip : {1, 4, 16, 255}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const std::optional<Error> error = error_of([&] { loaded(changed); });
      ASSERT_TRUE(error) << changed;
      EXPECT_TRUE(error->kind() == ErrorKind::damaged || at < 12) << error->what();
    }
    EXPECT_TRUE(error_of([&] { loaded(whole.substr(0, at)); }));
    EXPECT_TRUE(error_of([&] { loaded(whole.substr(0, at) + whole.substr(at + 1)); }));
  }
  for (const char* more : {"\n", " ", "0", "# checksum"}) EXPECT_TRUE(error_of([&] { loaded(whole + more); })) << more;
}

TEST_F(ModelDamage, ASectionOfALaterVersionIsRefusedWithItsNumber) {
  save_model(path_, two_class_model({1}), kPlainMetadata, 1);
  std::string text = replaced(read_file(path_), "# linblock-model 1 ", "# linblock-model 7 ");
  text.resize(text.rfind("# checksum "));
  const size_t section = text.size() - text.find("# linblock");
  text += fmt::format("# checksum {:016x} {:012}\n",
                      checksum({reinterpret_cast<const unsigned char*>(text.data()), text.size()}), section);
  expect_refused(text, "version 7");
}

TEST_F(ModelDamage, AJsonOfTheFirstVersionThatCannotBeUnderstoodIsRefused) {
  for (const char* json : {"", "{", R"(, "index_base": "one", "normalized": false, "against_rest": false})",
                           R"(, "index_base": 1, "normalized": 3, "against_rest": false})", "\xff\xfe", "}"}) {
    SCOPED_TRACE(json);
    write_file(path_ + ".json", (std::string(json).starts_with(',') ? kJson : "") + json);
    if (std::string(json) == "\xff\xfe" || std::string(json) == "}") write_file(path_ + ".json", kJson + json);
    EXPECT_THAT([&] { loaded(kWhole); }, fails_with(ErrorKind::damaged, "model.json' cannot be understood"));
  }
}

TEST_F(ModelDamage, AnIndexBaseOtherThanZeroAndOneIsRefused) {
  for (const char* base : {"-1", "2", "1000000000000", "0.5"}) {
    SCOPED_TRACE(base);
    write_file(path_ + ".json",
               kJson + std::string(R"(, "normalized": false, "against_rest": false, "index_base": )") + base + "}");
    EXPECT_THAT([&] { loaded(kWhole); }, fails_with(ErrorKind::damaged, "model.json"));
  }
}

TEST_F(ModelDamage, ACalibrationThatDoesNotFitIsRefused) {
  for (const char* calibration :
       {"[[1, 2], [3, 4]]", "[[1]]", "[[1, 2, 3]]", "[[]]", "[1, 2]", "[[1, null]]", R"([["1", 2]])", "[[1e999, 2]]",
        "[[1, -1e999]]", "[[NaN, 1]]", "{}", "3", "null", "\"none\""}) {
    SCOPED_TRACE(calibration);
    write_file(path_ + ".json",
               kJson +
                   std::string(R"(, "normalized": false, "against_rest": false, "index_base": 1, "calibration": )") +
                   calibration + "}");
    EXPECT_THAT([&] { loaded(kWhole); }, fails_with(ErrorKind::damaged, "model.json"));
  }
}

TEST_F(ModelDamage, AFolderOrNothingAtAllIsNotCalledDamage) {
  EXPECT_THAT([&] { load_model(folder_.path()); }, fails_with(ErrorKind::input, "is a folder, not a model"));
  EXPECT_THAT([&] { load_model(folder_ / "absent"); }, fails_with(ErrorKind::input, "absent"));
}

// A binary model has nothing but what its checksum covers, and the checksum.
TEST_F(ModelDamage, EveryChangedByteOfABinaryModelIsRefused) {
  save_model(path_, two_class_model({0.5F, -2.25F, 0, 3}, 1), kPlainMetadata, 1, ModelFormat::binary);
  const std::string whole = read_file(path_);
  ASSERT_EQ(load_model(path_).weights, (std::vector<float>{0.5F, -2.25F, 0, 3}));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 2, 16, 128, 255}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      SCOPED_TRACE(testing::Message() << "byte " << at << " ^ " << change);
      expect_refused(changed, "model");
    }
    SCOPED_TRACE(testing::Message() << at << " bytes");
    expect_refused(whole.substr(0, at), "model");
    expect_refused(whole.substr(0, at) + whole[at] + whole.substr(at), "model");
  }
}

}  // namespace
}  // namespace linblock
