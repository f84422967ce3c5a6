// Labels that are words, in training, models and what models say.
#include <gtest/gtest.h>

#include "learn/evaluate.h"
#include "learn/model_weights.h"
#include "learn/start_weights.h"
#include "support/learning.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr uint64_t kMemory = uint64_t{64} << 20;

// Rows as text, with another word for each label.
std::string with_words(const std::vector<OwnedRow>& rows, const std::map<int32_t, std::string>& words) {
  std::string text;
  for (const OwnedRow& row : rows) {
    const std::string line = line_of(row);
    text += words.at(row.label) + line.substr(line.find_first_of(" \n"));
  }
  return text;
}

class WordLabels : public testing::Test {
 protected:
  TrainReport trained(const std::string& text, TrainOptions options = {}) {
    const std::string name = folder_ / ("data" + std::to_string(++stores_));
    write_file(name + ".svm", text);
    pack({name + ".svm"}, name, small_options());
    options.inputs = {name};
    last_store_ = name;
    TrainReport report = train(options, {.memory_bytes = kMemory}, {}, false);
    if (report.columns.size() == 0) return report;
    const size_t width = report.columns.size();  // one vector, as a model that was loaded has it
    report.model.weights.resize(report.columns.rows() * width);
    std::vector<float> column(report.columns.rows());
    for (size_t c = 0; c < width; ++c) {
      report.columns.read(c, 0, column);
      for (size_t i = 0; i < column.size(); ++i) report.model.weights[i * width + c] = column[i];
    }
    return report;
  }
  std::vector<std::string> labels_of(const Model& model) {
    std::vector<std::string> words;
    for (const int32_t label : model.labels) words.push_back(model.label_names.show(label));
    return words;
  }
  std::string text(const std::string& lines) {
    write_file(folder_ / "rows.svm", lines);
    return folder_ / "rows.svm";
  }

  const Folder folder_;
  std::string last_store_;
  int stores_ = 0;
};

TEST_F(WordLabels, GiveTheWeightsOfNumbersInTheSameOrder) {
  const auto rows = two_classes(300, 20, 1);
  const Model numbers = trained(text_of(rows)).model;
  EXPECT_EQ(numbers.labels, (std::vector<int32_t>{1, -1}));
  // The word that sorts last is the positive class, whichever comes first in the text.
  for (const bool first : {true, false}) {
    const std::string head = first ? "ham 21:0.5\nspam 22:0.5\n" : "spam 22:0.5\nham 21:0.5\n";
    const std::string number_head = first ? "-1 21:0.5\n1 22:0.5\n" : "1 22:0.5\n-1 21:0.5\n";
    const Model words = trained(head + with_words(rows, {{1, "spam"}, {-1, "ham"}})).model;
    EXPECT_EQ(labels_of(words), (std::vector<std::string>{"spam", "ham"}));
    EXPECT_EQ(words.weights, trained(number_head + text_of(rows)).model.weights);
  }
}

TEST_F(WordLabels, OfSeveralClassesGiveTheWeightsOfNumbers) {
  const auto rows = class_rows(300, 12, 3, 1);
  std::map<int32_t, std::string> words;  // codes by first appearance are the numbers less 1
  const std::vector<std::string> names = {"zebra", "ant", "mole"};
  std::vector<OwnedRow> renumbered = rows;
  std::map<int32_t, int32_t> order;
  for (OwnedRow& row : renumbered) {
    const auto number = order.try_emplace(row.label, static_cast<int32_t>(order.size())).first->second;
    words[row.label] = names[static_cast<size_t>(number)];
    row.label = number;
  }
  for (const bool together : {false, true}) {
    TrainOptions options;
    if (together) options.solve.method = *Methods::make("crammer-singer");
    if (together) options.loss = Hinge{};
    const Model with_names = trained(with_words(rows, words), options).model;
    const Model with_numbers = trained(text_of(renumbered), options).model;
    EXPECT_EQ(labels_of(with_names), names);
    EXPECT_EQ(with_names.labels, with_numbers.labels);
    EXPECT_EQ(with_names.weights, with_numbers.weights);
  }
}

