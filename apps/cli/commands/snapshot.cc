#include "base/bytes.h"
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"
#include "store/core/store_snapshot.h"

namespace linblock::cli {

namespace {

struct SnapshotRequest {
  std::string store;
  std::string to;
};

void run_snapshot(const SnapshotRequest& request, Session& session) {
  const StoreSnapshotReport report = snapshot_store(request.store, request.to);
  if (session.json) {
    const Json summary = {{"store", request.store}, {"snapshot", request.to}, {"id", fmt::format("{:016x}", report.id)},
                          {"rows", report.rows},    {"files", report.files},  {"bytes", report.bytes}};
    print_line(summary);
  }
  session.terminal.say(fmt::format("{}: {} rows, {} files of {}, {} in all", request.to, grouped(report.rows),
                                   grouped(report.files), request.store, human_bytes(report.bytes)));
  session.terminal.offer(fmt::format("linblock verify {}", request.to));
}

}  // namespace

void add_snapshot(Parser& parser, Session& session) {
  Command command = parser.add("snapshot", "Keep the present state of a store under another name");
  if (!command.wanted()) return;
  auto request = std::make_shared<SnapshotRequest>();
  command.argument("STORE", "The store to take a snapshot of", request->store);
  command.argument("NEW", "The snapshot, a folder that does not exist yet, on the same disk", request->to);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock snapshot days.store days.monday\n\n"
      "The snapshot is a store. It shares the files of STORE by hard links, so no rows are copied.\n"
      "What append, remove and compact do to one of the two does not change the other. A snapshot does not\n"
      "protect from a broken disk: both have the same bytes there.");
  command.run([request, &session] { run_snapshot(*request, session); });
}

}  // namespace linblock::cli
