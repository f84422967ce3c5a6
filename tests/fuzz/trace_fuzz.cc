// Any bytes as a trace: refused as bad input, or runs that a page can be made of.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cli/show/report_page.h"
#include "cli/show/trace_reader.h"
#include "files.h"

namespace {

using namespace linblock;
using namespace linblock::cli;
using namespace linblock::fuzz;

void expect_promises(const std::vector<TraceRun>& runs) {
  require(!runs.empty());
  for (const TraceRun& run : runs) {
    require(run.begin.is_object() && (run.end.is_null() || run.end.is_object()));
    require(run.groups >= 1 && run.memory.size() <= 400);
    for (const PassNumbers& pass : run.passes)
      for (const PassColumn column : {kPass, kSeconds, kBytesRead, kResident, kSolve, kWait, kCertify, kRead, kDecode})
        require(!std::isnan(pass[column]));
  }
}

// Nothing in a trace may end the element that holds the data, or begin another.
size_t elements(std::string_view html) { return static_cast<size_t>(std::count(html.begin(), html.end(), '<')); }

void expect_page(const std::vector<TraceRun>& runs) {
  static const size_t kElements = elements(make_report_page({}).html);
  const ReportPage page = make_report_page(runs);
  require(page.html.size() < kMostPageBytes && page.shown_passes <= page.passes);
  require(elements(page.html) == kElements);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryDirectory folder;
  write_file(folder / "trace", {reinterpret_cast<const char*>(data), size});
  try {
    const std::vector<TraceRun> runs = read_trace(folder / "trace");
    expect_promises(runs);
    expect_page(runs);
  } catch (const Error& error) {
    // usage: too many runs for one page; memory: compressed text may ask for any window
    require(error.kind() == ErrorKind::input || error.kind() == ErrorKind::usage || error.kind() == ErrorKind::memory);
  }
  return 0;
}
