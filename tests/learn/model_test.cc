// Models on disk: LIBLINEAR's text, to the letter, and back.
#include "learn/model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "base/checksum.h"
#include "store/core/pack.h"
#include "support/errors.h"
#include "support/file_hooks.h"
#include "support/folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words
using testing::HasSubstr;

class ModelFile : public testing::Test {
 protected:
  std::string saved(const Model& model, const std::string& metadata = kPlainMetadata, size_t threads = 1) {
    save_model(path_, model, metadata, threads);
    return read_file(path_);
  }
  Model loaded(const std::string& text) {
    write_file(path_, text);
    return load_model(path_);
  }

  static uint64_t checksum_of(const std::string& text) {
    return checksum({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  }

  const Folder folder_;
  const std::string path_ = folder_ / "model";
};

TEST_F(ModelFile, IsLiblinearsTextAndASectionBehindIt) {
  const std::string text =
      "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 4\nbias -1\nw \n"
      "0.5 \n-2 \n0 \n9.999999747378752e-06 \n";
  const std::string section =
      "# linblock-model 1 {\"index_base\":1,\"normalized\":false,\"against_rest\":false,\"calibration\":[]}\n";
  EXPECT_EQ(saved(two_class_model({0.5F, -2, 0, 1e-5F})),
            fmt::format("{}{}# checksum {:016x} {:012}\n", text, section, checksum_of(text + section), section.size()));
}

TEST_F(ModelFile, HasOneMoreRowForABiasWhichIsNotCountedAsAFeature) {
  EXPECT_THAT(saved(two_class_model({0.5F, 0.25F, 3}, 2.5)),
              HasSubstr("\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 2.5\nw \n0.5 \n0.25 \n3 \n# linblock"));
}

TEST_F(ModelFile, HasAColumnAClassWhereThereAreSeveral) {
  Model model;
  model.solver_type = "L2R_LR_DUAL";
  model.labels = {4, 2, 9};
  model.features = 2;
  model.weights = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(saved(model), HasSubstr("\nlabel 4 2 9\nnr_feature 2\nbias -1\nw \n1 2 3 \n4 5 6 \n# linblock"));
  EXPECT_EQ(load_model(path_).weights, model.weights);
}

TEST_F(ModelFile, ComesBackWithTheSameBits) {
  std::vector<float> weights = {
      0,      1,     -1,     0.1F,       1.0F / 3,   3.4028235e38F, -3.4028235e38F, 1.17549435e-38F,
      1e-45F, -0.0F, 1e-30F, 12345.678F, 16777217.0F};
  for (const double bias : {-1.0, 0.0, 1.0, 0.1, 1e-300, 1e300}) {
    const Model model = two_class_model(weights, bias, "L2R_LR_DUAL");
    saved(model);
    const Model back = load_model(path_);
    EXPECT_EQ(back.solver_type, model.solver_type);
    EXPECT_EQ(back.labels, model.labels);
    EXPECT_EQ(back.features, model.features);
    EXPECT_EQ(back.bias, model.bias);
    ASSERT_EQ(back.weights.size(), model.weights.size());
    EXPECT_EQ(std::memcmp(back.weights.data(), model.weights.data(), weights.size() * sizeof(float)), 0);
  }
}

TEST_F(ModelFile, IsTheSameForAnyNumberOfThreads) {
  std::vector<float> weights(70000);  // more than two pieces
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) * 0.37F;
  const std::string expected = saved(two_class_model(weights));
  EXPECT_EQ(load_model(path_).weights, weights);
  for (const size_t threads : {2, 3, 7})
    EXPECT_TRUE(saved(two_class_model(weights), kPlainMetadata, threads) == expected) << threads << " threads";
}

TEST_F(ModelFile, ReplacesWhatWasThereAndLeavesNothingElse) {
  saved(two_class_model({1, 2, 3}));
  saved(two_class_model({4}));
  EXPECT_EQ(load_model(path_).weights, std::vector<float>{4});
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 2U) << "the model and its json";
}

