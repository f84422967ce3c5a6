// The N-th file call fails, for every N: an error that says so, and the state before or after, nothing in between.
#include <gtest/gtest.h>

#include <cerrno>

#include "support/damage.h"
#include "support/file_hooks.h"
#include "support/memory_folder.h"

namespace linblock::test {
namespace {

struct Fault {
  size_t threads;
  int error;
  bool later_calls_too;
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  return out << fault.threads << " threads, " << (fault.error == EIO ? "EIO" : "ENOSPC")
             << (fault.later_calls_too ? " from then on" : " once");
}

class EveryCall : public ::testing::TestWithParam<Fault> {
 protected:
  EveryCall() {
    // Two pieces of text, several chunks, weights.
    write_file(folder_ / "first.svm", text_of(first_));
    write_file(folder_ / "first.weights", weights_of(first_));
    write_file(folder_ / "second.svm", text_of(second_));
    EXPECT_GT(std::filesystem::file_size(folder_ / "first.svm"), 128 * 1024U);  // a piece holds no more
  }

  PackOptions options() const { return small_options("lz4", GetParam().threads); }
  void pack_first(const std::string& path) {
    PackOptions weighted = options();
    weighted.weights = folder_ / "first.weights";
    pack({folder_ / "first.svm"}, path, weighted);
  }
  void append_second(const std::string& path) { append({folder_ / "second.svm"}, path, options()); }

  // Calls `attempt` with its N-th file call failing, for N = 1, 2, ... until it no longer makes so many; `judge` says
  // what is wrong with what each failure has left, or nothing. Returns how many calls there were.
  template <typename Attempt, typename Judge>
  uint64_t for_every_call(Attempt&& attempt, Judge&& judge) {
    std::string wrong;
    for (uint64_t number = 1;; ++number) {
      FailingCall failing(number, GetParam().error, GetParam().later_calls_too);
      std::optional<Error> error;
      {
        const ScopedHook hook(std::ref(failing));
        error = error_of(attempt);
      }
      if (!failing.happened()) {
        EXPECT_FALSE(error.has_value()) << error->what();
        EXPECT_EQ(wrong, "");
        return number - 1;
      }
      std::string why = judge(failing.call());
      if (!error)
        why += ", and no error";
      else if (error->kind() != ErrorKind::io)
        why += std::string(", and an error of another kind: ") + error->what();
      else if (contains(error->what(), "disk is full") != (GetParam().error == ENOSPC))
        why += std::string(", and another reason: ") + error->what();
      std::ostringstream line;
      line << "call " << number << ", " << failing.call() << ": " << why << "\n";
      if (!why.empty()) wrong += line.str();
    }
  }

  // Empty where a store of these rows is there and well.
  static std::string missing(const std::vector<OwnedRow>& rows, const std::string& path) {
    try {
      return verified_rows(path) == rows ? "" : "other rows";
    } catch (const Error& error) {
      return error.what();
    }
  }

  // The last call of pack: the store is whole by then.
  bool makes_the_name_durable(const FileCall& call) const {
    return call.kind == FileCall::Kind::sync_directory && call.path == folder_.path();
  }

