#include "cli/show/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/bytes.h"
#include "cli/show/words.h"

namespace linblock::cli {

namespace {

constexpr double kBarInterval = 0.1;
constexpr double kLineInterval = 5;
constexpr double kQuickWork = 1;  // shown only when it takes longer
constexpr int kBarWidth = 16;
constexpr size_t kUsualWidth = 80;
constexpr size_t kIndent = 2;       // of a wrapped line
constexpr double kLogInterval = 1;  // seconds

// A log on a full disk, or one that nobody reads any more, does not end the work that it tells of.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

Terminal::Terminal()
    : is_terminal_(::isatty(STDERR_FILENO) != 0), colors_(is_terminal_ && std::getenv("NO_COLOR") == nullptr) {}

size_t Terminal::width() const {
  winsize size{};
  return is_terminal_ && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

void Terminal::finish_lines() const {
  if (has_line_) put("\r\033[K");
  has_line_ = false;
  if (!waiting_.empty()) put(waiting_);
  waiting_.clear();
}

// A line that begins with a blank is a place in a text, and stays as it is.
void Terminal::put_wrapped(std::string_view prefix, std::string_view sentence) const {
  finish_lines();
  std::string text(prefix);
  while (!sentence.empty()) {
    const size_t end = std::min(sentence.find('\n'), sentence.size());
    const std::string_view line = sentence.substr(0, end);
    text += is_terminal_ && !line.starts_with(' ') ? wrapped(line, width() - 1 - kIndent, kIndent) : std::string(line);
    text += '\n';
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  put(text);
}

void Terminal::say(std::string_view sentence) const {
  if (!quiet_) put_wrapped("", sentence);
}

void Terminal::log(std::string_view line) const {
  if (quiet_) return;
  if (is_terminal_) return put_wrapped("", line);
  const Clock::time_point now = Clock::now();
  waiting_ = fmt::format("{} {}\n", time_of_day(), line);
  if (logged_ && std::chrono::duration<double>(now - *logged_).count() < kLogInterval) return;
  logged_ = now;
  finish_lines();
}

void Terminal::offer(std::string_view command) const {
  if (quiet_) return;
  finish_lines();
  put(fmt::format("next: {}\n", command));
}

void Terminal::complain(std::string_view sentence) const {
  put_wrapped(colors_ ? "\033[1;31merror:\033[0m " : "error: ", sentence);
}

void Terminal::show_line(std::string_view line) const {
  if (line.empty()) {
    if (has_line_) finish_lines();
    return;
  }
  if (!has_line_) finish_lines();
  put(fmt::format("\r\033[K{}", fitting(line, width() - 1)));
  has_line_ = true;
}

std::string fitting(std::string_view line, size_t width) {
  if (line.size() <= width) return std::string(line);
  const size_t end = line.substr(0, width + 1).rfind(", ");
  return std::string(line.substr(0, end == std::string_view::npos ? width : end));
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
    terminal_.show_line(line);
  else
    terminal_.log(line);
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
  if (total > done && rate > 0) line += fmt::format(", {} left", duration(static_cast<double>(total - done) / rate));
  write(line + fmt::format(", {}, {}/s, {}", human_bytes(done), human_bytes(static_cast<uint64_t>(rate)), detail));
}

void ProgressBar::finish() {
  if (shown_) terminal_.show_line("");
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
