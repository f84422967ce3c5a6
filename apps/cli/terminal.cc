#include "cli/terminal.h"

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

std::string duration(double seconds) {
  const long whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Terminal::Terminal()
    : is_terminal_(::isatty(STDERR_FILENO) != 0), colours_(is_terminal_ && std::getenv("NO_COLOR") == nullptr) {}

void Terminal::say(std::string_view sentence) const {
  if (!quiet_) fmt::print(stderr, "{}\n", sentence);
}

void Terminal::complain(std::string_view sentence) const {
  fmt::print(stderr, "{}error:{} {}\n", colours_ ? "\033[1;31m" : "", colours_ ? "\033[0m" : "", sentence);
}

ProgressBar::ProgressBar(const Terminal& terminal, std::string doing) : terminal_(terminal), doing_(std::move(doing)) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(uint64_t done, uint64_t total, const std::string& detail) {
  if (terminal_.quiet()) return;
  const Clock::time_point now = Clock::now();
  const double interval = terminal_.is_terminal() ? kBarInterval : kLineInterval;
  const double elapsed = seconds();
  if (elapsed < kQuickWork || std::chrono::duration<double>(now - last_).count() < interval) return;
  last_ = now;
  const double rate = static_cast<double>(done) / elapsed;
  std::string line = doing_;
  if (total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const int filled = static_cast<int>(share * kBarWidth);
    if (terminal_.is_terminal())
      line += fmt::format(" [{}{}]", std::string(static_cast<size_t>(filled), '#'),
                          std::string(static_cast<size_t>(kBarWidth - filled), '.'));
    line += fmt::format(" {:.0f}%", 100 * share);
  }
  line += fmt::format(", {} read, {}/s, {}", human_bytes(done), human_bytes(static_cast<uint64_t>(rate)), detail);
  if (total > done && rate > 0) line += fmt::format(", {} left", duration(static_cast<double>(total - done) / rate));
  if (terminal_.is_terminal())
    fmt::print(stderr, "\r\033[K{}", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::finish() {
  if (shown_ && terminal_.is_terminal()) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

double ProgressBar::seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

std::string grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace linblock::cli
