// kill -9 at any moment of the real program: the store is the old one or the new one, and the next try works. And two
// programs at one store: one writer, any number of readers.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "store/columns/columns.h"
#include "store/index/metric_forest.h"
#include "support/packing.h"
#include "support/process.h"

namespace linblock::test {
namespace {

class Kill : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    generate_text("first.svm", 8000, 1);
    generate_text("second.svm", 8000, 2);
    ASSERT_EQ(linblock({"pack", *folder_ / "first.svm", "-o", first_store(), "--codec", "lz4", "-q"}).exit_code, 0);
    first_ = contents_of(first_store());
    copy_store(first_store(), *folder_ / "both.store");
    ASSERT_EQ(linblock({"append", *folder_ / "both.store", *folder_ / "second.svm", "-q"}).exit_code, 0);
    both_ = contents_of(*folder_ / "both.store");
    ASSERT_NE(first_, both_);
  }
  static void TearDownTestSuite() { delete folder_; }

  static void generate_text(const std::string& name, int rows, int seed) {
    ASSERT_EQ(linblock({"generate", "documents", "-o", *folder_ / name, "--rows", std::to_string(rows), "--seed",
                        std::to_string(seed), "-q"})
                  .exit_code,
              0);
  }
  static std::string first_store() { return *folder_ / "first.store"; }

  // Verified, and told apart by the hash of everything in it.
  static uint64_t contents_of(const std::string& path) {
    const Store store = Store::open(path);
    verify(store, 2);
    return store.info().id;
  }

  // Kills the command at `moments` spread over as long as it takes; `judge` sees what each kill has left. Returns how
  // many kills came before the end.
  template <typename Reset, typename Judge>
  static int kill_often(const std::vector<std::string>& words, int kills, Reset&& reset, Judge&& judge) {
    reset();
    const Clock::time_point begin = Clock::now();
    EXPECT_EQ(linblock(words).exit_code, 0);
    const double whole = seconds_since(begin);
    Random random(42);
    int in_time = 0;
    for (int i = 0; i < kills && !::testing::Test::HasFatalFailure(); ++i) {
      reset();
      Process process(linblock_command(words));
      const double delay = whole * 1.1 * (i + random.unit()) / kills;
      std::this_thread::sleep_for(std::chrono::duration<double>(delay));
      process.kill();
      const Ended ended = process.wait();
      if (ended.signal == SIGKILL) ++in_time;
      SCOPED_TRACE(::testing::Message() << "kill " << i << " after " << delay << " s of " << whole);
      judge(ended.signal == SIGKILL);
    }
    return in_time;
  }

  static inline Folder* folder_ = nullptr;
  static inline uint64_t first_ = 0;
  static inline uint64_t both_ = 0;
};

TEST_F(Kill, InPackLeavesNoStoreOrAWholeOneAndPackingAgainWorks) {
  const std::string store = *folder_ / "killed.store";
  const std::vector<std::string> words = {"pack", *folder_ / "first.svm", "-o", store, "--codec", "lz4", "-q"};
  int absent = 0;
  const auto judge = [&](bool killed) {
    if (std::filesystem::exists(store)) {
      ASSERT_EQ(contents_of(store), first_);
      return;
    }
    ++absent;
    ASSERT_TRUE(killed);
    const Ended again = linblock(words);  // beside what the killed one has left
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    ASSERT_EQ(contents_of(store), first_);
    ASSERT_FALSE(std::filesystem::exists(store + ".partial"));
  };
  const auto reset = [&] {
    std::filesystem::remove_all(store);
    std::filesystem::remove_all(store + ".partial");
  };
  EXPECT_GE(kill_often(words, kills_a_test(), reset, judge), kills_a_test() / 3);
  EXPECT_GE(absent, kills_a_test() / 3);
}

