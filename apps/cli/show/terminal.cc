#include "cli/show/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/bytes.h"

namespace linblock::cli {

namespace {

constexpr double kBarInterval = 0.1;
constexpr double kLineInterval = 5;
constexpr double kQuickWork = 1;  // shown only when it takes longer
constexpr int kBarWidth = 28;

// A log on a full disk, or one that nobody reads any more, does not end the work that it tells of.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Terminal::Terminal()
    : is_terminal_(::isatty(STDERR_FILENO) != 0), colours_(is_terminal_ && std::getenv("NO_COLOR") == nullptr) {}

void Terminal::say(std::string_view sentence) const {
  if (!quiet_) put(fmt::format("{}\n", sentence));
}

void Terminal::complain(std::string_view sentence) const {
  put(fmt::format("{}error:{} {}\n", colours_ ? "\033[1;31m" : "", colours_ ? "\033[0m" : "", sentence));
}

ProgressBar::ProgressBar(const Terminal& terminal, std::string doing) : terminal_(terminal), doing_(std::move(doing)) {}

ProgressBar::~ProgressBar() { finish(); }

bool ProgressBar::due() {
  if (terminal_.quiet()) return false;
  const Clock::time_point now = Clock::now();
  const double interval = terminal_.is_terminal() ? kBarInterval : kLineInterval;
  if (seconds() < kQuickWork || std::chrono::duration<double>(now - last_).count() < interval) return false;
  last_ = now;
  return true;
}

void ProgressBar::write(const std::string& line) {
  if (terminal_.is_terminal())
    put(fmt::format("\r\033[K{}", line));
  else
    put(fmt::format("{}\n", line));
  shown_ = true;
}

std::string ProgressBar::bar(double share) const {
  share = std::clamp(share, 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarWidth);
  std::string text;
  if (terminal_.is_terminal())
    text = fmt::format(" [{}{}]", std::string(static_cast<size_t>(filled), '#'),
                       std::string(static_cast<size_t>(kBarWidth - filled), '.'));
  return text + fmt::format(" {:.0f}%", 100 * share);
}

void ProgressBar::show(double share, const std::string& words) {
  if (due()) write(doing_ + bar(share) + ", " + words);
}

void ProgressBar::update(uint64_t done, uint64_t total, const std::string& detail) {
  if (!due()) return;
  const double rate = static_cast<double>(done) / seconds();
  std::string line = doing_;
  if (total > 0) line += bar(static_cast<double>(done) / static_cast<double>(total));
  line += fmt::format(", {}, {}/s, {}", human_bytes(done), human_bytes(static_cast<uint64_t>(rate)), detail);
  if (total > done && rate > 0) line += fmt::format(", {} left", duration(static_cast<double>(total - done) / rate));
  write(line);
}

void ProgressBar::finish() {
  if (shown_ && terminal_.is_terminal()) put("\r\033[K");
  shown_ = false;
}

double ProgressBar::seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

std::string duration(double seconds) {
  const long whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

}  // namespace linblock::cli
