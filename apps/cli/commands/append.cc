#include "cli/pack_options.h"

namespace linblock::cli {

void add_append(Parser& parser, Session& session) {
  Command command = parser.add("append", "Add rows to a store, as a new segment");
  if (!command.wanted()) return;
  auto request = std::make_shared<PackRequest>();
  command.argument("STORE", "The store to add to", request->store);
  command.arguments("INPUT", "svmlight files, plain or gz/bz2/xz/zst/lz4; - is standard input", request->inputs);
  command.settings(settings_in(PackOptions::tag_option(), request->options));
  add_reading_options(command, *request, session);
  command.examples(
      "  linblock append days.store day-8.svm.gz\n"
      "  linblock append days.store day-9.svm --weights day-9.weights\n"
      "  linblock append days.store day-10.svm --tag 2026-11-16\n\n"
      "A tag is refused if the store has it, so that a repeated append cannot double a day.\n"
      "Running readers keep the version that they opened; the rows are there for whoever opens the store\n"
      "next. The store keeps its options: normalization, codec, feature numbering, index base.\n"
      "An index that was fresh gets trees for the new rows.");
  command.run([request, &session] { run_pack(*request, session, true); });
}

}  // namespace linblock::cli
