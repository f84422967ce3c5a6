#include "store/core/remove.h"

#include <algorithm>
#include <cctype>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/print_json.h"
#include "store/core/store.h"

namespace linblock::cli {

namespace {

struct RemoveRequest {
  std::string store;
  std::string rows;
  uint64_t segment = 0;
  Team team = 1;

  static constexpr auto options() {
    return std::tuple{
        option("segment", &RemoveRequest::segment, "N",
               "Remove what one pack or append added; 'linblock info' shows the numbers (default: none)"),
        option("rows", &RemoveRequest::rows, "FILE",
               "Remove the rows of a file with one row id per line, from 0 in the order of the input; - is standard "
               "input")};
  }
};

// Ids where a file of ids belongs.
void check_rows(const RemoveRequest& request) {
  std::string ids = request.rows;
  if (ids.find_first_not_of("0123456789,:-") != std::string::npos || !std::isdigit(static_cast<unsigned char>(ids[0])))
    return;
  if (path_kind(ids) != PathKind::absent) return;
  const char* const command = ids.find_first_of(":-") != std::string::npos ? "seq" : "printf '%s\\n'";
  std::replace_if(
      ids.begin(), ids.end(), [](char c) { return c == ',' || c == ':' || c == '-'; }, ' ');
  fail(ErrorKind::usage,
       "--rows '{}' is no file with one row id a line: '{} {} | linblock remove {} --rows -' gives it one",
       request.rows, command, ids, request.store);
}

void run_remove(const RemoveRequest& request, Session& session) {
  ProgressBar bar(session.terminal, "removing");
  RemoveContext context{.team = request.team, .stop = &session.stop};
  context.observer = [&](uint64_t bytes, uint64_t total) { bar.update(bytes, total, "of the rows concerned"); };
  const RemoveReport report = request.rows.empty() ? remove_segment(request.store, request.segment, context)
                                                   : remove_rows(request.store, read_row_list(request.rows), context);
  const double seconds = bar.seconds();
  bar.finish();
  const StoreInfo info = read_manifest(request.store);
  if (session.json) {
    const Json summary = {{"store", request.store},
                          {"rows", report.rows},
                          {"nonzeros", report.nonzeros},
                          {"rows_left", info.rows},
                          {"removed_rows", info.removed.rows},
                          {"seconds", seconds}};
    print_line(summary);
  }
  session.terminal.say(fmt::format("removed {} rows, {} nonzeros, in {:.2f} s", grouped(report.rows),
                                   grouped(report.nonzeros), seconds));
  session.terminal.say(fmt::format("{}: {} rows are left", request.store, grouped(info.rows)));
  if (info.removed.rows > 0)
    session.terminal.offer(fmt::format("linblock compact {}, to make the files smaller ({} removed rows are in them)",
                                       request.store, grouped(info.removed.rows)));
  else
    session.terminal.offer(fmt::format("linblock info {}", request.store));
}

}  // namespace

void add_remove(Parser& parser, Session& session) {
  Command command = parser.add("remove", "Take rows out of a store: a whole segment, or rows by their ids");
  if (!command.wanted()) return;
  auto request = std::make_shared<RemoveRequest>();
  command.argument("STORE", "The store to take rows out of", request->store);
  command.settings(settings_of(*request));
  command.exclude("--rows", "--segment");
  add_threads_option(command, request->team);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock remove days.store --segment 1\n"
      "  linblock remove train.store --rows outliers.txt\n"
      "  seq 0 99 | linblock remove train.store --rows -\n\n"
      "Running readers keep the version that they opened. Ids are never given out again, so the other rows\n"
      "keep theirs. Rows removed by id stay in the files, out of sight, until 'linblock compact'.");
  command.run([request, command, &session] {
    if (!command.given("--segment") && request->rows.empty())
      fail(ErrorKind::usage, "which rows? Give --segment N or --rows FILE");
    check_rows(*request);
    run_remove(*request, session);
  });
}

}  // namespace linblock::cli
