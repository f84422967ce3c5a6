#include "store/text/generate.h"

#include "base/bytes.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"

namespace linblock::cli {

void add_generate(Parser& parser, Session& session) {
  Command command = parser.add("generate", "Make synthetic svmlight text to try things on");
  if (!command.wanted()) return;
  struct GenerateRequest {
    GenerateOptions options;
    std::string kind;
    std::string output;
  };
  auto request = std::make_shared<GenerateRequest>();
  GenerateOptions& options = request->options;
  command.argument("KIND", "documents (sparse, Zipf), dense, or clusters", request->kind);
  command.required("-o,--output", "FILE", "The file to write, - for standard output", request->output);
  command.settings(settings_of(options));
  add_threads_option(command, options.team);
  add_quiet_option(command, session);
  command.examples(
      "  linblock generate documents -o docs.svm --rows 320000 --features 1000000\n"
      "  linblock generate documents -o test.svm --rows 20000 --skip 320000 --features 1000000\n"
      "  linblock generate clusters -o clusters.svm --rows 2000000 --features 54\n"
      "  linblock generate dense -o - --rows 1000 --classes 3 --sorted | head -2");
  command.run([request, command, &session] {
    GenerateOptions& chosen = request->options;
    if (request->kind == "documents") {
      chosen.kind = DataKind::documents;
    } else if (request->kind == "dense" || request->kind == "clusters") {
      chosen.kind = request->kind == "dense" ? DataKind::dense : DataKind::clusters;
      if (!command.given("--features")) chosen.features = 50;
      chosen.nonzeros = chosen.features;
    } else {
      fail(ErrorKind::usage, "'{}' is not a kind of data: choose documents, dense or clusters", request->kind);
    }
    check(chosen);
    const bool to_file = request->output != "-";
    if (to_file) Outputs({}).add_text(request->output, "--output");
    File file = to_file ? File::create_output(request->output) : File::standard_output();
    ProgressBar bar(session.terminal, "generating");
    uint64_t written = 0;
    generate(chosen, [&](std::string_view text) {
      if (session.stop) fail(ErrorKind::interrupted, "interrupted");
      file.write_next({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
      written += text.size();
      if (to_file) bar.update(written, 0, "of text written");
    });
    const double seconds = bar.seconds();
    bar.finish();
    file.close();
    if (!to_file) return;
    session.terminal.say(
        fmt::format("wrote {} rows, {}, in {:.2f} s", grouped(chosen.rows), human_bytes(written), seconds));
    session.terminal.offer(fmt::format("linblock pack {} -o {}.store", request->output, request->output));
  });
}

}  // namespace linblock::cli
