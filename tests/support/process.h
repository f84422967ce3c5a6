// The linblock binary as a child process: run, kill, watch what it holds.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/folder.h"

namespace linblock::test {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Ended {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  uint64_t peak_bytes = 0;               // wait4's ru_maxrss: counts what the parent held when it forked
  std::map<std::string, uint64_t> held;  // at the end, from /proc/PID/status, in bytes: VmHWM, RssAnon, RssFile
  std::string errors;                    // stderr
};

// Killed when destroyed, if it still runs.
class Process {
 public:
  struct Options {
    bool watch_memory = false;  // fill in Ended::held: the process stops for a moment when it ends
    std::string cgroup_tasks;   // the file that a process id is written to, to be put into a memory cgroup
  };

  explicit Process(const std::vector<std::string>& words) : Process(words, Options()) {}
  Process(const std::vector<std::string>& words, const Options& options) : watched_(options.watch_memory) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const std::string errors = folder_ / "stderr";
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ > 0) return;
    // The child: only calls that are safe between fork and exec.
    const int file = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, 0);
    ::dup2(nothing, 1);
    ::dup2(file, 2);
    if (!options.cgroup_tasks.empty()) {
      const int tasks = ::open(options.cgroup_tasks.c_str(), O_WRONLY);
      if (tasks < 0 || ::write(tasks, "0", 1) != 1) ::_exit(99);
    }
    if (watched_) ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(98);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal = SIGKILL) const { ::kill(pid_, signal); }
  std::string errors_so_far() const { return read_file(folder_ / "stderr"); }

  // Kills it where it takes longer than `limit_seconds`.
  Ended wait(double limit_seconds = 60) {
    Ended ended;
    int status = 0;
    rusage usage{};
    bool begun = false;
    const Clock::time_point begin = Clock::now();
    while (true) {
      const pid_t changed = ::wait4(pid_, &status, WNOHANG, &usage);
      if (changed < 0) throw std::runtime_error("cannot wait");
      if (changed == 0) {
        if (seconds_since(begin) > limit_seconds) ::kill(pid_, SIGKILL);
        std::this_thread::sleep_for(std::chrono::microseconds(500));
        continue;
      }
      if (!WIFSTOPPED(status)) break;
      // Stops of a watched process: at exec (where the watch for its end is set up), at its end, and at signals.
      const int pass_on = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
      if (!begun) ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACEEXIT);
      begun = true;
      if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8))) ended.held = memory_of(pid_);
      ::ptrace(PTRACE_CONT, pid_, nullptr, pass_on);
    }
    if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    ended.errors = errors_so_far();
    pid_ = -1;
    return ended;
  }

 private:
  static std::map<std::string, uint64_t> memory_of(pid_t pid) {
    std::map<std::string, uint64_t> held;
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
      const size_t colon = line.find(':');
      if (line.starts_with("Vm") || line.starts_with("Rss"))
        held[line.substr(0, colon)] = std::stoull(line.substr(colon + 1)) * 1024;
    }
    return held;
  }

  const Folder folder_;
  bool watched_;
  pid_t pid_ = -1;
};

inline Ended run(const std::vector<std::string>& words) { return Process(words).wait(); }

inline std::vector<std::string> linblock_command(const std::vector<std::string>& words) {
  std::vector<std::string> all = {LINBLOCK_BINARY};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// Half of LINBLOCK_KILLS, which pack and append share; the ways of training share as many as one of them takes.
inline int kills_a_test() {
  const char* asked = std::getenv("LINBLOCK_KILLS");
  return std::max(1, (asked == nullptr ? 100 : std::atoi(asked)) / 2);
}

inline Ended linblock(const std::vector<std::string>& words) { return run(linblock_command(words)); }

}  // namespace linblock::test
