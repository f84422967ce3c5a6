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

// --weights, --max-bad-rows, --rejects: how text is read.
void add_text_options(CLI::App& command, PackOptions& options);
// --no-shuffle, --chunk-bytes, --codec, --normalize, --index-base: what is made of it.
void add_packing_options(CLI::App& command, PackOptions& options);
// --memory, --threads, --json, -q, and how text is read.
void add_reading_options(CLI::App& command, PackRequest& request, Session& session);
// Packs or appends with progress, then prints the summary.
void run_pack(PackRequest& request, Session& session, bool appending);

}  // namespace linblock::cli
