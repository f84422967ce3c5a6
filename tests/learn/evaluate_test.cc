// A model on text: what is predicted, and how its quality is counted.
#include "learn/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/random.h"
#include "store/core/pack.h"
#include "support/errors.h"
#include "support/folder.h"
#include "support/models.h"

namespace linblock {
namespace {

using namespace test;  // NOLINT: the tests' own words

constexpr uint64_t kMemory = uint64_t{64} << 20;

class Evaluate : public testing::Test {
 protected:
  std::string text(const std::string& lines) {
    write_file(folder_ / "data.svm", lines);
    return folder_ / "data.svm";
  }
  Evaluation evaluated(const Model& model, const std::string& lines) { return evaluate(model, {text(lines)}, kMemory); }
  // Every decision value, in the order of the rows.
  std::vector<double> decisions(const Model& model, const std::string& lines) {
    std::vector<double> all;
    apply_model(model, {text(lines)}, kMemory,
                [&](const Decision& one) { all.insert(all.end(), one.decisions.begin(), one.decisions.end()); });
    return all;
  }

  const Folder folder_;
};

TEST_F(Evaluate, CountsWhatIsRightAndWhatIsTakenForWhat) {
  // The decision is the value of feature 1.
  const Evaluation result = evaluated(two_class_model({1}), "1 1:2\n1 1:-1\n1 1:3\n-1 1:-1\n-1 1:1\n-1\n");
  EXPECT_EQ(result.rows, 6U);
  EXPECT_EQ(result.correct, 4U);
  EXPECT_DOUBLE_EQ(result.accuracy(), 4.0 / 6);
  const std::map<std::pair<int32_t, int32_t>, uint64_t> expected = {
      {{1, 1}, 2}, {{1, -1}, 1}, {{-1, -1}, 2}, {{-1, 1}, 1}};
  EXPECT_EQ(result.confusion, expected);
  const ClassQuality& positive = result.classes.at(1);
  EXPECT_EQ(positive.rows, 3U);
  EXPECT_EQ(positive.predicted, 3U);
  EXPECT_DOUBLE_EQ(positive.precision(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(positive.recall(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(positive.f1(), 2.0 / 3);
}

TEST_F(Evaluate, APrecisionOfNothingIsZeroAndNotANan) {
  const Evaluation result = evaluated(two_class_model({1}), "-1 1:-1\n-1 1:-2\n1 1:-3\n");
  EXPECT_EQ(result.classes.at(1).precision(), 0);
  EXPECT_EQ(result.classes.at(1).recall(), 0);
  EXPECT_EQ(result.classes.at(1).f1(), 0);
  EXPECT_DOUBLE_EQ(result.classes.at(-1).precision(), 2.0 / 3);
}

double naive_auc(const std::vector<std::pair<double, bool>>& scores) {
  double wins = 0;
  double pairs = 0;
  for (const auto& [positive_score, positive] : scores)
    for (const auto& [negative_score, also_positive] : scores) {
      if (!positive || also_positive) continue;
      pairs += 1;
      wins += positive_score > negative_score ? 1 : positive_score == negative_score ? 0.5 : 0;
    }
  return wins / pairs;
}

TEST_F(Evaluate, AucIsTheShareOfPairsInTheRightOrderTiesCountingHalf) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const uint64_t kinds = seed % 2 == 0 ? 7 : 100000;  // many ties, or few
    Random random(seed);
    std::vector<std::pair<double, bool>> scores;
    std::string lines;
    for (int i = 0; i < 300; ++i) {
      const double score = static_cast<double>(random.below(kinds)) / 8;
      const bool positive = random.unit() < 0.2 + 0.6 * score / static_cast<double>(kinds) * 8;
      scores.emplace_back(score, positive);
      lines += (positive ? "1 1:" : "-1 1:") + std::to_string(score) + "\n";
    }
    const Evaluation result = evaluated(two_class_model({1}), lines);
    ASSERT_TRUE(result.auc.has_value());
    EXPECT_NEAR(*result.auc, naive_auc(scores), 1e-12) << "seed " << seed;
  }
}

TEST_F(Evaluate, ThereIsNoAucOfOneClass) {
  EXPECT_FALSE(evaluated(two_class_model({1}), "1 1:2\n1 1:-1\n").auc.has_value());
  EXPECT_FALSE(evaluated(two_class_model({1}), "-1 1:2\n").auc.has_value());
}

TEST_F(Evaluate, LogLossIsTheMeanOfMinusLogOfTheTrueLabelsProbability) {
  const Model model = two_class_model({1}, -1, "L2R_LR_DUAL");
  const Evaluation result = evaluated(model, "1 1:2\n1 1:-1\n-1 1:0.5\n-1\n");
  const auto loss = [](double margin) { return std::log1p(std::exp(-margin)); };
  ASSERT_TRUE(result.log_loss.has_value());
  EXPECT_NEAR(*result.log_loss, (loss(2) + loss(-1) + loss(-0.5) + loss(0)) / 4, 1e-12);
  EXPECT_FALSE(evaluated(two_class_model({1}), "1 1:2\n").log_loss.has_value()) << "an SVM has no probabilities";
}

TEST_F(Evaluate, ACalibratedSvmHasALogLoss) {
  Model model = two_class_model({1});
  model.calibration = {{.slope = -2, .offset = 0.5}};
  const Evaluation result = evaluated(model, "1 1:2\n-1 1:1\n");
  const auto loss = [](double z) { return std::log1p(std::exp(z)); };
  ASSERT_TRUE(result.log_loss.has_value());
  EXPECT_NEAR(*result.log_loss, (loss(-2 * 2 + 0.5) + loss(2 * 1 - 0.5)) / 2, 1e-12);
}

TEST_F(Evaluate, LogLossStaysFiniteForASureMistake) {
  const Evaluation result = evaluated(two_class_model({1}, -1, "L2R_LR_DUAL"), "1 1:-1e30\n-1 1:1e30\n");
  ASSERT_TRUE(result.log_loss.has_value());
  EXPECT_TRUE(std::isfinite(*result.log_loss));
  EXPECT_GT(*result.log_loss, 30);
}

TEST_F(Evaluate, FeaturesTheModelDoesNotKnowAreIgnoredAndCounted) {
  const Model model = two_class_model({1, 1});
  EXPECT_EQ(decisions(model, "1 1:1 2:1 3:50 4000000000:50\n-1 7:1\n"), (std::vector<double>{2, 0}));
  const Evaluation result = evaluated(model, "1 1:1 2:1 3:50 4000000000:50\n-1 7:1\n");
  EXPECT_EQ(result.report.unknown_features, 3U);
  EXPECT_EQ(result.correct, 2U);
}

TEST_F(Evaluate, RowsWithoutALabelArePredictedAndCounted) {
  std::vector<std::optional<int32_t>> labels;
  std::vector<int32_t> predicted;
  const ApplyReport report =
      apply_model(two_class_model({1}), {text("1:5\n1 1:5\n1:-5\n")}, kMemory, [&](const Decision& decision) {
        labels.push_back(decision.label);
        predicted.push_back(decision.predicted);
      });
  EXPECT_EQ(report.rows, 3U);
  EXPECT_EQ(report.unlabeled, 2U);
  EXPECT_EQ(labels, (std::vector<std::optional<int32_t>>{std::nullopt, 1, std::nullopt}));
  EXPECT_EQ(predicted, (std::vector<int32_t>{1, 1, -1}));
}

TEST_F(Evaluate, ARowWithoutALabelCannotBeEvaluated) {
  EXPECT_THAT([&] { evaluated(two_class_model({1}), "1 1:5\n1:5\n"); },
              fails_with(ErrorKind::input, "row 1 has no label"));
}

TEST_F(Evaluate, ALabelTheModelHasNeverSeenIsWrong) {
  const Evaluation result = evaluated(two_class_model({1}), "3 1:5\n1 1:5\n3 1:-5\n");
  EXPECT_EQ(result.correct, 1U);
  EXPECT_EQ(result.confusion.at({3, 1}), 1U);
  EXPECT_EQ(result.confusion.at({3, -1}), 1U);
}

TEST_F(Evaluate, AgainstTheRestEveryOtherLabelIsTheRest) {
  Model model = two_class_model({1});
  model.labels = {5, -1};
  model.against_rest = true;
  const Evaluation result = evaluated(model, "5 1:1\n3 1:-1\n8 1:-1\n8 1:1\n");
  EXPECT_EQ(result.correct, 3U);
  EXPECT_EQ(result.confusion.at({-1, -1}), 2U);
  EXPECT_EQ(result.confusion.at({-1, 5}), 1U);
}

TEST_F(Evaluate, OfSeveralClassesTheLargestDecisionCounts) {
  Model model;
  model.solver_type = "L2R_LR_DUAL";
  model.labels = {4, 2, 9};
  model.features = 2;
  model.weights = {1, 0, -1, 0, 1, 0.5F};  // feature 1, feature 2; a column a class
  EXPECT_EQ(decisions(model, "4 1:1 2:2\n"), (std::vector<double>{1, 2, 0}));
  const Evaluation result = evaluated(model, "4 1:1\n2 2:1\n9 1:-1\n9 2:3\n");
  EXPECT_EQ(result.correct, 3U);
  EXPECT_EQ(result.confusion.at({9, 2}), 1U);
  EXPECT_FALSE(result.auc.has_value());
  EXPECT_TRUE(result.log_loss.has_value());
}

TEST_F(Evaluate, MacroF1IsTheMeanOverEveryClassThatOccurs) {
  // Of class 1: 2 of 3 found, 2 of 3 right. Of class -1: the same. Of class 3, which the model does not know: nothing.
  const std::string two = "1 1:2\n1 1:-1\n1 1:3\n-1 1:-1\n-1 1:1\n-1\n";
  EXPECT_NEAR(evaluated(two_class_model({1}), two).macro_f1(), 2.0 / 3, 1e-12);
  const Evaluation three = evaluated(two_class_model({1}), two + "3 1:1\n");
  EXPECT_NEAR(three.macro_f1(), (4.0 / 7 + 2.0 / 3 + 0) / 3, 1e-12);
  EXPECT_EQ(Evaluation().macro_f1(), 0);
}

TEST_F(Evaluate, TheBiasIsAddedAndTheIndexBaseIsTheModels) {
  EXPECT_EQ(decisions(two_class_model({2, 3, 10}, 0.5), "1 1:1 2:1\n-1\n"), (std::vector<double>{10, 5}));
  Model model = two_class_model({2, 3});
  model.index_base = 0;
  EXPECT_EQ(decisions(model, "1 0:1 1:1\n1 1:1\n"), (std::vector<double>{5, 3}));
  EXPECT_THAT([&] { decisions(two_class_model({2, 3}), "1 0:1\n"); }, fails_with(ErrorKind::input, "data.svm:1:3"));
}

TEST_F(Evaluate, RowsAreScaledToUnitLengthWhereTheModelsWere) {
  Model model = two_class_model({1, 0});
  model.normalized = true;
  const std::vector<double> found = decisions(model, "1 1:3 2:4\n1 1:7\n1\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(found[0], 0.6, 1e-6);
  EXPECT_NEAR(found[1], 1, 1e-6);
  EXPECT_EQ(found[2], 0);
}

TEST_F(Evaluate, TextWithoutRowsAndBadTextAreRefusedWithThePlace) {
  EXPECT_THAT([&] { evaluated(two_class_model({1}), "# nothing\n\n"); }, fails_with(ErrorKind::input, "has no rows"));
  EXPECT_THAT([&] { evaluated(two_class_model({1}), "1 1:1\n\n1 1:x\n"); },
              fails_with(ErrorKind::input, "data.svm:3:"));
}

// More than a piece of text, and more rows than a store reports at once.
std::string many_rows() {
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += i % 3 == 0 ? "1 1:1 2:0.5\n" : "-1 1:-1 3:0.25\n";
  return lines;
}

class EvaluateLong : public Evaluate, public testing::WithParamInterface<bool> {
 protected:
  // As text, or packed.
  std::string input() {
    const std::string path = text(many_rows());
    if (!GetParam()) return path;
    pack({path}, folder_ / "store", {});
    return folder_ / "store";
  }
};

TEST_P(EvaluateLong, TheReadingIsReportedFromBeginningToEnd) {
  std::vector<ReadProgress> seen;
  ReadContext context;
  context.observer = [&](const ReadProgress& progress) { seen.push_back(progress); };
  evaluate(two_class_model({1}), {input()}, kMemory, context);
  ASSERT_GT(seen.size(), 1U);
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].total_bytes, seen[0].total_bytes);
    EXPECT_LE(seen[i].bytes_read, seen[i].total_bytes);
    if (i == 0) continue;
    EXPECT_GT(seen[i].rows, seen[i - 1].rows);
    EXPECT_GT(seen[i].bytes_read, seen[i - 1].bytes_read);
  }
  EXPECT_GT(seen.back().bytes_read, seen.back().total_bytes / 2);
  EXPECT_LE(seen.back().rows, 20000U);
}

TEST_P(EvaluateLong, ItStopsSoonAfterItIsToldTo) {
  std::atomic<bool> stop = false;
  ReadContext context;
  context.stop = &stop;
  uint64_t rows = 0;
  const auto visit = [&](const Decision&) {
    if (++rows == 10) stop = true;
  };
  EXPECT_THAT([&] { apply_model(two_class_model({1}), {input()}, kMemory, visit, context); },
              fails_with(ErrorKind::interrupted, "interrupted"));
  EXPECT_LT(rows, 20000U);
}

INSTANTIATE_TEST_SUITE_P(Of, EvaluateLong, testing::Bool(),
                         [](const auto& packed) { return packed.param ? "AStore" : "Text"; });

TEST_F(Evaluate, WhatTakesTooMuchMemoryToDecompressIsRefused) {
  const std::string path = text(many_rows());
  const std::string packed = folder_ / "data.xz";
  if (std::system(("xz -T1 --lzma2=preset=0,dict=64MiB -c " + path + " > " + packed).c_str()) != 0) GTEST_SKIP();
  write_file(packed, read_file(packed) + std::string(size_t{1} << 20, '\0'));  // long enough to be refused at once
  EXPECT_THAT([&] { evaluate(two_class_model({1}), {packed}, uint64_t{32} << 20); },
              fails_with(ErrorKind::memory, "to decompress"));
  EXPECT_EQ(evaluate(two_class_model({1}), {packed}, uint64_t{1} << 30).rows, 20000U);
}

TEST_F(Evaluate, SeveralInputsAreOne) {
  write_file(folder_ / "a", "1 1:1\n");
  write_file(folder_ / "b", "-1 1:-1\n1 1:-1\n");
  const Evaluation result = evaluate(two_class_model({1}), {folder_ / "a", folder_ / "b"}, kMemory);
  EXPECT_EQ(result.rows, 3U);
  EXPECT_EQ(result.correct, 2U);
}

// Predictions of text on several threads.
class Predict : public Evaluate {
 protected:
  static constexpr uint64_t kRows = 60000;  // about ten pieces