TEST_F(ModelFile, IsReadWithItsHeaderInAnyOrder) {
  const Model model = loaded("nr_feature 2\nbias 1\nnr_class 2\nsolver_type L2R_LR\nlabel 7 3\nw\n1 \n2 \n3 \n");
  EXPECT_EQ(model.solver_type, "L2R_LR");
  EXPECT_EQ(model.labels, (std::vector<int32_t>{7, 3}));
  EXPECT_EQ(model.features, 2U);
  EXPECT_EQ(model.weights, (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(model.has_probability());
}

TEST_F(ModelFile, OfAnotherProgramIsReadWithoutItsJsonAsLiblinearWould) {
  const Model model = loaded(
      "solver_type L2R_L1LOSS_SVC_DUAL\r\nnr_class 2\r\nlabel 1 -1\r\nnr_feature 1\r\nbias -1\r\nw\r\n"
      "0.094350474255787 \r\n");
  EXPECT_EQ(model.index_base, 1);
  EXPECT_FALSE(model.normalized);
  EXPECT_FALSE(model.against_rest);
  EXPECT_EQ(model.weights, std::vector<float>{0.094350474255787F});
}

TEST_F(ModelFile, HasEverythingThatAPredictionNeeds) {
  Model model = two_class_model({1});
  model.index_base = 0;
  model.normalized = true;
  model.against_rest = true;
  model.calibration = {{.slope = -1.5, .offset = 0.1}};
  saved(model, R"({"index_base": 1, "normalized": false, "against_rest": false})");
  for (const bool with_json : {true, false}) {
    if (!with_json) std::filesystem::remove(path_ + ".json");
    const Model back = load_model(path_);
    EXPECT_EQ(back.index_base, 0);
    EXPECT_TRUE(back.normalized);
    EXPECT_TRUE(back.against_rest);
    ASSERT_EQ(back.calibration.size(), 1U);
    EXPECT_EQ(back.calibration[0].slope, -1.5);
    EXPECT_EQ(back.calibration[0].offset, 0.1);
    EXPECT_TRUE(back.has_probability());
    EXPECT_EQ(back.warning, "");
  }
}

TEST_F(ModelFile, SaysWhenTheJsonBesideItIsOfAnotherModel) {
  saved(two_class_model({1}));
  const std::string json = read_file(path_ + ".json");
  saved(two_class_model({2}));
  for (const std::string& other : {json, std::string("{"), std::string("{}"), std::string("[1]")}) {
    write_file(path_ + ".json", other);
    const Model model = load_model(path_);
    EXPECT_EQ(model.weights, std::vector<float>{2});
    EXPECT_THAT(model.warning, HasSubstr("does not describe")) << other;
  }
}

// What linblock 0.1.0 wrote: the text without a section, and a JSON that decides.
TEST_F(ModelFile, OfTheFirstVersionTakesWhatItNeedsFromTheJsonBeside) {
  const std::string text = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n1 \n";
  write_file(path_ + ".json",
             "{\n \"program\": \"linblock 0.1.0\",\n \"index_base\": 0, \"normalized\": true, \"against_rest\": true,"
             " \"calibration\": [[-1.5, 0.25]]}");
  const Model model = loaded(text);
  EXPECT_EQ(model.index_base, 0);
  EXPECT_TRUE(model.normalized);
  EXPECT_TRUE(model.against_rest);
  ASSERT_EQ(model.calibration.size(), 1U);
  EXPECT_EQ(model.calibration[0].offset, 0.25);
  // A newer training was killed between the two renames: that JSON is of a model that is not here.
  write_file(path_ + ".json",
             "{\n \"program\": \"linblock 0.1.0\",\n \"index_base\": 0, \"normalized\": true, \"against_rest\": true,"
             " \"model_checksum\": \"0123456789abcdef\"}");
  EXPECT_EQ(load_model(path_).index_base, 1);
  EXPECT_THAT(load_model(path_).warning, HasSubstr("of another model"));
}

// At every point where saving can fail, MODEL is the old one or the new one, with its own probabilities.
TEST_F(ModelFile, IsTheOldOneOrTheNewOneWhereverSavingFails) {
  Model old = two_class_model({1});
  old.calibration = {{.slope = -1, .offset = 0}};
  Model next = two_class_model({2});
  next.calibration = {{.slope = -5, .offset = 3}};
  size_t failures = 0;
  for (uint64_t number = 1;; ++number) {
    saved(old);
    FailingCall failing(number, ENOSPC, true);
    std::optional<Error> error;
    {
      const ScopedHook hook(std::ref(failing));
      error = error_of([&] { save_model(path_, next, kPlainMetadata, 1); });
    }
    if (!failing.happened()) break;
    ++failures;
    ASSERT_TRUE(error);
    const Model found = load_model(path_);
    EXPECT_EQ(found.calibration[0].slope, found.weights[0] == 1 ? -1 : -5) << failing.call();
    save_model(path_, next, kPlainMetadata, 1);
    EXPECT_EQ(load_model(path_).warning, "");
  }
  EXPECT_GE(failures, 10U);
}

TEST_F(ModelFile, MadeFromAStoreHasTheOriginalIndices) {
  write_file(folder_ / "data.svm", "1 2:1 3:1 3000:1\n-1 2:1 3000:1\n1 3000:1\n");
  pack({folder_ / "data.svm"}, folder_ / "store", {});
  const Store store = Store::open(folder_ / "store");
  std::vector<float> weights(store.info().feature_numbers() + 1, 0);
  for (const uint32_t index : {2U, 3U, 3000U}) weights[store.features().number(index)] = static_cast<float>(index);
  weights.back() = -7;
  const Model model = make_model(store, {weights}, {1, -1}, 0.5, "L2R_LR_DUAL");
  ASSERT_EQ(model.features, 3000U);
  ASSERT_EQ(model.weights.size(), 3001U);
  EXPECT_EQ(model.weights[1], 2);  // of index 2
  EXPECT_EQ(model.weights[2], 3);
  EXPECT_EQ(model.weights[2999], 3000);
  EXPECT_EQ(model.weights[3000], -7);  // the bias
  EXPECT_EQ(model.weights[0], 0);
}

TEST(Model, DecidesLikeLiblinearTiesIncluded) {
  const Model two = two_class_model({1});
  const std::vector<double> above = {1e-300};
  const std::vector<double> tie = {0};
  EXPECT_EQ(two.label_of(above), 1);
  EXPECT_EQ(two.label_of(tie), -1);
  Model three = two;
  three.labels = {5, 6, 7};
  EXPECT_EQ(three.label_of(std::vector<double>{1, 2, 2}), 6);
  EXPECT_EQ(three.label_of(std::vector<double>{0, 0, 0}), 5);
}

TEST(Model, LeavesOutAndCountsFeaturesItDoesNotKnow) {
  const Model model = two_class_model({2, 3, 10}, 0.5);  // two features and a bias
  std::vector<double> decision(1);
  uint64_t unknown = 0;
  model.decide(std::vector<uint32_t>{1, 2, 3, 4000000000}, std::vector<float>{1, 1, 1, 1}, decision, unknown);
  EXPECT_EQ(decision[0], 2 + 3 + 0.5 * 10);
  EXPECT_EQ(unknown, 2U);
  Model from_zero = model;
  from_zero.index_base = 0;
  from_zero.decide(std::vector<uint32_t>{0, 2}, std::vector<float>{1, 1}, decision, unknown);
  EXPECT_EQ(decision[0], 2 + 0.5 * 10);
  EXPECT_EQ(unknown, 3U);
}

TEST(Model, GivesProbabilitiesThatAddUpToOne) {
  Model model = two_class_model({1}, -1, "L2R_LR_DUAL");
  std::vector<double> shares(2);
  model.probabilities(std::vector<double>{std::log(3.0)}, shares);
  EXPECT_NEAR(shares[0], 0.75, 1e-15);
  EXPECT_NEAR(shares[1], 0.25, 1e-15);
  model.labels = {1, 2, 3};
  shares.resize(3);
  model.probabilities(std::vector<double>{0, 0, std::log(3.0)}, shares);
  EXPECT_NEAR(shares[0], 0.5 / 1.75, 1e-15);
  EXPECT_NEAR(shares[2], 0.75 / 1.75, 1e-15);
}

TEST(Model, GivesTheProbabilitiesOfItsCalibration) {
  Model model = two_class_model({1});
  model.calibration = {{.slope = -2, .offset = std::log(3.0)}};
  std::vector<double> shares(2);
  model.probabilities(std::vector<double>{0}, shares);
  EXPECT_NEAR(shares[0], 0.25, 1e-15);
  EXPECT_NEAR(shares[1], 0.75, 1e-15);
  model.labels = {1, 2, 3};
  model.calibration = {{.slope = -1, .offset = 0}, {.slope = -1, .offset = std::log(3.0)}, {.slope = 0, .offset = 0}};
  shares.resize(3);
  model.probabilities(std::vector<double>{std::log(3.0), 0, 55}, shares);  // 0.75, 0.25 and 0.5
  EXPECT_NEAR(shares[0], 0.5, 1e-15);
  EXPECT_NEAR(shares[1], 0.25 / 1.5, 1e-15);
  EXPECT_NEAR(shares[2], 0.5 / 1.5, 1e-15);
}

TEST(Model, KeepsTheProportionsOfCalibratedProbabilitiesThatAreAllTiny) {
  Model model = two_class_model({1});
  model.labels = {1, 2, 3};
  model.calibration.assign(3, {.slope = -1, .offset = 1000});
  std::vector<double> shares(3);
  model.probabilities(std::vector<double>{-4000, -4000 + std::log(2.0), -4000}, shares);
  EXPECT_NEAR(shares[0], 0.25, 1e-9);
  EXPECT_NEAR(shares[1], 0.5, 1e-9);
  model.calibration.assign(3, {.slope = -1e300, .offset = 0});
  model.probabilities(std::vector<double>{-1e300, -1e300, -1e300}, shares);
  EXPECT_NEAR(shares[2], 1.0 / 3, 1e-12);
}

// However sure, never 0 / 0.
TEST(Model, GivesProbabilitiesForDecisionsOfAnySize) {
  Model model = two_class_model({1}, -1, "L2R_LR_DUAL");
  model.labels = {1, 2, 3};
  std::vector<double> shares(3);
  for (const double size : {1e3, 1e30, 1e300})
    for (const double sign : {-1.0, 1.0}) {
      model.probabilities(std::vector<double>{sign * size, sign * size, sign * size}, shares);
      for (const double share : shares) EXPECT_NEAR(share, 1.0 / 3, 1e-12) << sign * size;
    }
}

class ModelForms : public ModelFile, public testing::WithParamInterface<size_t> {};

TEST_P(ModelForms, AreTheSameModel) {
  Model model = two_class_model({}, 0.25);
  model.weights.clear();
  model.features = 70'000;  // several pieces
  if (GetParam() > 1) {
    model.solver_type = "MCSVM_CS";
    model.labels = {7, -5, 9};
  }
  for (size_t i = 0; i < (model.features + 1) * GetParam(); ++i)
    model.weights.push_back(i % 7 == 0 ? 0 : static_cast<float>(static_cast<double>(i % 1999) / 1000 - 1));
  model.normalized = true;
  model.index_base = 0;
  for (size_t c = 0; c < GetParam(); ++c) model.calibration.push_back({.slope = -0.5, .offset = 0.125});
  const std::string text = saved(model);
  convert_model(path_, folder_ / "binary", ModelFormat::binary, 2);
  EXPECT_EQ(ModelRows(folder_ / "binary").form(), ModelFormat::binary);
  EXPECT_LT(read_file(folder_ / "binary").size(), 4 * model.weights.size() + 1000);
  const Model loaded = load_model(folder_ / "binary");
  EXPECT_EQ(loaded.weights, model.weights);
  EXPECT_EQ(loaded.labels, model.labels);
  EXPECT_EQ(loaded.bias, model.bias);
  EXPECT_TRUE(loaded.normalized);
  EXPECT_EQ(loaded.calibration.size(), GetParam());
  EXPECT_EQ(loaded.warning, "");
  convert_model(folder_ / "binary", folder_ / "again", ModelFormat::text, 1);
  EXPECT_EQ(read_file(folder_ / "again"), text);
}

INSTANTIATE_TEST_SUITE_P(Columns, ModelForms, testing::Values(1, 3));

TEST_F(ModelFile, TakesThePlaceOfTheOtherForm) {
  save_model(path_, two_class_model({1, 2}), kPlainMetadata, 1, ModelFormat::binary);
  write_file(path_ + ".new", "solver_type L2");  // a killed run's
  save_model(path_, two_class_model({3, 4}), kPlainMetadata, 1, ModelFormat::binary);
  EXPECT_EQ(load_model(path_).weights, (std::vector<float>{3, 4}));
  write_file(path_ + ".new", std::string(kBinaryModelBeginning));
  save_model(path_, two_class_model({5, 6}), kPlainMetadata, 1);
  EXPECT_EQ(load_model(path_).weights, (std::vector<float>{5, 6}));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

}  // namespace
}  // namespace linblock
