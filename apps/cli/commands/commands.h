// One function per command: it declares the options and what to do when the command is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/team.h"
#include "cli/parser.h"
#include "cli/show/terminal.h"
#include "learn/examples.h"

namespace linblock::cli {

// What every command may ask of main.
struct Session {
  Terminal terminal;
  std::vector<std::string> command;  // as it was typed
  bool json = false;
  std::atomic<bool> stop = false;  // set by Ctrl-C
};

void add_pack(Parser& parser, Session& session);
void add_append(Parser& parser, Session& session);
void add_remove(Parser& parser, Session& session);
void add_compact(Parser& parser, Session& session);
void add_snapshot(Parser& parser, Session& session);
void add_transpose(Parser& parser, Session& session);
void add_index(Parser& parser, Session& session);
void add_info(Parser& parser, Session& session);
void add_verify(Parser& parser, Session& session);
void add_unpack(Parser& parser, Session& session);
void add_generate(Parser& parser, Session& session);
void add_train(Parser& parser, Session& session);
void add_cv(Parser& parser, Session& session);
void add_tune(Parser& parser, Session& session);
void add_predict(Parser& parser, Session& session);
void add_evaluate(Parser& parser, Session& session);
void add_weights(Parser& parser, Session& session);
void add_diff(Parser& parser, Session& session);
void add_convert(Parser& parser, Session& session);
void add_report(Parser& parser, Session& session);
void add_help(Parser& parser);
// Of 'linblock help TOPIC'; other words there are commands.
bool is_topic(std::string_view name);

// Options that several commands share, under one name and one meaning.
void add_memory_option(Command& command, uint64_t& bytes);
void add_threads_option(Command& command, Team& team);
// -q
void add_quiet_option(Command& command, Session& session, const std::string& help = "Print errors only");
void add_json_option(Command& command, Session& session);

// Shows the reading of examples on a bar, and ends it at Ctrl-C.
ReadContext reading(ProgressBar& bar, const Session& session);

}  // namespace linblock::cli
