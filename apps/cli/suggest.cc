#include "cli/suggest.h"

#include <algorithm>
#include <numeric>

namespace linblock::cli {

namespace {

// Insertions, deletions and replacements that turn one word into the other.
size_t edits(const std::string& from, const std::string& to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& typed, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string& word : known) {
    const size_t distance = typed.size() > 2 && word.starts_with(typed) ? 1 : edits(typed, word);
    if (distance < least) {
      least = distance;
      best = word;
    }
  }
  return best;
}

}  // namespace linblock::cli
