// One function a command: it declares its options on a CLI11 subcommand and what to do when it is called.
#pragma once

#include <CLI/App.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

void add_pack(CLI::App& app, Session& session);
void add_append(CLI::App& app, Session& session);
void add_remove(CLI::App& app, Session& session);
void add_compact(CLI::App& app, Session& session);
void add_transpose(CLI::App& app, Session& session);
void add_index(CLI::App& app, Session& session);
void add_info(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_unpack(CLI::App& app, Session& session);
void add_generate(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_cv(CLI::App& app, Session& session);
void add_tune(CLI::App& app, Session& session);
void add_predict(CLI::App& app, Session& session);
void add_evaluate(CLI::App& app, Session& session);
void add_report(CLI::App& app, Session& session);

// Options that several commands share, under one name and one meaning.
void add_memory_option(CLI::App& command, uint64_t& bytes);
void add_threads_option(CLI::App& command, size_t& threads);
// -q
void add_quiet_option(CLI::App& command, Session& session);
void add_json_option(CLI::App& command, Session& session);
void add_examples(CLI::App& command, const std::string& examples);

// Shows the reading of examples on a bar, and ends it at Ctrl-C.
ReadContext reading(ProgressBar& bar, const Session& session);

}  // namespace linblock::cli