TEST_F(WordLabels, AreNamedByOptions) {
  const auto rows = class_rows(200, 10, 3, 1);
  const std::string text = with_words(rows, {{1, "ant"}, {2, "chosen"}, {3, "not-chosen"}});
  TrainOptions options;
  options.positive = LabelText(std::string("chosen"));
  const Model model = trained(text, options).model;
  EXPECT_TRUE(model.against_rest);
  EXPECT_EQ(labels_of(model), (std::vector<std::string>{"chosen", "not-not-chosen"}));  // no label is called so
  options.positive = LabelText(std::string("bee"));
  EXPECT_THAT([&] { trained(text, options); }, fails_with(ErrorKind::input, "positive bee: no row has this label"));
  options.positive.reset();
  options.class_weight = *ClassWeights::read("ant=2,chosen=0.5");
  const Model weighted = trained(text, options).model;
  EXPECT_NE(weighted.weights, trained(text).model.weights);
  options.class_weight = *ClassWeights::read("1=2");
  EXPECT_THAT([&] { trained(text, options); }, fails_with(ErrorKind::input, "class_weight 1=2: no row has this label"));
}

TEST_F(WordLabels, InOptionsAreOrderedAsNumbersAndThenAsWords) {
  EXPECT_EQ(ClassWeights::read("b=1,10=2,2=3,a=b=4,-1=5")->show(), "-1=5,2=3,10=2,a=b=4,b=1");
  EXPECT_FALSE(ClassWeights::read("a b=1"));
  EXPECT_FALSE(ClassWeights::read("=1"));
  EXPECT_FALSE(ClassWeights::read("a=x"));
  EXPECT_FALSE(PositiveLabel::read("a:b"));
  EXPECT_EQ(PositiveLabel().show(), "chosen");
}

TEST_F(WordLabels, AreInModelsOfBothForms) {
  const Model model = trained(with_words(two_classes(50, 5, 1), {{1, "spam"}, {-1, "ham"}})).model;
  for (const ModelFormat form : {ModelFormat::text, ModelFormat::binary}) {
    save_model(folder_ / "m", model, kPlainMetadata, 1, form);
    const Model loaded = load_model(folder_ / "m");
    EXPECT_EQ(loaded.labels, model.labels);
    EXPECT_EQ(loaded.label_names.text(), model.label_names.text());
    EXPECT_EQ(loaded.weights, model.weights);
  }
}

TEST_F(WordLabels, OfAModelThatNobodyWroteAreDamage) {
  Model model = two_class_model({1, 2});
  model.labels = {1, 0};
  for (const auto& [names, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"spam"}, "its label 1 has no name"}, {{"a:b", "c"}, "the name of its label 0 is impossible"}})
    for (const ModelFormat form : {ModelFormat::text, ModelFormat::binary}) {
      model.label_names.clear();
      for (const std::string& name : names) model.label_names.add(name);
      save_model(folder_ / "m", model, kPlainMetadata, 1, form);
      EXPECT_THAT([&] { load_model(folder_ / "m"); }, fails_with(ErrorKind::damaged, words));
    }
}

Model spam_model() {
  Model model = two_class_model({1});  // the decision is the value of feature 1
  model.label_names.add("ham");
  model.label_names.add("spam");
  model.labels = {1, 0};
  return model;
}

TEST_F(WordLabels, AreEvaluatedByName) {
  const Evaluation result =
      evaluate(spam_model(), {text("spam 1:1\nham 1:1\neggs 1:1\n1 1:-1\nspam 1:-1\neggs 1:2\n")}, kMemory);
  EXPECT_EQ(result.rows, 6U);
  EXPECT_EQ(result.correct, 1U);
  // Words that the model does not know come after its own, in the order of the rows.
  EXPECT_EQ(result.label_names.text(), "ham spam eggs 1");
  EXPECT_EQ(result.classes.at(2).rows, 2U);
  EXPECT_EQ(result.classes.at(3).rows, 1U);
  EXPECT_EQ(result.confusion.at({1, 1}), 1U);
}

