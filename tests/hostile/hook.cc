// Linked into `linblock_hooked`, a program for tests: LINBLOCK_HOOK=ACTION:KIND:N breaks the N-th file call of a kind
// (0: every one). ACTION is kill, lose (success is reported and nothing is done) or an error such as ENOSPC; KIND is a
// name of FileCall::Kind or "any". LINBLOCK_HOOK_PATH=WORD breaks and counts only calls for files with this word in
// their path. With LINBLOCK_HOOK_COUNT=FILE, how many calls of each kind there were is written at exit.
// LINBLOCK_OWNERS=N makes each team cut its work for N owners, whatever the number of processors.
#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/file.h"

namespace linblock {

namespace {

constexpr std::array<const char*, 13> kKinds = {"open",  "create", "read",   "write",          "sync",
                                                "close", "rename", "remove", "make_directory", "sync_directory",
                                                "lock",  "list",   "link"};

struct Breaking {
  std::string action;
  std::string kind;
  std::string path;
  unsigned long number = 0;
  std::array<std::atomic<unsigned long>, kKinds.size()> counts = {};
  std::atomic<unsigned long> all = 0;

  static Breaking& instance() {
    static Breaking one;
    return one;
  }

  FileVerdict judge(const FileCall& call) {
    if (call.path.find(path) == std::string::npos) return {};
    const auto which = static_cast<size_t>(call.kind);
    const unsigned long count = ++counts[which];
    const unsigned long any = ++all;
    const bool meant = kind == "any" || kind == kKinds[which];
    if (!meant || (number != 0 && number != (kind == "any" ? any : count))) return {};
    if (action == "kill") ::raise(SIGKILL);
    if (action == "lose") return {.lost = true};
    if (action == "ENOSPC") return {.error = ENOSPC};
    if (action == "EDQUOT") return {.error = EDQUOT};
    return {.error = EIO};
  }
};

void write_counts() {
  std::FILE* file = std::fopen(std::getenv("LINBLOCK_HOOK_COUNT"), "w");
  if (file == nullptr) return;
  const Breaking& breaking = Breaking::instance();
  for (size_t i = 0; i < kKinds.size(); ++i) std::fprintf(file, "%s %lu\n", kKinds[i], breaking.counts[i].load());
  std::fclose(file);
}

// Before main().
const bool installed = [] {
  const char* hook = std::getenv("LINBLOCK_HOOK");
  const char* counting = std::getenv("LINBLOCK_HOOK_COUNT");
  if (hook == nullptr && counting == nullptr) return false;
  if (hook != nullptr) {
    const std::string text = hook;
    const size_t first = text.find(':');
    const size_t second = text.find(':', first + 1);
    if (second == std::string::npos) std::abort();
    Breaking& breaking = Breaking::instance();
    breaking.action = text.substr(0, first);
    breaking.kind = text.substr(first + 1, second - first - 1);
    breaking.number = std::strtoul(text.c_str() + second + 1, nullptr, 10);
    if (const char* path = std::getenv("LINBLOCK_HOOK_PATH")) breaking.path = path;
  }
  if (counting != nullptr) std::atexit(write_counts);
  set_file_hook([](const FileCall& call) { return Breaking::instance().judge(call); });
  return true;
}();

}  // namespace

}  // namespace linblock

// The linker leads calls of Team::Team(size_t threads, size_t owners) here (--wrap).
extern "C" {
void __real__ZN8linblock4TeamC1Emm(void* team, size_t threads, size_t owners);   // NOLINT: the linker's names
void __wrap__ZN8linblock4TeamC1Emm(void* team, size_t threads, size_t owners);   // NOLINT
void __wrap__ZN8linblock4TeamC1Emm(void* team, size_t threads, size_t owners) {  // NOLINT
  const char* const forced = std::getenv("LINBLOCK_OWNERS");
  __real__ZN8linblock4TeamC1Emm(team, threads,
                                owners == 0 && forced != nullptr ? std::strtoul(forced, nullptr, 10) : owners);
}
}
