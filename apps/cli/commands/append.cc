#include "cli/pack_options.h"

namespace linblock::cli {

void add_append(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("append", "Add rows to a store, as a new segment");
  auto request = std::make_shared<PackRequest>();
  command->add_option("STORE", request->store, "The store to add to")->required()->type_name("");
  command->add_option("INPUT", request->inputs, "svmlight files, plain or gz/bz2/xz/zst/lz4; - is standard input")
      ->required()
      ->type_name("");
  add_reading_options(*command, *request, session);
  add_examples(*command,
               "  linblock append days.store day-8.svm.gz\n"
               "  linblock append days.store day-9.svm --weights day-9.weights\n\n"
               "Readers that are at work go on with what they opened; the rows are there for whoever opens the store\n"
               "next. The store keeps its options: normalisation, codec, feature numbering, index base.\n"
               "An index that was fresh gets trees for the new rows.");
  command->callback([request, &session] { run_pack(*request, session, true); });
}

}  // namespace linblock::cli
