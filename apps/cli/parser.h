// Commands, their options and arguments. CLI11 is behind this one file: its headers cost seconds wherever they are
// read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/option.h"

namespace CLI {
class App;
}

namespace linblock::cli {

// One command. What it writes to must live until the command has run.
class Command {
 public:
  using Set = std::function<void(const std::string&)>;

  Command(CLI::App& app, bool wanted, bool shows_all) : app_(&app), wanted_(wanted), shows_all_(shows_all) {}

  // In which help an option stands.
  enum class Shown { always, in_all };

  // Only the command that is called declares its options: those of all commands would take a megabyte.
  bool wanted() const { return wanted_; }

  // Required, by their place.
  void argument(const std::string& name, const std::string& help, std::string& to);
  void arguments(const std::string& name, const std::string& help, std::vector<std::string>& to);
  void optional_arguments(const std::string& name, const std::string& help, std::vector<std::string>& to);

  // `names`: "-o,--output". `value`: what stands for a value in help.
  void option(const std::string& names, const std::string& value, const std::string& help, std::string& to);
  void option(const std::string& names, const std::string& value, const std::string& help, const Set& set);
  void required(const std::string& names, const std::string& value, const std::string& help, std::string& to);
  // May be given several times.
  void repeated(const std::string& names, const std::string& value, const std::string& help,
                std::vector<std::string>& to);
  void flag(const std::string& names, const std::string& help, bool& to);
  void flag(const std::string& names, const std::string& help, const std::function<void()>& set);

  // Options of a table: cache_fraction is --cache-fraction. `group`: their heading in help.
  void setting(const Setting& setting, const std::string& group = {}, Shown shown = Shown::always);
  void settings(const std::vector<Setting>& table, const std::string& group = {}, Shown shown = Shown::always);
  // A flag for the help in which all of them stand.
  void offer_all_options();
  // Of the options so far: not both.
  void exclude(const std::string& flag, const std::string& other);

  void examples(const std::string& text);
  void run(const std::function<void()>& work);

  bool given(const std::string& flag) const;
  // Options in the order of their declaration, with their values: {"--loss", "hinge"}, {"--free-bias", ""}.
  std::vector<std::pair<std::string, std::string>> given_values() const;

 private:
  CLI::App* app_;
  bool wanted_;
  bool shows_all_;
};

class Parser {
 public:
  // `command`: the one that is called; empty: every command declares its options. `shows_all`: help has all of them.
  Parser(std::string command, const std::string& footer, bool shows_all);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Command add(const std::string& name, const std::string& help);
  // What the words alone decide: an exit code, and what is wrong with them.
  struct Outcome {
    int code = 0;
    std::string mistake = {};
  };
  // Runs the command that the words name, or prints its help.
  Outcome parse(int count, char** words);
  // Every command with its arguments and options: documentation is made of it.
  Json describe() const;

 private:
  std::string command_;
  bool shows_all_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace linblock::cli
