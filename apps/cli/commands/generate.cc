#include "store/text/generate.h"

#include "base/bytes.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/numbers.h"
#include "cli/show/outputs.h"

namespace linblock::cli {

void add_generate(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("generate", "Make synthetic svmlight text to try things on");
  struct Request {
    GenerateOptions options;
    std::string kind;
    std::string output;
    bool features_given = false;
  };
  auto request = std::make_shared<Request>();
  GenerateOptions& options = request->options;
  command->add_option("KIND", request->kind, "documents (sparse, Zipf), dense, or clusters")->required()->type_name("");
  command->add_option("-o,--output", request->output, "The file to write, - for standard output")
      ->required()
      ->type_name("FILE");
  add_whole_number(*command, "--rows", options.rows, "Rows (default: 10000)");
  CLI::Option* features =
      add_whole_number(*command, "--features", options.features, "Features (default: 100000; dense and clusters: 50)");
  add_whole_number(*command, "--nonzeros", options.nonzeros, "Nonzeros a row, about (documents; default: 100)");
  add_whole_number(*command, "--classes", options.classes, "Classes (default: 2, labels -1 and 1)")->type_name("K");
  add_number(*command, "--noise", options.noise, "Share of rows whose label is drawn at random (default: 0.05)")
      ->type_name("P");
  command->add_flag("--sorted", options.sorted, "Rows sorted by label");
  add_whole_number(*command, "--skip", options.skip, "Leave out the first N rows: others of the same data, to test on");
  add_whole_number(*command, "--seed", options.seed, "Another seed, other data (default: 1)");
  add_threads_option(*command, options.threads);
  add_quiet_option(*command, session);
  add_examples(*command,
               "  linblock generate documents -o docs.svm --rows 320000 --features 1000000\n"
               "  linblock generate documents -o test.svm --rows 20000 --skip 320000 --features 1000000\n"
               "  linblock generate clusters -o clusters.svm --rows 2000000 --features 54\n"
               "  linblock generate dense -o - --rows 1000 --classes 3 --sorted | head -2");
  command->callback([request, features, &session] {
    GenerateOptions& chosen = request->options;
    if (request->kind == "documents") {
      chosen.kind = DataKind::documents;
    } else if (request->kind == "dense" || request->kind == "clusters") {
      chosen.kind = request->kind == "dense" ? DataKind::dense : DataKind::clusters;
      if (features->count() == 0) chosen.features = 50;
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
    session.terminal.say(fmt::format("next: linblock pack {} -o {}.store", request->output, request->output));
  });
}

}  // namespace linblock::cli
