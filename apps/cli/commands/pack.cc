
#include "base/bytes.h"
#include "base/memory.h"
#include "cli/pack_options.h"
#include "cli/show/outputs.h"
#include "cli/show/print_json.h"
#include "cli/show/words.h"
#include "store/core/store.h"
#include "store/core/store_writer.h"
#include "store/index/build_forest.h"

namespace linblock::cli {

void add_reading_options(Command& command, PackRequest& request, Session& session) {
  add_memory_option(command, request.options.memory_bytes);
  add_threads_option(command, request.options.team);
  command.settings(settings_in(PackOptions::text_options(), request.options));
  add_json_option(command, session);
  add_quiet_option(command, session);
}

namespace {

// An index that cannot be read is for 'linblock index' to complain of.
bool has_fresh_index(const std::string& store) {
  try {
    return forest_state(Store::open(store)) == ForestState::fresh;
  } catch (const Error&) {
    return false;
  }
}

// The rows are in the store whatever comes of this.
void extend_index(const PackRequest& request, Session& session) {
  return_free_memory();
  ProgressBar bar(session.terminal, "indexing");
  ForestContext context{.stop = &session.stop};
  context.observer = [&](uint64_t done, uint64_t total) {
    bar.show(total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total), grouped(done) + " rows");
  };
  try {
    const ForestReport report =
        build_forest(Store::open(request.store),
                     {.memory_bytes = request.options.memory_bytes, .team = request.options.team}, context);
    bar.finish();
    session.terminal.say(fmt::format("the index has {} new {} for these rows, made in {:.2f} s", grouped(report.trees),
                                     report.trees == 1 ? "tree" : "trees", report.seconds));
  } catch (const Error& error) {
    bar.finish();
    session.terminal.say(
        fmt::format("the rows are appended, but the index is behind: {}\n'linblock index {}' adds trees for them",
                    message_of(error), request.store));
  }
}

// "spam, ham and 3 more"
std::string some_labels(const StoreInfo& info) {
  constexpr size_t kMostShown = 5;
  std::vector<int32_t> shown;
  for (const auto& [label, rows] : info.labels)
    if (shown.size() < kMostShown) shown.push_back(label);
  const size_t more = info.labels.size() - shown.size();
  return info.label_names.list(shown, ", ") + (more > 0 ? fmt::format(" and {} more", grouped(more)) : "");
}

// Features without a row may get some by 'append', so that more names than features are no error.
std::string words_of_names(const StoreInfo& info) {
  const FeatureNamesInfo& names = info.feature_names;
  std::string text = fmt::format("names: {} for {} features", grouped(names.named), grouped(info.features()));
  if (names.count < info.features())
    text += fmt::format("; the last {} have none", grouped(info.features() - names.count));
  if (names.count > info.features())
    text += fmt::format("; no row has a feature for the last {} lines of the file, which are kept for later rows",
                        grouped(names.count - info.features()));
  return text;
}

}  // namespace

