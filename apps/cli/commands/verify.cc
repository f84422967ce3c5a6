#include "base/bytes.h"
#include "cli/commands/commands.h"
#include "store/columns/columns.h"
#include "store/index/metric_forest.h"

namespace linblock::cli {

void add_verify(Parser& parser, Session& session) {
  Command command = parser.add("verify", "Read a whole store and check every checksum and every row");
  if (!command.wanted()) return;
  struct VerifyRequest {
    std::string store;
    Team team = 1;
  };
  auto request = std::make_shared<VerifyRequest>();
  command.argument("STORE", "The store to check", request->store);
  add_threads_option(command, request->team);
  add_quiet_option(command, session);
  command.examples(
      "  linblock verify train.store\n\nThe exit code is 4 if anything is damaged, and the file and chunk are named.");
  command.run([request, &session] {
    ProgressBar bar(session.terminal, "verifying");
    const Store store = Store::open(request->store);
    const VerifyReport report = verify(
        store, request->team, [&](uint64_t bytes) { bar.update(bytes, store.bytes(), "no damage found so far"); });
    bar.finish();
    session.terminal.say(fmt::format("{}: {} chunks, {} rows, {}: no damage found", request->store,
                                     grouped(report.chunks), grouped(report.rows), human_bytes(report.bytes)));
    // What is stale is never read again.
    if (store.info().axis != Axis::rows) return;
    const auto verify_beside = [&](const Store& beside, const char* doing) {
      ProgressBar more(session.terminal, doing);
      const VerifyReport beside_report = verify(
          beside, request->team, [&](uint64_t bytes) { more.update(bytes, beside.bytes(), "no damage found so far"); });
      more.finish();
      return beside_report;
    };
    if (columns_state(store) == ColumnsState::fresh) {
      const Columns columns = Columns::open(store);
      const VerifyReport columns_report = verify_beside(columns.store(), "verifying the columns");
      session.terminal.say(fmt::format("{}: {} chunks, {} columns, {}: no damage found", columns.store().path(),
                                       grouped(columns_report.chunks), grouped(columns.store().info().columns),
                                       human_bytes(columns_report.bytes)));
    }
    // One that is behind will be added to.
    const ForestState state = forest_state(store);
    if (state == ForestState::fresh || state == ForestState::behind) {
      const Store index = Store::open(index_path(request->store));
      const VerifyReport index_report = verify_beside(index, "verifying the index");
      session.terminal.say(fmt::format("{}: {} pages, {} rows, {}: no damage found", index.path(),
                                       grouped(index_report.chunks), grouped(index_report.rows),
                                       human_bytes(index_report.bytes)));
    }
  });
}

}  // namespace linblock::cli
