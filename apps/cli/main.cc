// The only place that catches, and the only one that decides an exit code.
#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/numbers.h"
#include "cli/show/words.h"
#include "cli/suggest.h"

namespace linblock::cli {

namespace {

constexpr int kUsage = 2;
constexpr int kInternal = 70;
constexpr int kInterrupted = 130;

std::atomic<bool>* stop_flag = nullptr;

void on_interrupt(int) {
  if (stop_flag->exchange(true)) std::_Exit(kInterrupted);  // a second Ctrl-C does not wait
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return kUsage;
    case ErrorKind::input: return 3;
    case ErrorKind::damaged: return 4;
    case ErrorKind::io: return 5;
    case ErrorKind::memory: return 6;
    case ErrorKind::interrupted: return kInterrupted;
  }
  return kInternal;
}

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

// A result that did not reach its file is not a result.
int finish_output(const Terminal& terminal) {
  errno = 0;
  const bool written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written) return 0;
  terminal.complain(fmt::format("cannot write to standard output: {}",
                                errno == 0 ? "not everything was written" : std::generic_category().message(errno)));
  return exit_code(ErrorKind::io);
}

int run(int count, char** words) {
  Session session;
  session.command.assign(words, words + count);
  stop_flag = &session.stop;
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a call that waits for a pipe must end
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error as a full disk is
  set_interrupt_flag(&session.stop);

  CLI::App app("linblock trains linear classifiers on data larger than memory, to a certified optimum.", "linblock");
  app.set_version_flag("--version", fmt::format("linblock {}", kVersion));
  app.require_subcommand(1);
  app.footer(
      "\nBegin with:\n  linblock generate documents -o data.svm\n  linblock pack data.svm -o data.store\n  linblock "
      "info data.store\n\n"
      "Exit codes: 0 done, 2 usage, 3 bad input, 4 damaged store, 5 I/O error or disk full,\n"
      "6 not enough memory allowed, 130 interrupted.");
  add_pack(app, session);
  add_info(app, session);
  add_verify(app, session);
  add_unpack(app, session);
  add_append(app, session);
  add_remove(app, session);
  add_compact(app, session);
  add_transpose(app, session);
  add_index(app, session);
  add_train(app, session);
  add_cv(app, session);
  add_tune(app, session);
  add_predict(app, session);
  add_evaluate(app, session);
  add_report(app, session);
  add_generate(app, session);
  try {
    app.parse(count, words);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
  } catch (const CLI::ParseError& error) {
    if (count == 1) {
      std::cout << app.help() << std::flush;
      return kUsage;
    }
    session.terminal.complain(explain(app, error, count, words));
    return kUsage;
  } catch (const Error& error) {
    session.terminal.complain(message_of(error));
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    session.terminal.complain("the system has no more memory to give: use a smaller --memory, or close other programs");
    return exit_code(ErrorKind::memory);
  } catch (const std::system_error& error) {  // of fmt, which prints results on stdout
    session.terminal.complain(fmt::format("cannot write to standard output: {}", error.code().message()));
    return exit_code(ErrorKind::io);
  } catch (const std::exception& error) {
    session.terminal.complain(fmt::format("{} (this is a defect of linblock; please report it)", error.what()));
    return kInternal;
  }
  return finish_output(session.terminal);
}

}  // namespace

void add_memory_option(CLI::App& command, uint64_t& bytes) {
  bytes = permitted_memory_bytes() / 2;
  command
      .add_option_function<std::string>(
          "--memory", [&bytes](const std::string& text) { bytes = parse_size(text, "--memory"); },
          "All the memory this may use, such as 64M or 1G (default: half of what the machine or its cgroup allows)")
      ->type_name("SIZE");
}

void add_threads_option(CLI::App& command, size_t& threads) {
  threads = available_threads();
  add_whole_number(command, "--threads", threads,
                   "Threads to use (default: all processors); the result is the same for any number", 1, 1024);
}

void add_quiet_option(CLI::App& command, Session& session) {
  command.add_flag_callback(
      "-q,--quiet", [&session] { session.terminal.set_quiet(true); }, "Say nothing but errors");
}

void add_json_option(CLI::App& command, Session& session) {
  command.add_flag("--json", session.json, "Print one machine-readable summary on stdout");
}

ReadContext reading(ProgressBar& bar, const Session& session) {
  ReadContext context;
  context.observer = [&bar](const ReadProgress& progress) {
    bar.update(progress.bytes_read, progress.total_bytes, grouped(progress.rows) + " rows");
  };
  context.stop = &session.stop;
  return context;
}

void add_examples(CLI::App& command, const std::string& examples) { command.footer("\nExamples:\n" + examples); }

}  // namespace linblock::cli

int main(int count, char** words) {
  linblock::open_standard_files();
  linblock::keep_heap_small();
  return linblock::cli::run(count, words);
}
