#include "store/core/feature_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/error.h"
#include "store/text/line_reader.h"
#include "store/text/utf8.h"

namespace linblock {

namespace {

constexpr size_t kPieceBytes = size_t{64} << 10;
constexpr size_t kLengthBytes = sizeof(uint16_t);

std::array<unsigned char, format::kFeatureNamesHeaderBytes> header_of(const FeatureNamesInfo& info) {
  std::array<unsigned char, format::kFeatureNamesHeaderBytes> header{};
  std::copy(format::kFeatureNamesMagic.begin(), format::kFeatureNamesMagic.end(), header.begin());
  store_le(header.data() + 8, format::kVersion);
  store_le(header.data() + 16, info.count);
  return header;
}

}  // namespace

std::string wrong_with_feature_name(std::string_view name) {
  if (name.size() > format::kMostFeatureNameBytes)
    return fmt::format("it is longer than {} bytes", format::kMostFeatureNameBytes);
  while (!name.empty()) {
    const CodePoint point = first_code_point(name);
    if (point.bytes == 0) return "it is not UTF-8";
    if (is_control(point.value)) return "it has a control character";
    if (point.value == 0xFEFF) return "it has a byte order mark; save the file without one";
    name.remove_prefix(point.bytes);
  }
  return "";
}

// The header has the number of names, which is known at the end. The checksum covers the header, so the file is read
// once more.
FeatureNamesInfo write_feature_names(const std::string& text, const std::string& to) {
  LineReader lines(text, "name of a feature");
  File file = File::create(to, format::kFeatureNamesMagic);
  FeatureNamesInfo info{.bytes = format::kFeatureNamesHeaderBytes};
  std::vector<unsigned char> piece;
  const auto flush = [&] {
    file.write_at(piece, info.bytes);
    info.bytes += piece.size();
    piece.clear();
  };
  file.write_at(header_of(info), 0);
  const auto put = [&](std::string_view name) {
    if (piece.size() > kPieceBytes) flush();
    std::array<unsigned char, kLengthBytes> length{};
    store_le(length.data(), static_cast<uint16_t>(name.size()));
    piece.insert(piece.end(), length.begin(), length.end());
    piece.insert(piece.end(), name.begin(), name.end());
    ++info.count;
  };
  std::string_view name;
  while (lines.next(name)) {
    if (const std::string wrong = wrong_with_feature_name(name); !wrong.empty())
      fail(ErrorKind::input, "{}:{}: this is no name of a feature: {}", text, lines.number(), wrong);
    if (lines.number() > format::kLargestIndex)
      fail(ErrorKind::input, "{}:{}: there cannot be so many features", text, lines.number());
    while (info.count + 1 < lines.number()) put("");
    put(name);
    ++info.named;
  }
  if (info.named == 0)
    fail(ErrorKind::input, {leave_out("names")}, "'{}' has no names: one on each line is expected", text);
  flush();
  file.write_at(header_of(info), 0);
  file.sync();
  file.close();
  Checksum sum;
  const File written = File::open_read(to);
  for (uint64_t at = 0; at < info.bytes; at += piece.size()) {
    piece.resize(std::min<uint64_t>(kPieceBytes, info.bytes - at));
    written.read_exactly_at(piece, at);
    sum.add(piece);
  }
  info.checksum = sum.value();
  return info;
}

FeatureNames FeatureNames::open(const std::string& store, const StoreInfo& info) {
  FeatureNames names;
  if (info.feature_names.count == 0) return names;
  const std::string path = feature_names_path(store);
  expect_present(path);
  names.file_ = std::make_shared<const File>(File::open_read(path));
  names.info_ = info.feature_names;
  names.index_base_ = static_cast<uint64_t>(info.index_base);
  if (names.file_->size() != names.info_.bytes)
    fail(ErrorKind::damaged, "'{}' is damaged: it has {} bytes instead of {}", path, names.file_->size(),
         names.info_.bytes);
  return names;
}

void FeatureNames::each(const FeatureNameVisitor& visit) const {
  if (empty()) return;
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::damaged, "'{}' is damaged: {}; restore the store from a copy or pack the data again", file_->path(),
         why);
  };
  Checksum sum;
  std::vector<unsigned char> piece;
  size_t used = 0;
  uint64_t at = 0;  // of what was not read yet
  // So many bytes, as long as nothing else is asked for.
  const auto take = [&](size_t bytes) {
    if (piece.size() - used < bytes) {
      piece.erase(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(used));
      used = 0;
      const size_t kept = piece.size();
      piece.resize(kept + std::min<uint64_t>(kPieceBytes, info_.bytes - at));
      const std::span<unsigned char> more = std::span(piece).subspan(kept);
      file_->read_exactly_at(more, at);
      sum.add(more);
      at += more.size();
      if (piece.size() < bytes) refuse("it ends within a name");
    }
    used += bytes;
    return std::span<const unsigned char>(piece).subspan(used - bytes, bytes);
  };
  const auto expected = header_of(info_);
  const auto header = take(expected.size());
  if (!std::equal(header.begin(), header.end(), expected.begin())) refuse("its header is not that of the names");
  uint64_t named = 0;
  for (uint64_t place = 0; place < info_.count; ++place) {
    const size_t length = load_le<uint16_t>(take(kLengthBytes).data());
    if (length == 0) continue;
    if (length > format::kMostFeatureNameBytes) refuse("it has a name that is too long");
    const std::span<const unsigned char> bytes = take(length);
    const std::string_view name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const std::string wrong = wrong_with_feature_name(name); !wrong.empty())
      refuse(fmt::format("name {}: {}", place + 1, wrong));
    ++named;
    visit(place + index_base_, name);
  }
  if (at != info_.bytes || used != piece.size() || named != info_.named) refuse("it does not hold what it should");
  if (sum.value() != info_.checksum) refuse("its checksum does not match");
}

void FeatureNames::check() const {
  each([](uint64_t, std::string_view) {});
}

}  // namespace linblock
