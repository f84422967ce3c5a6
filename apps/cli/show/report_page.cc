#include "cli/show/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "cli/report_page_text.h"

namespace linblock::cli {

namespace {

constexpr size_t kMostPasses = 2000;  // a run: more than a screen has dots
constexpr size_t kLeastPasses = 8;

// Six digits are more than anybody reads off a page.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  value = std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

// Groups of neighbors become one pass each: the last of them, or one with a certificate; the first and the last pass
// stay. Seconds are those of the whole group, and `counts` says how many passes it has.
std::vector<PassNumbers> thinned(const std::vector<PassNumbers>& passes, size_t most, std::vector<size_t>& counts) {
  std::vector<PassNumbers> kept;
  const size_t groups = std::min(passes.size(), most);
  for (size_t group = 0, from = 0; group < groups; ++group) {
    // The first group is the first pass alone.
    const size_t to = groups == 1 ? passes.size() : 1 + group * (passes.size() - 1) / (groups - 1);
    size_t chosen = to - 1;
    for (size_t i = from; i < to && group + 1 < groups; ++i)
      if (passes[i][kCertified] > 0) chosen = i;
    PassNumbers numbers = passes[chosen];
    for (size_t column = kSolve; column < kPassColumns; ++column) {
      numbers[column] = 0;
      for (size_t i = from; i < to; ++i) numbers[column] += passes[i][column];
    }
    kept.push_back(numbers);
    counts.push_back(to - from);
    from = to;
  }
  return kept;
}

Json run_json(const TraceRun& run, size_t most, size_t& shown) {
  std::vector<size_t> counts;
  const std::vector<PassNumbers> passes = thinned(run.passes, most, counts);
  shown += passes.size();
  Json columns = {{"passes", counts}};
  for (size_t column = 0; column < kPassColumns; ++column) {
    Json& values = columns[kPassColumnNames[column]] = Json::array();
    for (const PassNumbers& numbers : passes) values.push_back(rounded(numbers[column]));
  }
  Json memory = Json::array();
  const size_t step = run.memory.size() / most + 1;
  for (size_t from = 0; from < run.memory.size(); from += step) {
    const size_t to = std::min(from + step, run.memory.size());
    const auto peak =
        std::max_element(run.memory.begin() + static_cast<long>(from), run.memory.begin() + static_cast<long>(to),
                         [](const auto& left, const auto& right) { return left.second < right.second; });
    memory.push_back({rounded(peak->first), rounded(peak->second)});
  }
  return {{"trace", run.path},    {"begin", run.begin},     {"end", run.end},
          {"groups", run.groups}, {"resumed", run.resumed}, {"pass_lines", run.passes.size()},
          {"columns", columns},   {"memory", memory}};
}

}  // namespace

ReportPage make_report_page(std::span<const TraceRun> runs) {
  constexpr std::string_view kMark = "{{data}}";
  const std::string_view page = kReportPageText;
  const size_t mark = page.find(kMark);
  ReportPage report;
  for (const TraceRun& run : runs) report.passes += run.passes.size();
  for (size_t most = kMostPasses; most >= kLeastPasses; most = most * 3 / 4) {
    Json data = Json::array();
    report.shown_passes = 0;
    for (const TraceRun& run : runs) data.push_back(run_json(run, most, report.shown_passes));
    report.html = page.substr(0, mark);
    // Names of files may be no UTF-8; and nothing in the data may end the element that it stands in.
    for (const char letter : data.dump())
      if (letter == '<')
        report.html += "\\u003c";
      else
        report.html += letter;
    report.html += page.substr(mark + kMark.size());
    if (report.html.size() < kMostPageBytes) return report;
  }
  fail(ErrorKind::usage, "{} runs are too many for one page, which is to stay below {} KB: name fewer traces",
       runs.size(), kMostPageBytes / 1000);
}

}  // namespace linblock::cli
