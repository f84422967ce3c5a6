#include "solve/core/plan.h"

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/memory.h"
#include "solve/methods.h"

namespace linblock {

uint64_t Plan::bytes(std::string_view part) const {
  const auto entry =
      std::find_if(parts.begin(), parts.end(), [&](const MemoryPart& candidate) { return candidate.name == part; });
  return entry == parts.end() ? 0 : entry->bytes;
}

std::string_view Plan::method_name() const { return Methods::kNames[method]; }

std::string Plan::describe() const {
  const char* const what = columns ? "columns" : "rows";
  std::string text = index                       ? "pages of the index are read as they are asked for"
                     : rows == RowsHeld::decoded ? fmt::format("all {} stay in memory, decoded", what)
                     : rows == RowsHeld::encoded ? fmt::format("all {} stay in memory, encoded", what)
                                                 : fmt::format("{} are read in each pass", what);
  std::string_view separator = "; ";
  for (const MemoryPart& part : parts) {
    text += fmt::format("{}{} {}", separator, part.name, human_bytes(part.bytes));
    if (part.name == "duals" && duals_in_file) text += " (the others in a file)";
    separator = ", ";
  }
  if (!index) text += fmt::format(", {} {} per block", chunks_per_block, chunks_per_block == 1 ? "chunk" : "chunks");
  return tasks > 1 ? fmt::format("{} tasks in the same pass; ", tasks) + text : text;
}

std::string features_words(const Problem& problem, size_t classes) {
  const size_t tasks = problem.tasks.size();
  return grouped(problem.weights()) + " features" +
         (classes > 1 ? fmt::format(" for each of {} classes", classes) : "") +
         (tasks > 1 ? fmt::format(" for each of {} tasks", tasks) : "");
}

void refuse_memory(const Plan& plan, uint64_t needed, uint64_t allowed) {
  std::string text;
  MemoryPart largest;
  for (const MemoryPart& part : plan.parts) {
    text += fmt::format(", {}{}{} {}", part.name, part.of.empty() ? "" : " of ", part.of, human_bytes(part.bytes));
    if (part.bytes > largest.bytes) largest = part;
  }
  std::vector<Remedy> remedies = {give_at_least("memory", size_of_at_least(needed))};
  // To make this part smaller does not help if the program alone is too large.
  if (largest.bytes > kProgramBytes || needed - largest.bytes <= allowed)
    remedies.insert(remedies.end(), largest.remedies.begin(), largest.remedies.end());
  fail(ErrorKind::memory, std::move(remedies),
       "training needs {}, and `memory` allows {}: the program {}{}. The largest part: {}", human_bytes(needed),
       human_bytes(allowed), human_bytes(kProgramBytes), text,
       largest.bytes > kProgramBytes ? largest.name : "the program itself");
}

// "weights 4000\nduals 2700\n"
std::string Plan::parts_text() const {
  std::string text;
  for (const MemoryPart& part : parts) text += fmt::format("{} {}\n", part.name, part.bytes);
  return text;
}

void Plan::set_parts(std::string_view text) {
  parts.clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t blank = line.rfind(' ');
    uint64_t bytes = 0;
    if (blank != std::string_view::npos) std::from_chars(line.data() + blank + 1, line.data() + line.size(), bytes);
    add_part(line.substr(0, std::min(blank, line.size())), bytes);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool Plan::is_possible() const {
  return method < Methods::kSize && chunks_per_block > 0 && inner > 0 && accumulators > 0;
}

}  // namespace linblock
