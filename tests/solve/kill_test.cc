// kill -9 at any moment of training: the same command again, until it is done, gives the bits of a run nobody killed.
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/store.h"
#include "support/memory_folder.h"
#include "support/process.h"
#include "support/streamed.h"

namespace linblock::test {
namespace {

class TrainKill : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new MemoryFolder;
    write_streamed_store(store());
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string store() { return *folder_ / "store"; }
  static std::string model() { return *folder_ / "killed"; }
  static std::string checkpoint() { return model() + ".checkpoint"; }
  // A checkpoint after every block.
  static std::vector<std::string> words(const std::string& model) {
    return {"train",    store(),       "-o",
            model,      "--loss",      GetParam(),
            "--cost",   "0.1",         "--inner",
            "1",        "--tolerance", "1e-3",
            "--memory", "12M",         "--checkpoint-seconds",
            "0"};
  }
  static void forget() {
    std::filesystem::remove(model());
    std::filesystem::remove(model() + ".json");
    std::filesystem::remove_all(checkpoint());
  }

  static inline MemoryFolder* folder_ = nullptr;
};

TEST_P(TrainKill, AtAnyMomentChangesNoBitOfTheModel) {
  const std::string whole = *folder_ / "whole";
  const Clock::time_point begin = Clock::now();
  const Ended ended = linblock(words(whole));
  const double seconds = seconds_since(begin);
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  ASSERT_NE(ended.errors.find("rows are read each pass"), std::string::npos) << "a test of streams: " << ended.errors;
  const std::string expected = read_file(whole);
  ASSERT_FALSE(expected.empty());

  // A life lasts a fifth of the run on average, from none at all on: kills are spread over all of it.
  Random random(42);
  int kills = 0;
  int resumed = 0;
  int finished = 0;
  while (kills < kills_a_test() || finished == 0) {
    forget();
    bool done = false;
    for (int life = 0; !done; ++life) {
      ASSERT_LT(life, 200) << "it does not come any farther";
      Process process(linblock_command(words(model())));
      std::this_thread::sleep_for(std::chrono::duration<double>(0.4 * seconds * random.unit()));
      process.kill();
      const Ended end = process.wait();
      if (end.errors.find("going on from the checkpoint") != std::string::npos) ++resumed;
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

INSTANTIATE_TEST_SUITE_P(Losses, TrainKill, ::testing::Values("hinge", "logistic"));

}  // namespace
}  // namespace linblock::test
