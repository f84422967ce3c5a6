#include "learn/model_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace linblock {

namespace {
constexpr std::string_view kLineBeginning = "# ";
constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
}  // namespace

Json ModelNames::json() const { return {{"count", count}, {"bytes", bytes}}; }

ModelNames ModelNames::from(const Json& json) {
  const auto number = [&](const char* name) {
    const Json& value = json.at(name);
    if (!value.is_unsigned()) throw JsonError("it has an impossible number of names");
    return value.whole();
  };
  const ModelNames names{.count = number("count"), .bytes = number("bytes")};
  if (names.empty() || !names.fit()) throw JsonError("it has an impossible number of names");
  return names;
}

std::string ModelNames::line(uint64_t index, std::string_view name) {
  return fmt::format("{}{} {}\n", kLineBeginning, index, name);
}

void ModelNames::each(const File& file, uint64_t begin, const FeatureNameVisitor& visit) const {
  const auto refuse = [&] {
    fail(ErrorKind::damaged,
         "'{}' is not a usable model: its names of features are not those that were written; train it again or restore "
         "it from a copy",
         file.path());
  };
  std::string piece;
  std::optional<uint64_t> last;
  uint64_t seen = 0;
  for (uint64_t at = 0; at < bytes;) {
    const size_t kept = piece.size();
    piece.resize(kept + std::min(kPieceBytes, bytes - at));
    file.read_exactly_at({reinterpret_cast<unsigned char*>(piece.data()) + kept, piece.size() - kept}, begin + at);
    at += piece.size() - kept;
    std::string_view rest = piece;
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const std::string_view text = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      uint64_t index = 0;
      const char* const first = text.data() + std::min(text.size(), kLineBeginning.size());
      const auto [after, error] = std::from_chars(first, text.data() + text.size(), index);
      if (error != std::errc() || after == text.data() + text.size()) refuse();
      const std::string_view name(after + 1, static_cast<size_t>(text.data() + text.size() - after - 1));
      if (name.empty() || !wrong_with_feature_name(name).empty() || (last && index <= *last)) refuse();
      if (line(index, name) != fmt::format("{}\n", text)) refuse();
      last = index;
      ++seen;
      visit(index, name);
    }
    piece.erase(0, piece.size() - rest.size());
  }
  if (!piece.empty() || seen != count) refuse();
}

FeatureNameSource ModelNames::source(std::shared_ptr<const File> file, uint64_t begin) const {
  return [names = *this, file = std::move(file), begin](const FeatureNameVisitor& visit) {
    names.each(*file, begin, visit);
  };
}

}  // namespace linblock
