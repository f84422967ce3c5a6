// What pack, append and train share.
#pragma once

#include "cli/commands/commands.h"
#include "store/core/pack.h"

namespace linblock::cli {

struct PackRequest {
  std::vector<std::string> inputs;
  std::string store;
  PackOptions options;
};

// --memory, --threads, --json, -q, and how text is read.
void add_reading_options(Command& command, PackRequest& request, Session& session);
// Packs or appends with progress, then prints the summary.
void run_pack(PackRequest& request, Session& session, bool appending);

}  // namespace linblock::cli
