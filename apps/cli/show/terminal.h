// What a person sees: sentences and progress on stderr. Data and --json go to stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace linblock::cli {

class Terminal {
 public:
  Terminal();

  void set_quiet(bool quiet) { quiet_ = quiet; }
  bool quiet() const { return quiet_; }
  // A sentence on stderr, unless -q; on a terminal wrapped at words.
  void say(std::string_view sentence) const;
  // One of many lines that say how work goes on. Off a terminal at most one appears per second, with the time of day:
  // the first, and always the last before the next sentence.
  void log(std::string_view line) const;
  // A command to copy: it stays on one line.
  void offer(std::string_view command) const;
  // An error always appears.
  void complain(std::string_view sentence) const;
  // The line at the bottom of a terminal, cut to its width; empty: it goes away.
  void show_line(std::string_view line) const;
  bool is_terminal() const { return is_terminal_; }
  bool colors() const { return colors_; }

 private:
  using Clock = std::chrono::steady_clock;

  size_t width() const;
  // What must be on the screen before anything else is.
  void finish_lines() const;
  void put_wrapped(std::string_view prefix, std::string_view sentence) const;

  bool quiet_ = false;
  bool is_terminal_ = false;
  bool colors_ = false;
  mutable bool has_line_ = false;  // at the bottom
  mutable std::string waiting_ = {};
  mutable std::optional<Clock::time_point> logged_ = {};
};

// A line of parts with ", " between them: those that fit.
std::string fitting(std::string_view line, size_t width);

// A bar with rate and time left on a terminal, a plain line every few seconds elsewhere. Nothing for quick work.
class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, std::string doing);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // A share of the whole, and words behind it.
  void show(double share, const std::string& words);
  // total 0: not known. `detail` follows the rate, such as "1,200,000 rows".
  void update(uint64_t done, uint64_t total, const std::string& detail);
  void finish();
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool due();
  void write(const std::string& line);
  std::string bar(double share) const;

  const Terminal& terminal_;
  std::string doing_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  bool shown_ = false;
};

// "3 min 07 s"
std::string duration(double seconds);
// "94.87%": of rows.
std::string percent(double share);

}  // namespace linblock::cli
