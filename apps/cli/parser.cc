#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "base/version.h"
#include "cli/show/words.h"
#include "cli/suggest.h"

namespace linblock::cli {

namespace {

constexpr int kUsage = 2;
// A group that help passes over. CLI11's own way to hide an option takes its name from error messages too.
constexpr const char* kHidden = "hidden";
constexpr const char* kHelpAll = "--help-all";

// "-o MODEL (or --output) is required: the model to write"
std::string required_words(const CLI::Option& option) {
  std::string name = option.get_name();
  if (!option.get_snames().empty())
    name = fmt::format("-{} {} (or {})", option.get_snames().front(), option.get_type_name(), name);
  std::string what = option.get_description();
  if (!what.empty()) what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  return fmt::format("{} is required: {}", name, what);
}

// All of them at once, each with what was probably meant.
std::string unknown_options(const std::string& command, const std::vector<std::string>& known, int count,
                            char** words) {
  std::vector<std::string> sentences;
  for (int i = 1; i < count; ++i) {
    const std::string typed(words[i], std::strcspn(words[i], "="));
    if (typed == "--") break;
    const bool is_option =
        typed.size() > 1 && typed[0] == '-' && (std::isdigit(static_cast<unsigned char>(typed[1])) == 0);
    if (!is_option || std::find(known.begin(), known.end(), typed) != known.end()) continue;
    std::string sentence = fmt::format("{} has no option {}", command, typed);
    const std::string meant = nearest(typed, known);
    if (const auto equivalent = equivalent_of(typed, i + 1 < count ? words[i + 1] : ""))
      sentence += ": " + *equivalent;
    else if (!meant.empty() && typed.starts_with("--"))
      sentence += fmt::format(": did you mean {}?", meant);
    sentences.push_back(sentence);
  }
  return fmt::format("{}", fmt::join(sentences, "\n"));
}

// CLI11's message, and the option or command that was probably meant.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int count, char** words) {
  const CLI::App* command = &app;
  std::string name = "linblock";
  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands({})) commands.push_back(sub->get_name());
  if (count > 1 && words[1][0] != '-') {
    if (std::find(commands.begin(), commands.end(), words[1]) == commands.end()) {
      const std::string meant = nearest(words[1], commands);
      return fmt::format("'{}' is not a command{}\nSee 'linblock --help' for the list.", words[1],
                         meant.empty() ? "." : fmt::format(": did you mean '{}'?", meant));
    }
    command = app.get_subcommand(words[1]);
    name += std::string(" ") + words[1];
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& known : option->get_lnames()) options.push_back("--" + known);
    for (const std::string& known : option->get_snames()) options.push_back("-" + known);
  }
  std::string sentence = error.what();
  for (const CLI::Option* option : command->get_options())
    if (error.get_name() == "RequiredError" && sentence == option->get_name() + " is required")
      sentence = required_words(*option);
  const std::string unknown = unknown_options(name, options, count, words);
  if (!unknown.empty()) sentence = unknown;
  return fmt::format("{}\nSee '{} --help'.", sentence, name);
}

// "Stop after N passes (default: 1000)"
std::string help_of(const Setting& setting) {
  std::string help(setting.help);
  if (setting.is_flag || setting.standard.empty() || help.find("(default:") != std::string::npos) return help;
  return fmt::format("{} (default: {})", help, setting.standard);
}

// Help that fits 80 columns: what an option does is wrapped at words, beside its name.
class Narrow : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option),
                 kOptionWidth);
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kHidden) return {};
    const bool is_first = is_positional || group == "Options";
    std::string text = fmt::format("{}{}:\n", is_first ? "\n" : "", group);
    for (const CLI::Option* option : options) text += make_option(option, is_positional);
    return text;
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description(), kCommandWidth);
  }

 private:
  static constexpr size_t kHelpWidth = 80;
  static constexpr size_t kOptionWidth = 28;
  static constexpr size_t kCommandWidth = 13;

  static std::string entry(const std::string& name, const std::string& help, size_t width) {
    std::string text = "  " + name;
    if (help.empty()) return text + "\n";
    if (text.size() + 1 > width)
      text += '\n' + std::string(width, ' ');
    else
      text.resize(width, ' ');
    return text + wrapped(help, kHelpWidth - width, width) + "\n";
  }
};

Json describe(const CLI::App& command) {
  Json options = Json::array();
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() == "--help" || option->get_name() == kHelpAll) continue;
    options.push_back({{"name", option->get_name(true, true)},
                       {"value", option->get_items_expected_max() == 0 ? "" : option->get_type_name()},
                       {"group", option->get_group()},
                       {"required", option->get_required()},
                       {"help", option->get_description()}});
  }
  return {{"command", command.get_name()}, {"help", command.get_description()}, {"options", options}};
}

}  // namespace

void Command::argument(const std::string& name, const std::string& help, std::string& to) {
  app_->add_option(name, to, help)->required()->type_name("");
}

