#include "store/columns/transpose.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"
#include "store/columns/columns.h"
#include "store/core/store_writer.h"

namespace linblock::cli {

namespace {

struct TransposeRequest {
  std::string store;
  bool force = false;
  TransposeOptions options;
};

void print_json(const TransposeRequest& request, bool changed, const TransposeReport& report) {
  const Json summary = {{"store", request.store},    {"changed", changed},
                        {"columns", report.columns}, {"nonzeros", report.nonzeros},
                        {"bytes", report.bytes},     {"spilled_bytes", report.spilled_bytes},
                        {"seconds", report.seconds}, {"peak_memory_bytes", peak_resident_bytes()}};
  print_line(summary);
}

void run_transpose(TransposeRequest& request, Session& session) {
  const Store rows = Store::open(request.store);
  expect_rows(rows.info(), request.store);
  const ColumnsState state = [&] {
    if (request.force) return ColumnsState::stale;
    try {
      return columns_state(rows);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::damaged) throw;
      session.terminal.say(fmt::format("the columns of {} are damaged: making them again", request.store));
      return ColumnsState::stale;
    }
  }();
  if (state == ColumnsState::fresh) {
    StoreWriter::clean(rows.path(), columns_path(rows.path()));
    const Columns columns = Columns::open(rows);
    const StoreInfo& info = columns.store().info();
    if (session.json)
      print_json(request, false, {.columns = info.columns, .nonzeros = info.nonzeros, .bytes = info.bytes()});
    session.terminal.say(
        fmt::format("{} has fresh columns, {} of them in {}: there is nothing to do (--force makes "
                    "them again)",
                    request.store, grouped(info.columns), human_bytes(info.bytes())));
    return;
  }
  ProgressBar bar(session.terminal, "transposing");
  TransposeContext context{.stop = &session.stop};
  context.observer = [&](uint64_t done, uint64_t total) {
    bar.show(total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total), "of the entries moved");
  };
  const TransposeReport report = transpose(rows, request.options, context);
  bar.finish();
  if (session.json) print_json(request, true, report);
  session.terminal.say(fmt::format(
      "transposed {} rows into {} feature columns, {} nonzeros, {}, in {:.2f} s ({} of memory{})",
      grouped(rows.info().rows), grouped(report.columns), grouped(report.nonzeros), human_bytes(report.bytes),
      report.seconds, human_bytes(peak_resident_bytes()),
      report.spilled_bytes == 0 ? "" : fmt::format(", {} through files", human_bytes(report.spilled_bytes))));
  session.terminal.offer(fmt::format("linblock train {} --solver primal -o model", request.store));
}

}  // namespace

void add_transpose(Parser& parser, Session& session) {
  Command command =
      parser.add("transpose", "Keep a store's feature columns beside its rows, for solvers that work on them");
  if (!command.wanted()) return;
  auto request = std::make_shared<TransposeRequest>();
  command.argument("STORE", "The store to transpose", request->store);
  add_memory_option(command, request->options.memory_bytes);
  add_threads_option(command, request->options.team);
  command.settings(settings_of(request->options));
  command.flag("--force", "Make the columns again though they are fresh", request->force);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock transpose train.store\n"
      "  linblock transpose train.store --memory 64M --codec zstd\n\n"
      "The columns are in train.store/columns. Entries that do not fit in memory go through files there (12 bytes a\n"
      "nonzero), which are gone at the end. Killed before that, the columns are absent or as they were. Columns are\n"
      "stale once rows are appended, removed or compacted: 'linblock info' shows it, and this makes them again.");
  command.run([request, &session] { run_transpose(*request, session); });
}

}  // namespace linblock::cli