void run_pack(PackRequest& request, Session& session, bool appending) {
  const Terminal& terminal = session.terminal;
  if (!request.options.rejects.empty()) {
    std::vector<std::string> read = request.inputs;
    read.push_back(request.options.weights);
    read.push_back(request.options.names);
    if (appending) read.push_back(request.store);
    Outputs outputs(read);
    outputs.add_text(request.options.rejects, "--rejects");
    if (!appending) {
      outputs.add_directory(request.store, "--output");
      outputs.add_directory(partial_path(request.store), "--output");
    }
  }
  const bool indexed = appending && has_fresh_index(request.store);
  ProgressBar bar(terminal, appending ? "appending" : "packing");
  PackContext context;
  context.stop = &session.stop;
  context.observer = [&](const PackProgress& progress) {
    bar.update(progress.bytes_read, progress.total_bytes, grouped(progress.rows) + " rows");
  };
  const PackReport report = appending ? append(request.inputs, request.store, request.options, context)
                                      : pack(request.inputs, request.store, request.options, context);
  const double seconds = bar.seconds();
  bar.finish();
  const Store store = Store::open(request.store);
  const StoreInfo& info = store.info();
  const double bytes_per_nonzero =
      info.nonzeros == 0 ? 0 : static_cast<double>(store.bytes()) / static_cast<double>(info.nonzeros);
  if (session.json) {
    Json summary = {{"store", request.store},
                    {"segment", report.segment},
                    {"first_row", report.first_row},
                    {"rows", report.rows},
                    {"nonzeros", report.nonzeros},
                    {"features", info.features()},
                    {"named_features", info.feature_names.named},
                    {"bad_rows", report.bad_rows},
                    {"text_bytes", report.text_bytes},
                    {"bytes", store.bytes()},
                    {"bytes_per_nonzero", bytes_per_nonzero},
                    {"codec", codec_name(info.codec)},
                    {"seconds", seconds},
                    {"peak_memory_bytes", peak_resident_bytes()}};
    if (!request.options.tag.empty()) summary["tag"] = request.options.tag;
    print_line(summary);
  }
  terminal.say(fmt::format("{} {} rows{}, {} nonzeros, from {} of text in {:.2f} s ({}/s, {} of memory)",
                           appending ? "appended" : "packed", grouped(report.rows),
                           request.options.tag.empty() ? "" : fmt::format(" with the tag '{}'", request.options.tag),
                           grouped(report.nonzeros), human_bytes(report.text_bytes), seconds,
                           human_bytes(static_cast<uint64_t>(static_cast<double>(report.text_bytes) / seconds)),
                           human_bytes(peak_resident_bytes())));
  if (!info.label_names.empty() && !appending)
    terminal.say(fmt::format("labels are words, as in the first row: {}", some_labels(info)));
  if (!request.options.names.empty()) terminal.say(words_of_names(info));
  if (report.bad_rows > 0)
    terminal.say(fmt::format("{} bad {} skipped{}", grouped(report.bad_rows),
                             report.bad_rows == 1 ? "row was" : "rows were",
                             request.options.rejects.empty() ? " (--rejects FILE would keep them)"
                                                             : " and kept in '" + request.options.rejects + "'"));
  terminal.say(fmt::format("{}: {} rows, {} features, {}, {:.2f} bytes a nonzero, codec {}", request.store,
                           grouped(info.rows), grouped(info.features()), human_bytes(store.bytes()), bytes_per_nonzero,
                           codec_name(info.codec)));
  if (indexed) extend_index(request, session);
  terminal.offer(fmt::format("linblock info {}", request.store));
}

void add_pack(Parser& parser, Session& session) {
  Command command = parser.add("pack", "Pack svmlight text into a store: compressed, checked, shuffled");
  if (!command.wanted()) return;
  auto request = std::make_shared<PackRequest>();
  PackOptions& options = request->options;
  command.arguments("INPUT", "svmlight files, plain or gz/bz2/xz/zst/lz4; - is standard input", request->inputs);
  command.required("-o,--output", "STORE", "The store to make, a folder that does not exist yet", request->store);
  command.settings(settings_in(PackOptions::tag_option(), options));
  add_reading_options(command, *request, session);
  command.settings(settings_in(PackOptions::seed_option(), options));
  command.settings(settings_of(options));
  command.examples(
      "  linblock pack train.svm -o train.store\n"
      "  linblock pack day-*.svm.gz -o days.store --memory 64M\n"
      "  zcat big.gz | linblock pack - -o big.store --normalize\n"
      "  linblock pack messy.svm -o messy.store --max-bad-rows 100 --rejects bad.svm\n\n"
      "A row of svmlight text is 'label index:value index:value ...', a label a number or a word. A table of numbers,\n"
      "its label in the first column (-F, for CSV; without -F for blanks; NR > 1 leaves out a header):\n"
      "  awk -F, 'NR > 1 {printf \"%s\", $1; for (i = 2; i <= NF; i++) if ($i != 0) printf \" %d:%s\", i - 1, $i;\n"
      "           print \"\"}' data.csv | linblock pack - -o data.store");
  command.run([request, &session] { run_pack(*request, session, false); });
}

}  // namespace linblock::cli