  // The decision about row i is i.
  static std::string line(uint64_t i) { return fmt::format("1 1:{} 2:0.5 3:0.25\n", i); }
  static std::string lines() {
    std::string all;
    for (uint64_t i = 0; i < kRows; ++i) all += line(i);
    return all;
  }
  std::string predicted(const std::vector<std::string>& inputs, size_t threads, uint64_t memory = kMemory) {
    written_.clear();
    report_ = predict(
        two_class_model({1}), inputs, memory, threads,
        [](const Decision& decision, std::string& to) { to += fmt::format("{}\n", decision.decisions[0]); },
        [&](const std::string& some) { written_ += some; });
    return written_;
  }

  std::string written_;
  ApplyReport report_;
};

TEST_F(Predict, GivesTheSameForAnyNumberOfThreadsAndAnyMemory) {
  const std::string input = text(lines());
  std::string expected;
  for (uint64_t i = 0; i < kRows; ++i) expected += fmt::format("{}\n", i);
  for (const size_t threads : {1, 2, 3, 16})
    for (const uint64_t memory : {uint64_t{8} << 20, uint64_t{16} << 20, uint64_t{1} << 30}) {
      EXPECT_TRUE(predicted({input}, threads, memory) == expected) << threads << " threads, " << memory;
      EXPECT_EQ(report_.rows, kRows);
      EXPECT_EQ(report_.unknown_features, 2 * kRows);
      EXPECT_EQ(report_.unlabeled, 0U);
    }
}

// More text per piece than may wait, and a line that is read alone between short ones.
TEST_F(Predict, WritesLargeTextsAndLongLinesInOrder) {
  std::string long_line = "1 1:-1";
  for (int i = 2; i < 100000; ++i) long_line += fmt::format(" {}:1", i);
  std::string all = lines();
  const size_t middle = all.find('\n', all.size() / 2) + 1;
  all.insert(middle, long_line + "\n" + long_line + "\n");
  all += long_line;
  const std::string input = text(all);
  const auto made = [&](size_t threads) {
    std::string whole;
    predict(
        two_class_model({1}), {input}, kMemory, threads,
        [](const Decision& decision, std::string& to) {
          to += std::string(100, 'x') + fmt::format("{}\n", decision.decisions[0]);
        },
        [&](const std::string& some) { whole += some; });
    return whole;
  };
  const std::string expected = made(1);
  EXPECT_EQ(static_cast<uint64_t>(std::count(expected.begin(), expected.end(), '\n')), kRows + 3);
  for (const size_t threads : {2, 3, 16}) EXPECT_TRUE(made(threads) == expected) << threads;
}

// Everything before a bad line's piece is written, nothing behind it, and the line is counted within its own file.
TEST_F(Predict, NamesTheFirstBadLineOfTheInputOnAnyNumberOfThreads) {
  write_file(folder_ / "first.svm", line(0) + line(1));
  std::string all = lines();
  const size_t late = all.find('\n', all.size() * 3 / 4) + 1;
  const auto number = std::count(all.begin(), all.begin() + static_cast<ptrdiff_t>(late), '\n') + 1;
  all.insert(late, "1 2:1 1:1\n");
  for (size_t at = late + 20000; at < all.size(); at += 20000) all.insert(all.find('\n', at) + 1, "nonsense\n");
  const std::string input = text(all);
  std::string before;
  for (const size_t threads : {1, 2, 3, 16}) {
    EXPECT_THAT(
        [&] {
          predicted({folder_ / "first.svm", input}, threads);
        },
        fails_with(ErrorKind::input, fmt::format("data.svm:{}:7:", number)));
    if (threads == 1) before = written_;
    EXPECT_TRUE(written_ == before) << threads;
    EXPECT_TRUE(written_.starts_with("0\n1\n0\n1\n2\n"));
  }
}

TEST_F(Predict, EndsWhenTheTextCannotBeWritten) {
  const std::string input = text(lines());
  for (const size_t threads : {1, 2, 16}) {
    int calls = 0;
    const auto write = [&](const std::string&) {
      if (++calls == 3) fail(ErrorKind::io, "the disk is full");
    };
    EXPECT_THAT(
        [&] {
          predict(
              two_class_model({1}), {input}, kMemory, threads, [](const Decision&, std::string& to) { to += "1\n"; },
              write);
        },
        fails_with(ErrorKind::io, "the disk is full"));
    EXPECT_EQ(calls, 3);
  }
}

// A thread that finds the end of the text has a number and no turn. Others, told to stop after that, waited for it.
TEST_F(Predict, EndsWhenItIsToldToStopAfterTheEndOfTheText) {
  const std::string input = text("1 1:1\n");
  for (int trial = 0; trial < 5; ++trial) {
    std::atomic<bool> stop = false;
    const auto write = [&](const std::string&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others claim what is behind the end
      stop = true;
    };
    try {
      const ApplyReport report = predict(two_class_model({1}), {input}, kMemory, 4,
                                         [](const Decision&, std::string& to) { to += "1\n"; }, write, {.stop = &stop});
      EXPECT_EQ(report.rows, 1U);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::interrupted);
    }
  }
}

TEST_F(Predict, FeaturesBelowAndAboveTheModelAreUnknown) {
  Model model = two_class_model({1, 10, 100, 1000, 10000, 100000});
  for (const int base : {0, 1}) {
    model.index_base = base;
    const std::string input =
        base == 0 ? "1 0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1\n" : "1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 4294967294:1\n";
    EXPECT_EQ(decisions(model, input), (std::vector<double>{111111}));
    EXPECT_EQ(decisions(model, "1 7:1\n1 3:2\n1\n"), (std::vector<double>{0, base == 0 ? 2000.0 : 200.0, 0}));
  }
  uint64_t unknown = 0;
  std::vector<double> decision(1);
  const std::vector<uint32_t> index = {0, 6, 7, 4294967294};
  model.decide(index, std::vector<float>(4, 1), decision, unknown);
  EXPECT_EQ(decision[0], 100000);
  EXPECT_EQ(unknown, 3U) << "0 is below the base 1";
}

}  // namespace
}  // namespace linblock
