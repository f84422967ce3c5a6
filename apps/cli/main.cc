// The only place that catches, and the only one that decides an exit code.
#include <algorithm>
#include <array>
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
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"
#include "cli/show/words.h"
#include "learn/request.h"

namespace linblock::cli {

namespace {

constexpr int kUsage = 2;
constexpr std::string_view kDescribe = "--describe-options";  // for tools that write documentation
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
    case ErrorKind::not_converged: return 7;
  }
  return kInternal;
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

// "damaged": what an exit code means, for programs.
std::string_view name_of_exit(int code) {
  switch (code) {
    case kUsage: return "usage";
    case 3: return "input";
    case 4: return "damaged";
    case 5: return "io";
    case 6: return "memory";
    case 7: return "not_converged";
    case kInterrupted: return "interrupted";
    default: return "defect";
  }
}

// An error is a sentence on stderr, and with --json an object on stdout as well.
int refuse(const Session& session, int code, const std::string& message, const std::vector<Remedy>& remedies = {}) {
  session.terminal.complain(message);
  if (!session.json || code == exit_code(ErrorKind::not_converged)) return code;  // that one has its summary
  Json json = {{"exit_code", code}, {"kind", name_of_exit(code)}, {"message", message}};
  json["remedies"] = Json::array();
  for (const Remedy& remedy : remedies) json["remedies"].push_back(in_flags(remedy));
  std::cout << Json{{"error", json}}.dump() << '\n'
            << std::flush;  // where it cannot be written, the code still says it
  return code;
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

  // 'linblock help train' is 'linblock train --help'.
  std::string help = "--help";
  std::array<char*, 3> of_command = {words[0], nullptr, help.data()};
  if (count == 3 && std::string_view(words[1]) == "help" && !is_topic(words[2])) {
    of_command[1] = words[2];
    words = of_command.data();
  }
  const bool describes = count == 2 && std::string_view(words[1]) == kDescribe;
  const bool shows_all = std::find(words, words + count, std::string_view("--help-all")) != words + count;
  Parser parser(describes || count < 2 ? "" : words[1],
                "Begin with:\n  linblock generate documents -o data.svm\n  linblock train data.svm -o model\n"
                "  linblock evaluate model data.svm\n\n"
                "'linblock COMMAND --help' has examples. 'linblock help' lists topics, such as\n"
                "exit-codes: 0 done, 2 usage, 3 bad input, 4 damaged, 5 I/O error or disk full,\n"
                "6 too little memory, 7 not converged, 130 interrupted.",
                shows_all);
  add_train(parser, session);
  add_tune(parser, session);
  add_cv(parser, session);
  add_predict(parser, session);
  add_evaluate(parser, session);
  add_weights(parser, session);
  add_diff(parser, session);
  add_convert(parser, session);
  add_report(parser, session);
  add_pack(parser, session);
  add_append(parser, session);
  add_remove(parser, session);
  add_compact(parser, session);
  add_snapshot(parser, session);
  add_unpack(parser, session);
  add_info(parser, session);
  add_verify(parser, session);
  add_transpose(parser, session);
  add_index(parser, session);
  add_generate(parser, session);
  add_help(parser);
  try {
    if (describes) {
      print_line(parser.describe());
      return finish_output(session.terminal);
    }
    session.json = std::find(words, words + count, std::string_view("--json")) != words + count;
    const Parser::Outcome parsed = parser.parse(count, words);
    if (!parsed.mistake.empty()) return refuse(session, kUsage, parsed.mistake);
    if (parsed.code != 0) return parsed.code;
  } catch (const Error& error) {
    return refuse(session, exit_code(error.kind()), message_of(error), error.remedies());
  } catch (const std::bad_alloc&) {
    return refuse(session, exit_code(ErrorKind::memory),
                  "the system has no more memory to give: use a smaller --memory, or close other programs");
  } catch (const std::system_error& error) {  // of fmt, which prints results on stdout
    return refuse(session, exit_code(ErrorKind::io),
                  fmt::format("cannot write to standard output: {}", error.code().message()));
  } catch (const std::exception& error) {
    return refuse(session, kInternal, fmt::format("{} (this is a defect of linblock; please report it)", error.what()));
  }
  return finish_output(session.terminal);
}

}  // namespace

namespace {

// One setting of the table of resources; `take` copies it to where the command has it.
void add_resource(Command& command, std::string_view name, const std::function<void(const Resources&)>& take) {
  const auto resources = std::make_shared<Resources>(Resources::usual());
  take(*resources);
  for (Setting& setting : settings_of(*resources)) {
    if (setting.name != name) continue;
    setting.set = [resources, set = setting.set, take](std::string_view text) {
      std::string wrong = set(text);
      take(*resources);
      return wrong;
    };
    command.setting(setting);
  }
}

}  // namespace

void add_memory_option(Command& command, uint64_t& bytes) {
  add_resource(command, "memory", [&bytes](const Resources& resources) { bytes = resources.memory_bytes; });
}

void add_threads_option(Command& command, Team& team) {
  add_resource(command, "threads", [&team](const Resources& resources) { team = resources.threads; });
}

void add_quiet_option(Command& command, Session& session, const std::string& help) {
  command.flag("-q,--quiet", help, [&session] { session.terminal.set_quiet(true); });
}

void add_json_option(Command& command, Session& session) {
  command.flag("--json", "Print one machine-readable summary on stdout", session.json);
}

ReadContext reading(ProgressBar& bar, const Session& session) {
  ReadContext context;
  context.observer = [&bar](const ReadProgress& progress) {
    bar.update(progress.bytes_read, progress.total_bytes, grouped(progress.rows) + " rows");
  };
  context.stop = &session.stop;
  return context;
}

}  // namespace linblock::cli

int main(int count, char** words) {
  linblock::open_standard_files();
  linblock::keep_heap_small();
  return linblock::cli::run(count, words);
}
