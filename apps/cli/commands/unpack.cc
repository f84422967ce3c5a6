#include "store/core/unpack.h"

#include "base/bytes.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"

namespace linblock::cli {

void add_unpack(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("unpack", "Write a store as svmlight text again, in the order of the input");
  struct Request {
    std::string store;
    std::string output;
    std::string weights;
  };
  auto request = std::make_shared<Request>();
  command->add_option("STORE", request->store, "The store to write out")->required()->type_name("");
  command->add_option("-o,--output", request->output, "The file to write (default: standard output)")
      ->type_name("FILE");
  command->add_option("--weights", request->weights, "Also write the row weights, one a line")->type_name("FILE");
  add_quiet_option(*command, session);
  add_examples(*command,
               "  linblock unpack train.store -o train.svm\n"
               "  linblock unpack train.store | head\n\n"
               "Values are 32-bit floats, written so that packing them again gives the same store.");
  command->callback([request, &session] {
    const Store store = Store::open(request->store);
    if (store.info().weighted && request->weights.empty())
      session.terminal.say(
          "this store has row weights, which svmlight text cannot hold: --weights FILE writes them too");
    const bool to_file = !request->output.empty();
    Outputs outputs({request->store});
    if (to_file) outputs.add_text(request->output, "--output");
    if (!request->weights.empty()) outputs.add_text(request->weights, "--weights");
    File text = to_file ? File::create_output(request->output) : File::standard_output();
    File weights;
    if (!request->weights.empty()) weights = File::create_output(request->weights);
    ProgressBar bar(session.terminal, "unpacking");
    uint64_t written = 0;
    const auto sink_to = [](const File& file) {
      return [&file](std::string_view lines) {
        file.write_next({reinterpret_cast<const unsigned char*>(lines.data()), lines.size()});
      };
    };
    const TextSink text_sink = [&](std::string_view lines) {
      if (session.stop) fail(ErrorKind::interrupted, "interrupted");
      sink_to(text)(lines);
      written += lines.size();
      if (to_file) bar.update(written, 0, "of text written");
    };
    unpack(store, text_sink, weights.is_open() ? TextSink(sink_to(weights)) : TextSink());
    bar.finish();
    text.close();
    if (weights.is_open()) weights.close();
    if (to_file)
      session.terminal.say(
          fmt::format("wrote {} rows, {}, to {}", grouped(store.info().rows), human_bytes(written), request->output));
  });
}

}  // namespace linblock::cli