TEST_F(Kill, InAppendLeavesTheOldStoreOrTheNewOneAndAppendingAgainWorks) {
  const std::string store = *folder_ / "killed.store";
  const std::vector<std::string> words = {"append", store, *folder_ / "second.svm", "-q"};
  int old = 0;
  const auto judge = [&](bool killed) {
    const uint64_t found = contents_of(store);
    ASSERT_TRUE(found == both_ || (killed && found == first_));
    if (found == both_) return;
    ++old;
    const Ended again = linblock(words);
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    ASSERT_EQ(contents_of(store), both_);
  };
  EXPECT_GE(kill_often(
                words, kills_a_test(), [&] { copy_store(first_store(), store); }, judge),
            kills_a_test() / 3);
  EXPECT_GE(old, kills_a_test() / 3);
}

TEST_F(Kill, InCompactLeavesTheOldStoreOrTheNewOneAndCompactingAgainWorks) {
  const std::string old = *folder_ / "removed.store";
  const std::string store = *folder_ / "killed.store";
  copy_store(*folder_ / "both.store", old);
  std::string ids;
  for (int id = 0; id < 16000; id += 3) ids += std::to_string(id) + "\n";
  write_file(*folder_ / "ids", ids);
  ASSERT_EQ(linblock({"remove", old, "--rows", *folder_ / "ids", "-q"}).exit_code, 0);
  const uint64_t before = contents_of(old);
  copy_store(old, store);
  ASSERT_EQ(linblock({"compact", store, "-q"}).exit_code, 0);
  const uint64_t after = contents_of(store);
  const std::vector<std::string> words = {"compact", store, "-q"};
  const auto judge = [&](bool killed) {
    const uint64_t found = contents_of(store);
    ASSERT_TRUE(found == after || (killed && found == before));
    if (found == after) return;
    const Ended again = linblock(words);
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    ASSERT_EQ(contents_of(store), after);
  };
  kill_often(
      words, kills_a_test() / 3 + 1, [&] { copy_store(old, store); }, judge);
}

TEST_F(Kill, InTransposeLeavesNoColumnsOrAllOfThemAndTransposingAgainWorks) {
  const std::string store = *folder_ / "killed.store";
  const std::vector<std::string> words = {"transpose", store, "--memory", "32M", "-q"};
  copy_store(first_store(), store);
  ASSERT_EQ(linblock(words).exit_code, 0);
  const uint64_t columns = contents_of(columns_path(store));
  int absent = 0;
  const auto judge = [&](bool killed) {
    ASSERT_EQ(contents_of(store), first_);
    if (columns_state(Store::open(store)) == ColumnsState::absent) {
      ASSERT_TRUE(killed);
      ++absent;
      const Ended again = linblock(words);
      ASSERT_EQ(again.exit_code, 0) << again.errors;
    }
    ASSERT_EQ(contents_of(columns_path(store)), columns);
    ASSERT_EQ(columns_state(Store::open(store)), ColumnsState::fresh);
  };
  kill_often(
      words, kills_a_test() / 3 + 1, [&] { copy_store(first_store(), store); }, judge);
  EXPECT_GE(absent, 1);
}

TEST_F(Kill, InIndexLeavesNoIndexOrAllOfItAndIndexingAgainWorks) {
  const std::string store = *folder_ / "killed.store";
  const std::vector<std::string> words = {"index", store, "--memory", "64M", "--tree-rows", "2000", "-q"};
  copy_store(first_store(), store);
  ASSERT_EQ(linblock(words).exit_code, 0);
  const uint64_t index = contents_of(index_path(store));
  int absent = 0;
  const auto judge = [&](bool killed) {
    ASSERT_EQ(contents_of(store), first_);
    if (forest_state(Store::open(store)) == ForestState::absent) {
      ASSERT_TRUE(killed);
      ++absent;
      const Ended again = linblock(words);
      ASSERT_EQ(again.exit_code, 0) << again.errors;
    }
    ASSERT_EQ(contents_of(index_path(store)), index);
    ASSERT_EQ(forest_state(Store::open(store)), ForestState::fresh);
  };
  kill_often(
      words, kills_a_test() / 3 + 1, [&] { copy_store(first_store(), store); }, judge);
  EXPECT_GE(absent, 1);
}