  const MemoryFolder folder_;
  const std::string store_ = folder_ / "store";
  const std::vector<OwnedRow> first_ = sample_rows(1300, 1, 0, 400, true);
  const std::vector<OwnedRow> second_ = sample_rows(400, 2, 1300, 500);
};

TEST_P(EveryCall, FailingInPackLeavesNothingAndTheNextTrySucceeds) {
  const auto judge = [&](const FileCall& call) -> std::string {
    std::string wrong = makes_the_name_durable(call) ? missing(first_, store_) : "";
    if (makes_the_name_durable(call)) std::filesystem::remove_all(store_);
    if (std::filesystem::exists(store_)) return "something is left";
    pack_first(store_);
    wrong += missing(first_, store_);
    std::filesystem::remove_all(store_);
    return wrong;
  };
  EXPECT_GT(for_every_call([&] { pack_first(store_); }, judge), 50U);
  EXPECT_EQ(missing(first_, store_), "");
}

TEST_P(EveryCall, FailingInAppendLeavesTheOldStoreAndTheNextTrySucceeds) {
  const std::string old = folder_ / "old";
  pack_first(old);
  copy_store(old, store_);
  const auto both = joined(first_, second_);
  const auto judge = [&](const FileCall& call) {
    // MANIFEST may have its name already, and only the folder is not synced.
    const bool may_be_new = call.kind == FileCall::Kind::sync_directory && missing(both, store_).empty();
    std::string wrong = may_be_new ? "" : missing(first_, store_);
    if (!may_be_new && wrong.empty()) {
      append_second(store_);
      wrong += missing(both, store_);
    }
    copy_store(old, store_);
    return wrong;
  };
  EXPECT_GT(for_every_call([&] { append_second(store_); }, judge), 25U);
  EXPECT_EQ(missing(both, store_), "");
}

TEST_P(EveryCall, FailingInAReaderIsAnErrorAndHarmless) {
  pack_first(store_);
  append_second(store_);
  const auto both = joined(first_, second_);
  const auto read_all = [&] {
    const Store store = Store::open(store_);
    verify(store, GetParam().threads);
    EXPECT_TRUE(rows_in_order(store) == both);
    RowBlock block;
    store.gather(std::vector<uint64_t>{1, 50, 1400}, block);
  };
  EXPECT_GT(for_every_call(read_all, [&](const FileCall&) { return missing(both, store_); }), 25U);
}

std::string name_of_fault(const ::testing::TestParamInfo<Fault>& fault) {
  return std::string(fault.param.error == EIO ? "Eio" : "Enospc") +
         (fault.param.later_calls_too ? "FromThenOn" : "Once") + "On" + std::to_string(fault.param.threads) + "Threads";
}

INSTANTIATE_TEST_SUITE_P(Store, EveryCall,
                         ::testing::Values(Fault{1, EIO, false}, Fault{1, EIO, true}, Fault{2, EIO, false},
                                           Fault{2, EIO, true}, Fault{1, ENOSPC, false}, Fault{2, ENOSPC, true}),
                         name_of_fault);

// --- where files can still be removed after the failure, nothing is left lying about -------------------------------

class OneFailingCall : public EveryCall {};

TEST_P(OneFailingCall, InPackLeavesNoFiles) {
  const auto before = names_in(folder_.path());
  const auto judge = [&](const FileCall& call) {
    if (makes_the_name_durable(call)) std::filesystem::remove_all(store_);
    const auto now = names_in(folder_.path());
    std::filesystem::remove_all(store_ + ".partial");
    return now == before ? "" : "left: " + ::testing::PrintToString(now);
  };
  for_every_call([&] { pack_first(store_); }, judge);
}

TEST_P(OneFailingCall, InAppendLeavesNoFiles) {
  const std::string old = folder_ / "old";
  pack_first(old);
  copy_store(old, store_);
  const auto before = files_of(old);
  const auto judge = [&](const FileCall& call) {
    const bool may_be_new =
        call.kind == FileCall::Kind::sync_directory && missing(joined(first_, second_), store_).empty();
    const bool clean = may_be_new || files_of(store_) == before;
    const auto now = names_in(store_);
    copy_store(old, store_);
    return clean ? "" : "left: " + ::testing::PrintToString(now);
  };
  for_every_call([&] { append_second(store_); }, judge);
}

INSTANTIATE_TEST_SUITE_P(Store, OneFailingCall, ::testing::Values(Fault{1, EIO, false}, Fault{2, ENOSPC, false}),
                         name_of_fault);

// --- calls that move less than asked -----------------------------------------------------------------------------

TEST(ShortCalls, GiveTheSameStoreAndTheSameRows) {
  const Folder folder;
  make_small_store(folder / "plain", "zstd");
  for (const uint64_t bytes : {1, 7, 1000}) {
    const std::string path = folder / ("short" + std::to_string(bytes));
    {
      const ScopedHook hook([&](const FileCall&) { return FileVerdict{.shortened_to = bytes}; });
      const auto rows = make_small_store(path, "zstd");
      EXPECT_EQ(verified_rows(path), rows);
    }
    EXPECT_TRUE(files_of(path) == files_of(folder / "plain")) << bytes << " bytes a call";
  }
}

TEST(ShortCalls, OfCompressedInputGiveTheSameRows) {
  const Folder folder;
  const auto rows = sample_rows(2000);
  write_file(folder / "data.svm", text_of(rows));
  ASSERT_EQ(std::system(("gzip -k " + (folder / "data.svm")).c_str()), 0);
  const ScopedHook hook([](const FileCall&) { return FileVerdict{.shortened_to = 333}; });
  pack({folder / "data.svm.gz"}, folder / "store", small_options());
  EXPECT_EQ(verified_rows(folder / "store"), rows);
}

TEST(ShortCalls, InterruptedBySignalsAreTriedAgain) {
  const Folder folder;
  std::atomic<uint64_t> calls = 0;
  const ScopedHook hook([&](const FileCall& call) {
    const bool moves = call.kind == FileCall::Kind::read || call.kind == FileCall::Kind::write;
    return FileVerdict{.error = moves && ++calls % 2 == 1 ? EINTR : 0};
  });
  const auto rows = make_small_store(folder / "store", "none");
  EXPECT_EQ(verified_rows(folder / "store"), rows);
  EXPECT_GT(calls, 20U);
}

}  // namespace
}  // namespace linblock::test
