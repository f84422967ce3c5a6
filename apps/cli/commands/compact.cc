#include "store/core/compact.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"

namespace linblock::cli {

namespace {

struct CompactRequest {
  std::string store;
  CompactOptions options;
};

void run_compact(const CompactRequest& request, Session& session) {
  ProgressBar bar(session.terminal, "compacting");
  CompactContext context{.stop = &session.stop};
  context.observer = [&](uint64_t bytes, uint64_t total) { bar.update(bytes, total, "read"); };
  const CompactReport report = compact(request.store, request.options, context);
  const double seconds = bar.seconds();
  bar.finish();
  if (session.json) {
    const Json summary = {{"store", request.store},
                          {"changed", report.changed},
                          {"removed_rows", report.removed_rows},
                          {"segments_before", report.segments_before},
                          {"bytes_before", report.bytes_before},
                          {"bytes", report.bytes},
                          {"seconds", seconds},
                          {"peak_memory_bytes", peak_resident_bytes()}};
    print_line(summary);
  }
  if (!report.changed) {
    session.terminal.say(fmt::format("{} has one segment and no removed rows: there is nothing to do", request.store));
    return;
  }
  session.terminal.say(
      fmt::format("compacted {} {} with {} removed rows into one, {} into {}, in {:.2f} s ({} of memory)",
                  grouped(report.segments_before), report.segments_before == 1 ? "segment" : "segments",
                  grouped(report.removed_rows), human_bytes(report.bytes_before), human_bytes(report.bytes), seconds,
                  human_bytes(peak_resident_bytes())));
  session.terminal.offer(fmt::format("linblock info {}", request.store));
}

}  // namespace

void add_compact(Parser& parser, Session& session) {
  Command command = parser.add("compact", "Rewrite a store as one segment, without its removed rows");
  if (!command.wanted()) return;
  auto request = std::make_shared<CompactRequest>();
  command.argument("STORE", "The store to rewrite", request->store);
  add_memory_option(command, request->options.memory_bytes);
  add_threads_option(command, request->options.team);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock compact days.store\n"
      "  linblock compact days.store --memory 64M\n\n"
      "Rows keep their ids, labels, weights and features. It takes as much disk space again until it is done;\n"
      "killed before that, the store is as it was. Running readers keep the version that they opened.");
  command.run([request, &session] { run_compact(*request, session); });
}

}  // namespace linblock::cli
