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

// "-o MODEL (or --output) is required: the model to write"
std::string required_words(const CLI::Option& option) {
  std::string name = option.get_name();
  if (!option.get_snames().empty())
    name = fmt::format("-{} {} (or {})", option.get_snames().front(), option.get_type_name(), name);
  std::string what = option.get_description();
  if (!what.empty()) what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  return fmt::format("{} is required: {}", name, what);
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
  for (const CLI::Option* option : command->get_options())
    for (const std::string& known : option->get_lnames()) options.push_back("--" + known);
  std::string sentence = error.what();
  for (const CLI::Option* option : command->get_options())
    if (error.get_name() == "RequiredError" && sentence == option->get_name() + " is required")
      sentence = required_words(*option);
  for (int i = 1; i < count; ++i) {
    const std::string typed(words[i], std::strcspn(words[i], "="));
    if (typed.starts_with("--") && std::find(options.begin(), options.end(), typed) == options.end()) {
      const std::string meant = nearest(typed, options);
      sentence = fmt::format("{} has no option {}{}", name, typed,
                             meant.empty() ? "" : fmt::format(": did you mean {}?", meant));
      break;
    }
  }
  return fmt::format("{}\nSee '{} --help'.", sentence, name);
}

// "Stop after N passes (default: 1000)"
std::string help_of(const Setting& setting) {
  std::string help(setting.help);
  if (setting.is_flag || setting.standard.empty() || help.find("(default:") != std::string::npos) return help;
  return fmt::format("{} (default: {})", help, setting.standard);
}

Json describe(const CLI::App& command) {
  Json options = Json::array();
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() == "--help") continue;
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
  app_->add_option(names, to, help)->type_name(value)->expected(1);
}

void Command::flag(const std::string& names, const std::string& help, bool& to) { app_->add_flag(names, to, help); }

void Command::flag(const std::string& names, const std::string& help, const std::function<void()>& set) {
  app_->add_flag_callback(names, set, help);
}

void Command::setting(const Setting& setting, const std::string& group) {
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
                 ->type_name(std::string(setting.value));
  } else {
    option =
        app_->add_option_function<std::string>(flag, take, help_of(setting))->type_name(std::string(setting.value));
  }
  if (!group.empty()) option->group(group);
}

void Command::settings(const std::vector<Setting>& all, const std::string& group) {
  for (const Setting& one : all) setting(one, group);
}

void Command::exclude(const std::string& flag, const std::string& other) {
  app_->get_option(flag)->excludes(app_->get_option(other));
}

void Command::examples(const std::string& text) { app_->footer("\nExamples:\n" + text); }

void Command::run(const std::function<void()>& work) { app_->callback(work); }

bool Command::given(const std::string& flag) const { return app_->count(flag) > 0; }

std::vector<std::pair<std::string, std::string>> Command::given_values() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      for (const std::string& value : option->results()) all.emplace_back("--" + option->get_lnames().front(), value);
  return all;
}

Parser::Parser(std::string command, const std::string& footer)
    : command_(std::move(command)),
      app_(std::make_unique<CLI::App>(
          "linblock trains linear classifiers on data larger than memory, to a certified optimum.", "linblock")) {
  app_->set_version_flag("--version", fmt::format("linblock {}", kVersion));
  app_->require_subcommand(1);
  app_->footer(footer);
}

Parser::~Parser() = default;

Command Parser::add(const std::string& name, const std::string& help) {
  return {*app_->add_subcommand(name, help), command_.empty() || command_ == name};
}

std::optional<int> Parser::parse(int count, char** words, const Terminal& terminal) {
  try {
    app_->parse(count, words);
  } catch (const CLI::CallForHelp& help) {
    app_->exit(help);
    return 0;
  } catch (const CLI::CallForAllHelp& help) {
    app_->exit(help);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    app_->exit(version);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (count == 1)
      std::cout << app_->help() << std::flush;
    else
      terminal.complain(explain(*app_, error, count, words));
    return kUsage;
  }
  return {};
}

Json Parser::describe() const {
  Json all = Json::array();
  for (const CLI::App* command : app_->get_subcommands({})) all.push_back(cli::describe(*command));
  return all;
}

}  // namespace linblock::cli
