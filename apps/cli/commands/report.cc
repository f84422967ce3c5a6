#include "base/bytes.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"
#include "cli/show/print_json.h"
#include "cli/show/report_page.h"

namespace linblock::cli {

namespace {

struct ReportRequest {
  std::vector<std::string> traces;
  std::string output;
};

void run_report(const ReportRequest& request, const Session& session) {
  Outputs(request.traces).add_page(request.output);
  std::vector<TraceRun> runs;
  for (const std::string& trace : request.traces) {
    if (session.stop) fail(ErrorKind::interrupted, "interrupted");
    std::ranges::move(read_trace(trace), std::back_inserter(runs));
  }
  const ReportPage page = make_report_page(runs);
  replace_file(request.output, {reinterpret_cast<const unsigned char*>(page.html.data()), page.html.size()},
               kPageBeginning);
  if (session.json)
    print_line({{"report", request.output},
                {"bytes", page.html.size()},
                {"runs", runs.size()},
                {"passes", page.passes},
                {"shown_passes", page.shown_passes}});
  session.terminal.say(
      fmt::format("wrote {}: {} {}, {} passes{}, {}", request.output, runs.size(), runs.size() == 1 ? "run" : "runs",
                  grouped(page.passes),
                  page.shown_passes < page.passes ? fmt::format(" ({} of them shown)", grouped(page.shown_passes)) : "",
                  human_bytes(page.html.size())));
  session.terminal.say("next: open it in a browser; it needs no network");
}

}  // namespace

void add_report(Parser& parser, Session& session) {
  Command command = parser.add("report", "Show traces of training as one page of HTML");
  if (!command.wanted()) return;
  auto request = std::make_shared<ReportRequest>();
  command.arguments("TRACE", "What 'linblock train --trace FILE' wrote; several are laid over each other",
                    request->traces);
  command.required("-o,--output", "FILE", "The page to write", request->output);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock train train.svm -o model --trace run.jsonl --test test.svm\n"
      "  linblock report run.jsonl -o report.html\n"
      "  linblock report dual.jsonl newton.jsonl -o compare.html\n\n"
      "The page has the gap and the test accuracy against seconds and bytes read, where the time went, the memory\n"
      "against --memory, the plan, the certificate and the command of each run. It stays below 300 KB.");
  command.run([request, &session] { run_report(*request, session); });
}

}  // namespace linblock::cli