void Command::arguments(const std::string& name, const std::string& help, std::vector<std::string>& to) {
  app_->add_option(name, to, help)->required()->type_name("");
}

void Command::optional_arguments(const std::string& name, const std::string& help, std::vector<std::string>& to) {
  app_->add_option(name, to, help)->type_name("");
}

void Command::option(const std::string& names, const std::string& value, const std::string& help, std::string& to) {
  app_->add_option(names, to, help)->type_name(value);
}

void Command::option(const std::string& names, const std::string& value, const std::string& help, const Set& set) {
  app_->add_option_function<std::string>(names, set, help)->type_name(value);
}

void Command::required(const std::string& names, const std::string& value, const std::string& help, std::string& to) {
  app_->add_option(names, to, help)->required()->type_name(value);
}

void Command::repeated(const std::string& names, const std::string& value, const std::string& help,
                       std::vector<std::string>& to) {
  app_->add_option(names, to, help)->type_name(value)->allow_extra_args(false);
}

void Command::flag(const std::string& names, const std::string& help, bool& to) { app_->add_flag(names, to, help); }

void Command::flag(const std::string& names, const std::string& help, const std::function<void()>& set) {
  app_->add_flag_callback(names, set, help);
}

void Command::setting(const Setting& setting, const std::string& group, Shown shown) {
  const std::string flag = as_flag(setting.name);
  const auto take = [setting, flag](const std::string& text) {
    if (const std::string wrong = setting.set(text); !wrong.empty()) fail(ErrorKind::usage, "{} {}", flag, wrong);
  };
  CLI::Option* option = nullptr;
  if (setting.is_flag) {
    option = app_->add_flag_callback(
        flag, [take] { take("true"); }, help_of(setting));
  } else if (setting.repeats) {
    option = app_->add_option_function<std::vector<std::string>>(
                     flag,
                     [take](const std::vector<std::string>& texts) {
                       std::string all;
                       for (const std::string& text : texts) all += (all.empty() ? "" : ",") + text;
                       take(all);
                     },
                     help_of(setting))
                 ->type_name(std::string(setting.value))
                 ->allow_extra_args(false);  // what follows the value is INPUT
  } else {
    option =
        app_->add_option_function<std::string>(flag, take, help_of(setting))->type_name(std::string(setting.value));
  }
  if (shown == Shown::in_all && !shows_all_)
    option->group(kHidden);
  else if (!group.empty())
    option->group(group);
}

void Command::offer_all_options() {
  app_->add_flag_callback(
      kHelpAll, [] { throw CLI::CallForHelp(); }, "Show all options, those of each solver too");
}

void Command::settings(const std::vector<Setting>& table, const std::string& group, Shown shown) {
  for (const Setting& entry : table) setting(entry, group, shown);
}

void Command::exclude(const std::string& flag, const std::string& other) {
  app_->get_option(flag)->excludes(app_->get_option(other));
}

void Command::examples(const std::string& text) { app_->footer("Examples:\n" + text); }

void Command::run(const std::function<void()>& work) { app_->callback(work); }

bool Command::given(const std::string& flag) const { return app_->count(flag) > 0; }

std::vector<std::pair<std::string, std::string>> Command::given_values() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      for (const std::string& value : option->results())
        all.emplace_back("--" + option->get_lnames().front(), option->get_expected_max() == 0 ? "" : value);
  return all;
}

Parser::Parser(std::string command, const std::string& footer, bool shows_all)
    : command_(std::move(command)),
      shows_all_(shows_all || command_.empty()),
      app_(std::make_unique<CLI::App>("Train linear classifiers on data larger than memory, to a certified optimum.",
                                      "linblock")) {
  app_->set_version_flag("--version", fmt::format("linblock {}", kVersion));
  app_->require_subcommand(1);
  app_->formatter(std::make_shared<Narrow>());
  app_->footer(footer);
}

Parser::~Parser() = default;

Command Parser::add(const std::string& name, const std::string& help) {
  return {*app_->add_subcommand(name, help), command_.empty() || command_ == name, shows_all_};
}

Parser::Outcome Parser::parse(int count, char** words) {
  try {
    app_->parse(count, words);
  } catch (const CLI::CallForHelp& help) {
    if (app_->get_subcommands().empty() && count > 1 && words[1][0] != '-')
      return {.mistake = explain(*app_, help, count, words)};
    app_->exit(help);
  } catch (const CLI::CallForVersion& version) {
    app_->exit(version);
  } catch (const CLI::ParseError& error) {
    if (count > 1) return {.mistake = explain(*app_, error, count, words)};
    std::cout << app_->help() << std::flush;
    return {.code = kUsage};
  }
  return {};
}

Json Parser::describe() const {
  Json all = Json::array();
  for (const CLI::App* command : app_->get_subcommands({})) all.push_back(cli::describe(*command));
  return all;
}

}  // namespace linblock::cli
