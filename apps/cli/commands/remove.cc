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
  RowRanges ranges;
  uint64_t segment = 0;
  std::string tag;
  Team team = 1;

  static constexpr auto options() {
    return std::tuple{
        option_as<Tag>("tag", &RemoveRequest::tag, "TAG", "Remove the rows with this tag; 'linblock info' shows tags"),
        option("segment", &RemoveRequest::segment, "N",
               "Remove what one pack or append added; 'linblock info' shows the numbers (default: none)"),
        option("row_range", &RemoveRequest::ranges, "FIRST-LAST",
               "Remove the rows with these ids, such as 100-200; may be given several times"),
        option("rows", &RemoveRequest::rows, "FILE",
               "Remove the rows of a file with one row id or range per line, from 0 in the order of the input; - is "
               "standard input")};
  }
};

// Ids where a file of ids belongs.
void check_rows(const RemoveRequest& request) {
  std::string ids = request.rows;
  if (ids.find_first_not_of("0123456789,:-") != std::string::npos || !std::isdigit(static_cast<unsigned char>(ids[0])))
    return;
  if (path_kind(ids) != PathKind::absent) return;
  if (RowRanges::read(ids))
    fail(ErrorKind::usage, "--rows '{0}' is no file: '--row-range {0}' removes the rows with these ids", ids);
  std::replace_if(
      ids.begin(), ids.end(), [](char c) { return c == ',' || c == ':'; }, ' ');
  const char* const command = request.rows.find(':') != std::string::npos ? "seq" : "printf '%s\\n'";
  fail(ErrorKind::usage,
       "--rows '{}' is no file with one row id a line: '{} {} | linblock remove {} --rows -' gives it one",
       request.rows, command, ids, request.store);
}

RemoveReport remove_requested(const RemoveRequest& request, const RemoveContext& context) {
  if (!request.tag.empty()) return remove_tag(request.store, request.tag, context);
  if (!request.ranges.ranges.empty()) return remove_rows(request.store, {.ranges = request.ranges.ranges}, context);
  if (!request.rows.empty()) return remove_rows(request.store, read_row_list(request.rows), context);
  return remove_segment(request.store, request.segment, context);
}

// "; segment 3 is gone; no rows with the tag 2026-11-16 are left"
std::string what_left(const RemoveReport& report) {
  std::string text;
  const auto list = [](const auto& items) { return fmt::format("{}", fmt::join(items, ", ")); };
  const bool one = report.segments.size() == 1;
  if (!report.segments.empty())
    text +=
        fmt::format("; {} {} {}", one ? "segment" : "segments", list(report.segments), one ? "is gone" : "are gone");
  if (!report.tags.empty())
    text +=
        fmt::format("; no rows with the {} {} are left", report.tags.size() == 1 ? "tag" : "tags", list(report.tags));
  return text;
}

template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(item);
  return list;
}

void run_remove(const RemoveRequest& request, Session& session) {
  ProgressBar bar(session.terminal, "removing");
  RemoveContext context{.team = request.team, .stop = &session.stop};
  context.observer = [&](uint64_t bytes, uint64_t total) { bar.update(bytes, total, "of the rows concerned"); };
  const RemoveReport report = remove_requested(request, context);
  const double seconds = bar.seconds();
  bar.finish();
  const StoreInfo info = read_manifest(request.store);
  if (session.json) {
    const Json summary = {{"store", request.store},
                          {"rows", report.rows},
                          {"nonzeros", report.nonzeros},
                          {"segments", list_of(report.segments)},
                          {"tags", list_of(report.tags)},
                          {"rows_left", info.rows},
                          {"removed_rows", info.removed.rows},
                          {"seconds", seconds}};
    print_line(summary);
  }
  session.terminal.say(fmt::format("removed {} rows, {} nonzeros, in {:.2f} s{}", grouped(report.rows),
                                   grouped(report.nonzeros), seconds, what_left(report)));
  session.terminal.say(fmt::format("{}: {} rows are left", request.store, grouped(info.rows)));
  if (info.removed.rows > 0)
    session.terminal.offer(fmt::format("linblock compact {}, to make the files smaller ({} removed rows are in them)",
                                       request.store, grouped(info.removed.rows)));
  else
    session.terminal.offer(fmt::format("linblock info {}", request.store));
}

}  // namespace

void add_remove(Parser& parser, Session& session) {
  Command command = parser.add("remove", "Take rows out of a store: by tag, by segment, or by row ids");
  if (!command.wanted()) return;
  auto request = std::make_shared<RemoveRequest>();
  command.argument("STORE", "The store to take rows out of", request->store);
  command.settings(settings_of(*request));
  const std::vector<std::string> ways = {"--tag", "--segment", "--row-range", "--rows"};
  for (size_t i = 0; i < ways.size(); ++i)
    for (size_t k = 0; k < i; ++k) command.exclude(ways[i], ways[k]);
  add_threads_option(command, request->team);
  add_json_option(command, session);
  add_quiet_option(command, session);
  command.examples(
      "  linblock remove days.store --tag 2026-11-16\n"
      "  linblock remove days.store --segment 1\n"
      "  linblock remove train.store --row-range 100-200 --row-range 400-409\n"
      "  linblock remove train.store --rows outliers.txt\n"
      "  seq 0 99 | linblock remove train.store --rows -\n\n"
      "Running readers keep the version that they opened. Ids are never given out again, so the other rows\n"
      "keep theirs. A segment without rows leaves with its files; other removed rows stay in the files, unused,\n"
      "until 'linblock compact'.");
  command.run([request, command, ways, &session] {
    const bool some = std::any_of(ways.begin(), ways.end(), [&](const std::string& way) { return command.given(way); });
    if (!some || (command.given("--rows") && request->rows.empty()))
      fail(ErrorKind::usage, "which rows? Give --tag TAG, --segment N, --row-range FIRST-LAST or --rows FILE");
    check_rows(*request);
    run_remove(*request, session);
  });
}

}  // namespace linblock::cli