TEST_F(Kill, InAddingToAnIndexLeavesItBehindOrFresh) {
  const std::string behind = *folder_ / "behind.store";
  const std::string store = *folder_ / "killed.store";
  const std::vector<std::string> words = {"index", store, "--memory", "64M", "-q"};
  copy_store(first_store(), store);
  ASSERT_EQ(linblock({"index", store, "--tree-rows", "2000", "-q"}).exit_code, 0);
  const uint64_t old = contents_of(index_path(store));
  copy_store(*folder_ / "both.store", behind);
  copy_store(index_path(store), index_path(behind));
  ASSERT_EQ(forest_state(Store::open(behind)), ForestState::behind);
  copy_store(behind, store);
  ASSERT_EQ(linblock(words).exit_code, 0);
  const uint64_t extended = contents_of(index_path(store));
  const auto judge = [&](bool killed) {
    if (const ForestState state = forest_state(Store::open(store)); state == ForestState::behind) {
      ASSERT_TRUE(killed);
      ASSERT_EQ(contents_of(index_path(store)), old);
      ASSERT_EQ(linblock(words).exit_code, 0);
    }
    ASSERT_EQ(contents_of(index_path(store)), extended);
  };
  kill_often(
      words, kills_a_test() / 3 + 1, [&] { copy_store(behind, store); }, judge);
}

TEST_F(Kill, InRemoveLeavesTheOldStoreOrTheNewOne) {
  const std::string store = *folder_ / "killed.store";
  for (const std::vector<std::string>& which :
       {std::vector<std::string>{"--segment", "1"}, std::vector<std::string>{"--rows", *folder_ / "few"}}) {
    write_file(*folder_ / "few", "5\n15999\n");
    std::vector<std::string> words = {"remove", store, "-q"};
    words.insert(words.end(), which.begin(), which.end());
    copy_store(*folder_ / "both.store", store);
    ASSERT_EQ(linblock(words).exit_code, 0);
    const uint64_t after = contents_of(store);
    const auto judge = [&](bool killed) {
      const uint64_t found = contents_of(store);
      ASSERT_TRUE(found == after || (killed && found == both_));
    };
    kill_often(
        words, kills_a_test() / 6 + 1, [&] { copy_store(*folder_ / "both.store", store); }, judge);
  }
}

// --- two at once
// -------------------------------------------------------------------------------------------------------

