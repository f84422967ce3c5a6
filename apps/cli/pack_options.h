// What pack and append share.
#pragma once

#include "cli/commands.h"
#include "store/pack.h"

namespace linblock::cli {

struct PackRequest {
  std::vector<std::string> inputs;
  std::string store;
  PackOptions options;
};

// --memory, --threads, --weights, --max-bad-rows, --rejects, --json, -q
void add_reading_options(CLI::App& command, PackRequest& request, Session& session);
// Packs or appends with progress, then prints the summary.
void run_pack(PackRequest& request, Session& session, bool appending);

}  // namespace linblock::cli
