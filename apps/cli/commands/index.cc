
#include "base/bytes.h"
#include "base/memory.h"
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"
#include "store/index/build_forest.h"

namespace linblock::cli {

namespace {

struct IndexRequest {
  std::string store;
  ForestOptions options;
};

void print_json(const std::string& store, const MetricForest& forest, const ForestReport& report, double ratio) {
  const ForestInfo& info = forest.info();
  const Json summary = {{"store", store},
                        {"changed", report.changed},
                        {"extended", report.extended},
                        {"rows", report.rows},
                        {"nonzeros", report.nonzeros},
                        {"new_trees", report.trees},
                        {"trees", info.trees()},
                        {"pages", forest.pages().chunks().size()},
                        {"tree_rows", info.tree_rows},
                        {"branch", info.branch},
                        {"bias", info.bias},
                        {"seed", forest.pages().info().seed},
                        {"page_bytes", forest.pages().info().chunk_bytes},
                        {"bytes", forest.pages().bytes()},
                        {"ratio", ratio},
                        {"contrast", info.contrast()},
                        {"seconds", report.seconds},
                        {"peak_memory_bytes", peak_resident_bytes()}};
  print_line(summary);
}

void run_index(const IndexRequest& request, Session& session) {
  const Store rows = Store::open(request.store);
  ProgressBar bar(session.terminal, "indexing");
  ForestContext context{.stop = &session.stop};
  context.observer = [&](uint64_t done, uint64_t total) {
    bar.show(total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total), grouped(done) + " rows");
  };
  const ForestReport report = build_forest(rows, request.options, context);
  bar.finish();
  const MetricForest forest = MetricForest::open(rows);
  const ForestInfo& info = forest.info();
  const double ratio = static_cast<double>(forest.pages().bytes()) / static_cast<double>(rows.bytes());
  if (session.json) print_json(request.store, forest, report, ratio);
  const std::string what =
      fmt::format("{} {} in {}, {:.2f} times the rows, contrast {:.2f}", grouped(info.trees()),
                  info.trees() == 1 ? "tree" : "trees", human_bytes(forest.pages().bytes()), ratio, info.contrast());
  if (!report.changed) {
    session.terminal.say(
        fmt::format("{} has a fresh index made with these options, {}: there is nothing to do "
                    "(--force makes it again)",
                    request.store, what));
    return;
  }
  session.terminal.say(fmt::format("{} {} rows, {} nonzeros, in {} {} of up to {} rows, in {:.2f} s ({} of memory)",
                                   report.extended ? "added to the index" : "indexed", grouped(report.rows),
                                   grouped(report.nonzeros), grouped(report.trees),
                                   report.trees == 1 ? "tree" : "trees", grouped(report.rows_per_tree), report.seconds,
                                   human_bytes(peak_resident_bytes())));
  session.terminal.say(fmt::format("{}: {}", forest.pages().path(), what));
  session.terminal.offer(fmt::format("linblock train {} --solver indexed -o model", request.store));
}

}  // namespace

void add_index(Parser& parser, Session& session) {
  Command command = parser.add("index", "Keep an index of a store's rows beside them, for --solver indexed");
  if (!command.wanted()) return;
  auto request = std::make_shared<IndexRequest>();
  ForestOptions& options = request->options;
  command.argument("STORE", "The store to index", request->store);
  command.settings(settings_of(options));
  add_memory_option(command, options.memory_bytes);
  add_threads_option(command, options.team);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock index train.store\n"
      "  linblock index train.store --bias 1 --memory 64M\n"
      "  linblock index train.store --tree-rows 50000 --branch 32 --force\n\n"
      "The index is in train.store/index: all rows once more, about as large as the store. Options that are not given\n"
      "are those of the index that is there. After 'linblock append' it only gets trees for the new rows (append does "
      "so\n"
      "itself where the index was fresh). Rows removed or compacted make it stale: 'linblock info' shows it, and this\n"
      "makes it again. Killed before the end, the index is absent or as it was.");
  command.run([request, &session] { run_index(*request, session); });
}

}  // namespace linblock::cli
