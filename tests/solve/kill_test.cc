// kill -9 at any moment of training: the same command again, until it is done, gives the bits of a run nobody killed.
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/core/store.h"
#include "support/memory_budget.h"
#include "support/process.h"
#include "support/streamed.h"
#include "support/tight_memory.h"

namespace linblock::test {
namespace {

struct Victim {
  const char* name;
  std::vector<std::string> options;
  const char* plan;  // words of the plan that it is about
  bool tiny_rows = false;
};

std::ostream& operator<<(std::ostream& out, const Victim& victim) { return out << victim.name; }

constexpr const char* kIndexPlan = "pages of the index are read as they are asked for";

const std::vector<Victim> kVictims = {
    {"hinge", {"--loss", "hinge", "--inner", "1", "--tolerance", "1e-3"}, "working set"},
    {"logistic", {"--loss", "logistic", "--inner", "1", "--tolerance", "1e-3"}, "working set"},
    {"duals_in_file", {"--loss", "hinge", "--inner", "1", "--tolerance", "1e-6"}, "the others in a file", true},
    {"pegasos", {"--loss", "hinge", "--solver", "pegasos", "--max-passes", "6"}, "rows are read in each pass"},
    {"indexed", {"--loss", "hinge", "--solver", "indexed", "--query", "50", "--tolerance", "1e-4"}, kIndexPlan},
};

class TrainKill : public ::testing::TestWithParam<Victim> {
 protected:
  void SetUp() override {
    if (!GetParam().tiny_rows) {
      write_streamed_store(store());
      return;
    }
    const Store rows = write_tiny_rows(store(), 100000);
    memory_ = std::to_string(least_memory(problem_for(rows, "hinge", 0.1), Dual{}, "somewhere") + (20 << 10));
  }

  std::string store() const { return folder_ / "store"; }
  std::string model() const { return folder_ / "killed"; }
  std::string checkpoint() const { return model() + ".checkpoint"; }
  // A checkpoint after every block.
  std::vector<std::string> words(const std::string& model) const {
    std::vector<std::string> words = {
        "train", store(), "-o", model, "--cost", "0.1", "--memory", memory_, "--checkpoint-seconds", "0"};
    words.insert(words.end(), GetParam().options.begin(), GetParam().options.end());
    return words;
  }
  void forget() const {
    std::filesystem::remove(model());
    std::filesystem::remove(model() + ".json");
    std::filesystem::remove_all(checkpoint());
  }
  // Shared out between the victims.
  static int kills_wanted() { return kills_a_test() / static_cast<int>(kVictims.size()) + 1; }

  const MemoryFolder folder_;
  std::string memory_ = std::to_string(kStreamedMemory);
};

TEST_P(TrainKill, AtAnyMomentChangesNoBitOfTheModel) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer the program takes longer to start than a life lasts";
  const std::string whole = folder_ / "whole";
  const Clock::time_point begin = Clock::now();
  const Ended ended = linblock(words(whole));
  const double seconds = seconds_since(begin);
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  if (GetParam().plan != kIndexPlan) {
    ASSERT_NE(ended.errors.find("rows are read in each pass"), std::string::npos)
        << "a test of streams: " << ended.errors;
  }
  ASSERT_NE(ended.errors.find(GetParam().plan), std::string::npos) << ended.errors;
  const std::string expected = read_file(whole);
  ASSERT_FALSE(expected.empty());

  // A life lasts a fifth of the run on average, from none at all on: kills are spread over all of it. Later lives are
  // longer, for the program takes a while to start, and its last certificate must be made in one life.
  Random random(42);
  int kills = 0;
  int resumed = 0;
  int finished = 0;
  while (kills < kills_wanted() || finished == 0) {
    forget();
    bool done = false;
    for (int life = 0; !done; ++life) {
      ASSERT_LT(life, 200) << "it does not come any farther";
      Process process(linblock_command(words(model())));
      std::this_thread::sleep_for(std::chrono::duration<double>((0.4 + 0.02 * life) * seconds * random.unit()));
      process.kill();
      const Ended end = process.wait();
      if (end.errors.find("resuming from the checkpoint") != std::string::npos) ++resumed;
      done = end.exit_code == 0;
      if (done) continue;
      ASSERT_EQ(end.signal, SIGKILL) << "exit code " << end.exit_code << ": " << end.errors;
      ++kills;
    }
    ++finished;
    ASSERT_TRUE(read_file(model()) == expected) << "after " << kills << " kills in " << finished << " runs";
    ASSERT_FALSE(std::filesystem::exists(checkpoint()));
  }
  EXPECT_GE(resumed, kills / 3) << "most kills came before there was anything to go on from";
}

INSTANTIATE_TEST_SUITE_P(Victims, TrainKill, ::testing::ValuesIn(kVictims),
                         [](const auto& victim) { return std::string(victim.param.name); });

}  // namespace
}  // namespace linblock::test
