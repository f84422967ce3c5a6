#include "store/core/unpack.h"

#include "base/bytes.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"

namespace linblock::cli {

void add_unpack(Parser& parser, Session& session) {
  Command command = parser.add("unpack", "Write a store as svmlight text again, in the order of the input");
  if (!command.wanted()) return;
  struct UnpackRequest {
    std::string store;
    std::string output;
    std::string weights;
  };
  auto request = std::make_shared<UnpackRequest>();
  command.argument("STORE", "The store to write out", request->store);
  command.option("-o,--output", "FILE", "The file to write (default: standard output)", request->output);
  command.option("--weights", "FILE", "Also write the row weights, one a line", request->weights);
  add_quiet_option(command, session);
  command.examples(
      "  linblock unpack train.store -o train.svm\n"
      "  linblock unpack train.store | head\n\n"
      "Values are 32-bit floats, written so that packing them again gives the same store.");
  command.run([request, &session] {
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
