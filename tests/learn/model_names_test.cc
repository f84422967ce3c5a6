// Names of features in models.
#include <gtest/gtest.h>

#include "learn/model_weights.h"
#include "support/learning.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words
using Names = std::map<uint64_t, std::string>;

FeatureNameSource source_of(const Names& names) {
  return [names](const FeatureNameVisitor& visit) {
    for (const auto& [index, name] : names) visit(index, name);
  };
}

Names names_of(const Model& model) {
  Names names;
  if (model.feature_names)
    model.feature_names([&](uint64_t index, std::string_view name) { names.emplace(index, name); });
  return names;
}

class NamesInModels : public testing::TestWithParam<ModelFormat> {
 protected:
  uint64_t save(const Model& model, const std::string& to) {
    return save_model(to, model, kPlainMetadata, 1, GetParam());
  }

  const Folder folder_;
  const std::string path_ = folder_ / "model";
};

INSTANTIATE_TEST_SUITE_P(Forms, NamesInModels, testing::Values(ModelFormat::text, ModelFormat::binary),
                         [](const auto& form) { return form.param == ModelFormat::text ? "Text" : "Binary"; });

TEST_P(NamesInModels, AreThoseOfFeaturesWithAWeight) {
  Model model = two_class_model({0.5F, 0, -2, 3}, 1);
  model.feature_names = source_of({{1, "a b"}, {2, "never"}, {3, "#, \"c\""}, {4, "the bias"}, {9, "beyond"}});
  EXPECT_EQ(save(model, path_), 0U);
  const Model loaded = load_model(path_);
  EXPECT_EQ(names_of(loaded), (Names{{1, "a b"}, {3, "#, \"c\""}}));
  EXPECT_EQ(loaded.weights, model.weights);
  ModelRows rows(path_);
  const std::vector<ColumnWeights> columns = largest_weights(rows, 2);
  EXPECT_EQ(columns[0].largest[0].name, "#, \"c\"");
  EXPECT_EQ(columns[0].largest[1].name, "a b");
}

TEST_P(NamesInModels, ChangeNothingWhereThereAreNone) {
  Model model = two_class_model({0.5F, 0});
  save(model, path_);
  model.feature_names = source_of({{2, "of a weight that is 0"}});
  save(model, folder_ / "other");
  EXPECT_EQ(read_file(path_), read_file(folder_ / "other"));
  EXPECT_FALSE(load_model(path_).feature_names);
}

TEST_P(NamesInModels, StayInBothFormsAndBack) {
  Model model = two_class_model(std::vector<float>(5000, 0.25F));
  model.index_base = 0;
  Names names;
  for (uint64_t i = 0; i < 5000; i += 3) names[i] = std::string(1 + i % 200, 'n') + std::to_string(i);
  model.feature_names = source_of(names);
  save(model, path_);
  const ModelFormat other = GetParam() == ModelFormat::text ? ModelFormat::binary : ModelFormat::text;
  EXPECT_EQ(convert_model(path_, folder_ / "other", other, 3), 0U);
  EXPECT_EQ(names_of(load_model(folder_ / "other")), names);
  convert_model(folder_ / "other", folder_ / "back", GetParam(), 1);
  EXPECT_EQ(read_file(folder_ / "back"), read_file(path_));
}

TEST_P(NamesInModels, EveryChangedByteIsRefused) {
  Model model = two_class_model({0.5F, 1});
  model.feature_names = source_of({{1, "the"}, {2, "of"}});
  save(model, path_);
  const std::string whole = read_file(path_);
  const size_t begin = whole.find("# 1 the\n# 2 of\n");
  ASSERT_NE(begin, std::string::npos);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 2, 16, 128, 255}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      write_file(path_, changed);
      SCOPED_TRACE(testing::Message() << "byte " << at << " ^ " << change);
      EXPECT_THROW(load_model(path_), Error);
      if (at < begin || at >= begin + 15) continue;
      EXPECT_THAT([&] { load_model(path_); }, fails_with(ErrorKind::damaged, "its checksum does not match"));
    }
  }
  write_file(path_, whole);
  EXPECT_EQ(names_of(load_model(path_)).size(), 2U);
}

TEST_P(NamesInModels, ThatNobodyWroteAreDamage) {
  for (const auto& names : std::vector<std::vector<std::pair<uint64_t, std::string>>>{
           {{2, "b"}, {1, "a"}}, {{1, "a"}, {1, "a"}}, {{1, ""}}, {{1, "a\tb"}}, {{1, "\xFF"}}, {{1, "a\nb"}}}) {
    Model model = two_class_model({1, 1});
    model.feature_names = [&](const FeatureNameVisitor& visit) {
      for (const auto& [index, name] : names) visit(index, name);
    };
    save(model, path_);
    EXPECT_THAT([&] { load_model(path_); }, fails_with(ErrorKind::damaged, "names of features"));
  }
}

TEST_P(NamesInModels, TooManyBytesAreLeftOutAndCounted) {
  constexpr uint64_t kFeatures = 17 * 1024;
  Model model = two_class_model(std::vector<float>(kFeatures, 1));
  save(model, folder_ / "without");
  model.feature_names = [](const FeatureNameVisitor& visit) {
    const std::string name(1024, 'x');
    for (uint64_t index = 1; index <= kFeatures; ++index) visit(index, name);
  };
  EXPECT_EQ(save(model, path_), kFeatures);
  EXPECT_EQ(read_file(path_), read_file(folder_ / "without"));
}

TEST_P(NamesInModels, AreShownWithDifferences) {
  Model model = two_class_model({1, 1, 1});
  model.feature_names = source_of({{1, "old one"}, {2, "old two"}});
  save(model, path_);
  model.weights = {2, 4, 7};
  model.feature_names = source_of({{2, "new two"}});
  save(model, folder_ / "newer");
  const std::vector<ColumnDifference> columns = difference_of(path_, folder_ / "newer", 3);
  EXPECT_EQ(columns[0].largest[0].name, "");
  EXPECT_EQ(columns[0].largest[1].name, "new two");
  EXPECT_EQ(columns[0].largest[2].name, "old one");
}

}  // namespace
}  // namespace linblock