// A command that reads a pipe, has read a row from it, and is at work until the test lets it end.
class Waiting {
 public:
  Waiting(const std::string& fifo, std::vector<std::string> words) {
    if (::mkfifo(fifo.c_str(), 0600) != 0) throw std::runtime_error("cannot make a pipe");
    pipe_ = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);  // for both ends, so that no open ever waits
    const std::string row = "1 1:1 # long enough for its first bytes to be looked at\n";
    if (::write(pipe_, row.data(), row.size()) < 0) throw std::runtime_error("cannot write to the pipe");
    words.push_back(fifo);
    process_.emplace(linblock_command(words));
    int unread = 1;
    for (int i = 0; i < 10000 && unread > 0; ++i) {
      ::ioctl(pipe_, FIONREAD, &unread);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (unread > 0) throw std::runtime_error("the pipe is not read: " + process_->errors_so_far());
  }
  ~Waiting() { close(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  Process& process() { return *process_; }
  void close() {
    if (pipe_ >= 0) ::close(std::exchange(pipe_, -1));
  }
  Ended end() {
    close();
    return process_->wait(10);
  }

 private:
  std::optional<Process> process_;
  int pipe_ = -1;
};

class TwoAtOnce : public ::testing::Test {
 protected:
  const Folder folder_;
  const std::string store_ = folder_ / "store";
};

TEST_F(TwoAtOnce, ASecondPackOfTheSameStoreIsRefused) {
  Waiting first(folder_ / "pipe", {"pack", "-o", store_, "-q"});
  write_file(folder_ / "data.svm", "1 2:1\n");
  const Ended second = linblock({"pack", folder_ / "data.svm", "-o", store_, "-q"});
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_TRUE(contains(second.errors, "process " + std::to_string(first.process().pid()))) << second.errors;
  const Ended ended = first.end();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(verified_rows(store_).size(), 1U);
}

TEST_F(TwoAtOnce, ASecondAppendIsRefusedAndReadersAreNot) {
  const auto rows = sample_rows(100);
  pack_rows(rows, store_, small_options());
  Waiting first(folder_ / "pipe", {"append", "-q", store_});
  write_file(folder_ / "data.svm", "1 2:1\n");
  const Ended second = linblock({"append", store_, folder_ / "data.svm", "-q"});
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_TRUE(contains(second.errors, "process " + std::to_string(first.process().pid()))) << second.errors;
  EXPECT_EQ(linblock({"verify", store_, "-q"}).exit_code, 0);
  EXPECT_EQ(linblock({"info", store_}).exit_code, 0);
  EXPECT_EQ(linblock({"unpack", store_, "-o", folder_ / "text", "-q"}).exit_code, 0);
  EXPECT_TRUE(read_file(folder_ / "text") == text_of(rows));
  EXPECT_EQ(verified_rows(store_), rows);
  const Ended ended = first.end();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(verified_rows(store_).size(), 101U);
}

TEST_F(TwoAtOnce, AKilledWriterHoldsNoLock) {
  {
    Waiting first(folder_ / "pipe", {"pack", "-o", store_, "-q"});
    first.process().kill();
    first.process().wait();
  }
  write_file(folder_ / "data.svm", "1 2:1\n");
  const Ended second = linblock({"pack", folder_ / "data.svm", "-o", store_, "-q"});
  EXPECT_EQ(second.exit_code, 0) << second.errors;
}

TEST_F(TwoAtOnce, AnInterruptedPackEndsWith130AndLeavesNothing) {
  Waiting first(folder_ / "pipe", {"pack", "-o", store_, "-q"});
  first.process().kill(SIGINT);
  const Ended ended = first.end();
  EXPECT_EQ(ended.exit_code, 130) << ended.errors;
  EXPECT_FALSE(std::filesystem::exists(store_));
  EXPECT_FALSE(std::filesystem::exists(store_ + ".partial"));
}

// Whoever waits at a pipe can be interrupted, data or no data.
TEST_F(TwoAtOnce, APackThatWaitsForDataCanBeInterrupted) {
  Waiting first(folder_ / "pipe", {"pack", "-o", store_, "-q"});
  first.process().kill(SIGINT);
  const Ended ended = first.process().wait(2);  // the pipe stays open
  EXPECT_EQ(ended.exit_code, 130) << "signal " << ended.signal;
}

// A named pipe is opened once: whoever writes to it would die of a reader that goes away and comes back.
TEST_F(TwoAtOnce, AWriterToANamedPipeIsReadToItsEnd) {
  const std::string fifo = folder_ / "pipe";
  for (int attempt = 0; attempt < 10; ++attempt) {
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    Process writer({"/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo \"1 $i:1\"; done > " + fifo});
    Process reader(linblock_command({"pack", fifo, "-o", store_, "-q"}));
    const Ended read = reader.wait(2);
    ASSERT_EQ(read.exit_code, 0) << "attempt " << attempt << ", signal " << read.signal << " " << read.errors;
    EXPECT_EQ(writer.wait(2).signal, 0);
    EXPECT_EQ(verified_rows(store_).size(), 9U);
    std::filesystem::remove_all(store_);
    std::filesystem::remove(fifo);
  }
}

}  // namespace
}  // namespace linblock::test
