#include "base/bytes.h"
#include "cli/commands/commands.h"
#include "store/columns/columns.h"
#include "store/index/metric_forest.h"

namespace linblock::cli {

void add_verify(Parser& parser, Session& session) {
  Command command = parser.add("verify", "Read a whole store and check every checksum and every row");
  if (!command.wanted()) return;
  struct Request {
    std::string store;
    size_t threads = 1;
  };
  auto request = std::make_shared<Request>();
  command.argument("STORE", "The store to check", request->store);
  add_threads_option(command, request->threads);
  add_quiet_option(command, session);
  command.examples(
      "  linblock verify train.store\n\nThe exit code is 4 if anything is damaged, and the file and chunk are named.");
  command.run([request, &session] {
    ProgressBar bar(session.terminal, "verifying");
    const Store store = Store::open(request->store);
    const VerifyReport report =
        verify(store, request->threads, [&](uint64_t bytes) { bar.update(bytes, store.bytes(), "all well so far"); });
    bar.finish();
    session.terminal.say(fmt::format("{}: {} chunks, {} rows, {}: no damage found", request->store,
                                     grouped(report.chunks), grouped(report.rows), human_bytes(report.bytes)));
    // What is stale is never read again.
    if (store.info().axis != Axis::rows) return;
    const auto verify_beside = [&](const Store& beside, const char* doing) {
      ProgressBar more(session.terminal, doing);
      const VerifyReport found = verify(beside, request->threads,
                                        [&](uint64_t bytes) { more.update(bytes, beside.bytes(), "all well so far"); });
      more.finish();
      return found;
    };
    if (columns_state(store) == ColumnsState::fresh) {
      const Columns columns = Columns::open(store);
      const VerifyReport found = verify_beside(columns.store(), "verifying the columns");
      session.terminal.say(fmt::format("{}: {} chunks, {} columns, {}: no damage found", columns.store().path(),
                                       grouped(found.chunks), grouped(columns.store().info().columns),
                                       human_bytes(found.bytes)));
    }
    // One that is behind will be added to.
    const ForestState state = forest_state(store);
    if (state == ForestState::fresh || state == ForestState::behind) {
      const Store index = Store::open(index_path(request->store));
      const VerifyReport found = verify_beside(index, "verifying the index");
      session.terminal.say(fmt::format("{}: {} pages, {} rows, {}: no damage found", index.path(),
                                       grouped(found.chunks), grouped(found.rows), human_bytes(found.bytes)));
    }
  });
}

}  // namespace linblock::cli