TEST_F(WordLabels, OfAStoreAreEvaluatedByNameWhateverItsCodes) {
  write_file(folder_ / "rows.svm", "spam 1:1\neggs 1:1\nham 1:-1\nspam 1:2\n");
  pack({folder_ / "rows.svm"}, folder_ / "store", small_options());
  const Evaluation result = evaluate(spam_model(), {folder_ / "store"}, kMemory);
  EXPECT_EQ(result.correct, 3U);
  EXPECT_EQ(result.label_names.text(), "ham spam eggs");
  // A model of numbers cannot tell which of them a word is.
  EXPECT_THAT([&] { evaluate(two_class_model({1}), {folder_ / "store"}, kMemory); },
              fails_with(ErrorKind::input, "are words"));
  EXPECT_THAT([&] { evaluate(two_class_model({1}), {folder_ / "rows.svm"}, kMemory); },
              fails_with(ErrorKind::input, "'spam' is not a number"));
}

TEST_F(WordLabels, OfNumbersAreWordsToAModelOfWords) {
  write_file(folder_ / "rows.svm", "1 1:1\n-1 1:-1\n");
  pack({folder_ / "rows.svm"}, folder_ / "store", small_options());
  for (const char* input : {"store", "rows.svm"}) {
    const Evaluation result = evaluate(spam_model(), {folder_ / input}, kMemory);
    EXPECT_EQ(result.correct, 0U);
    EXPECT_EQ(result.label_names.size(), 4U);
  }
}

TEST_F(WordLabels, ArePredictedTheSameOnAnyNumberOfThreadsWithLabelsAndWithout) {
  std::string lines;
  for (int i = 0; i < 30000; ++i)
    lines += (i % 3 == 0 ? "" : "w" + std::to_string(i % 50) + " ") + "1:" + std::to_string(i % 7 - 3) + "\n";
  std::string first;
  for (const size_t threads : {1, 4}) {
    std::string written;
    const Model model = spam_model();
    const ApplyReport report = predict(
        model, {text(lines)}, kMemory, threads,
        [&](const Decision& decision, std::string& to) { to += model.label_names.show(decision.predicted) + "\n"; },
        [&](const std::string& piece) { written += piece; });
    EXPECT_EQ(report.rows, 30000U);
    EXPECT_EQ(report.unlabeled, 10000U);
    if (first.empty()) first = written;
    EXPECT_TRUE(written == first);
  }
  EXPECT_TRUE(first.starts_with("ham\nham\nham\nham\nspam\n"));
}

// Nobody asks for them: there may be as many as there are rows.
TEST_F(WordLabels, OfRowsToPredictAreNotCounted) {
  std::string lines;
  for (int i = 0; i < 140000; ++i) lines += "row-" + std::to_string(i) + "\n";
  const auto ignore = [](const auto&...) {};
  EXPECT_EQ(predict(spam_model(), {text(lines)}, kMemory, 1, ignore, ignore).rows, 140000U);
  EXPECT_THAT([&] { evaluate(spam_model(), {folder_ / "rows.svm"}, kMemory); },
              fails_with(ErrorKind::input, "too many different labels that the model does not know"));
  // And in a store they may be words where the model has numbers.
  write_file(folder_ / "words.svm", "spam 1:1\nham 1:-1\n");
  pack({folder_ / "words.svm"}, folder_ / "store", small_options());
  EXPECT_EQ(predict(two_class_model({1}), {folder_ / "store"}, kMemory, 1, ignore, ignore).rows, 2U);
}

