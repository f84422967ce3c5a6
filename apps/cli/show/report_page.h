// Runs of training as one HTML page that needs nothing beside it.
#pragma once

#include <span>
#include <string>

#include "cli/show/trace_reader.h"

namespace linblock::cli {

inline constexpr size_t kMostPageBytes = 300'000;

struct ReportPage {
  std::string html;
  size_t passes = 0;        // in the traces
  size_t shown_passes = 0;  // on the page; fewer where there are too many for kMostPageBytes
};

ReportPage make_report_page(std::span<const TraceRun> runs);

}  // namespace linblock::cli