TEST_F(WordLabels, AreComparedByNameInTwoModels) {
  Model other = spam_model();
  other.label_names.clear();
  for (const char* name : {"eggs", "spam", "ham"}) other.label_names.add(name);
  other.labels = {2, 1};  // ham, spam
  other.weights = {-1};
  save_model(folder_ / "a", spam_model(), kPlainMetadata, 1);
  save_model(folder_ / "b", other, kPlainMetadata, 1);
  EXPECT_EQ(difference_of(folder_ / "a", folder_ / "b", 1)[0].cosine, 1);
  const LabelChanges changes =
      label_changes(folder_ / "a", folder_ / "b", {text("spam 1:1\nham 1:-1\neggs 1:2\n")}, kMemory);
  EXPECT_EQ(changes.rows, 3U);
  EXPECT_EQ(changes.changed, 0U);
  EXPECT_EQ(changes.correct_before, 2U);
  EXPECT_EQ(changes.correct_after, 2U);
  // A number is a word among words.
  Model words = spam_model();
  words.label_names.clear();
  for (const char* name : {"-1", "1"}) words.label_names.add(name);
  save_model(folder_ / "w", words, kPlainMetadata, 1);
  save_model(folder_ / "c", two_class_model({1}), kPlainMetadata, 1);
  EXPECT_EQ(difference_of(folder_ / "c", folder_ / "w", 1)[0].cosine, 1);
  EXPECT_EQ(label_changes(folder_ / "c", folder_ / "w", {text("1 1:1\nspam 1:-1\n")}, kMemory).correct_after, 1U);
  EXPECT_THAT([&] { difference_of(folder_ / "a", folder_ / "c", 1); },
              fails_with(ErrorKind::input, "one has the labels spam, ham, the other 1, -1"));
}

TEST_F(WordLabels, OfAWarmStartAreFoundByName) {
  const auto rows = class_rows(200, 10, 3, 1);
  const Model model = trained(with_words(rows, {{1, "a"}, {2, "b"}, {3, "c"}})).model;
  save_model(folder_ / "m", model, kPlainMetadata, 1);
  // Another store, where the words appear in another order.
  trained("c 1:1\nb 1:1\na 1:1\n" + with_words(rows, {{1, "a"}, {2, "b"}, {3, "c"}}));
  const Store store = Store::open(last_store_);
  TrainOptions options;
  const Classes classes = choose_classes(store.info(), options);
  const StartWeights start = start_weights(folder_ / "m", make_problem(store, options, classes), false);
  EXPECT_EQ(start.known, 3U);
  for (size_t task = 0; task < 3; ++task) {
    const std::string name = classes.label_names.show(classes.positives[task]);
    const size_t in_model = static_cast<size_t>(
        std::find(model.labels.begin(), model.labels.end(), *model.label_names.find(name)) - model.labels.begin());
    for (uint32_t index = 1; index <= 10; ++index)
      EXPECT_EQ(start.solutions[task].weights[store.features().number(index)],
                model.weights[(index - 1) * 3 + in_model]);
  }
}

TEST_F(WordLabels, AreTestedAfterEachPass) {
  const auto rows = two_classes(200, 10, 1, 0.1);
  const std::string lines = with_words(rows, {{1, "spam"}, {-1, "ham"}});
  write_file(folder_ / "test.svm", "eggs 1:1\n" + lines);
  TrainOptions options;
  options.test = {folder_ / "test.svm"};
  write_file(folder_ / "data.svm", lines);
  pack({folder_ / "data.svm"}, folder_ / "store", small_options());
  options.inputs = {folder_ / "store"};
  Context context{.memory_bytes = kMemory};
  context.checkpoint.path = folder_ / "checkpoint";
  const TrainReport report = train(options, context, {}, false);
  ASSERT_TRUE(report.test);
  EXPECT_EQ(report.test->rows, 201U);
  const Evaluation same = evaluate(report.model, {folder_ / "test.svm"}, kMemory);
  EXPECT_EQ(report.test->correct, same.correct);
  EXPECT_GT(same.accuracy(), 0.8);
}

}  // namespace
}  // namespace linblock
