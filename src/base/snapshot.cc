#include "base/snapshot.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/own_files.h"

namespace linblock {

namespace {

// magic; then for each array: name bytes u32, type in four characters, array bytes u64, name, array; at the end the
// checksum of all before it
constexpr size_t kPiece = size_t{256} << 10;
constexpr uint64_t kMostName = 256;
constexpr size_t kHeaderBytes = 16;
constexpr size_t kTypeBytes = 4;

struct TypeFacts {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<TypeFacts, 10> kTypes = {{{"f64", 8},
                                               {"f32", 4},
                                               {"u64", 8},
                                               {"u32", 4},
                                               {"u16", 2},
                                               {"u8", 1},
                                               {"i64", 8},
                                               {"i32", 4},
                                               {"bool", 1},
                                               {"text", 1}}};
static_assert(kTypes.size() == static_cast<size_t>(ElementType::text) + 1);

std::optional<ElementType> type_called(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  return {};
}

}  // namespace

std::string_view name_of(ElementType type) { return kTypes[static_cast<size_t>(type)].name; }

uint64_t bytes_of(ElementType type) { return kTypes[static_cast<size_t>(type)].bytes; }

SnapshotWriter::SnapshotWriter(const std::string& path)
    : path_(path), file_(File::create(temporary_path(path), kSnapshotFamily)) {
  write(as_raw(std::span(kSnapshotMagic)));
}

SnapshotWriter::~SnapshotWriter() {
  if (committed_) return;
  try {
    file_ = File();
    remove_file(temporary_path(path_));
  } catch (...) {  // NOLINT(bugprone-empty-catch): what brought us here matters more
  }
}

void SnapshotWriter::write(std::span<const unsigned char> bytes) {
  file_.write_next(bytes);
  checksum_.add(bytes);
}

void SnapshotWriter::begin(std::string_view name, ElementType type, uint64_t count) {
  if (due_ != 0 || name.size() > kMostName)
    fail(ErrorKind::damaged, "'{}': the array '{}' cannot be written here", path_, name);
  due_ = count * bytes_of(type);
  std::array<unsigned char, kHeaderBytes> header{};
  store_le(header.data(), static_cast<uint32_t>(name.size()));
  std::copy(name_of(type).begin(), name_of(type).end(), header.begin() + 4);
  store_le(header.data() + 4 + kTypeBytes, due_);
  write(header);
  write(as_raw(std::span(name)));
}

void SnapshotWriter::add(std::span<const unsigned char> bytes) {
  if (bytes.size() > due_) fail(ErrorKind::damaged, "'{}': an array is longer than it was to be", path_);
  due_ -= bytes.size();
  write(bytes);
}

void SnapshotWriter::put_text(std::string_view name, std::string_view text) {
  begin(name, ElementType::text, text.size());
  add(as_raw(std::span(text)));
}

void SnapshotWriter::commit() {
  if (due_ != 0) fail(ErrorKind::damaged, "'{}': an array is shorter than it was to be", path_);
  unsigned char sum[8];
  store_le(sum, checksum_.value());
  file_.write_next(sum);
  file_.sync();
  file_.close();
  if (!file_begins_as(path_, kSnapshotFamily)) refuse_foreign(path_);
  rename_path(temporary_path(path_), path_);
  committed_ = true;
  sync_directory(parent_directory(path_));
}

SnapshotReader::SnapshotReader(const std::string& path, std::vector<Remedy> remedies)
    : file_(File::open_read(path)), remedies_(std::move(remedies)) {
  const uint64_t size = file_.size();
  if (size < kSnapshotMagic.size() + sizeof(uint64_t)) refuse("is damaged");
  const uint64_t end = size - sizeof(uint64_t);
  check_sum(end);
  std::string magic(kSnapshotMagic.size(), ' ');
  file_.read_exactly_at(as_writable_raw(std::span(magic)), 0);
  if (!magic.starts_with(kSnapshotFamily)) refuse("is damaged");
  if (magic != kSnapshotMagic)
    refuse(magic < kSnapshotMagic ? "was written by an older version of linblock"
                                  : "was written by a newer version of linblock");
  read_places(end);
}

void SnapshotReader::check_sum(uint64_t end) const {
  Checksum sum;
  std::vector<unsigned char> piece(kPiece);
  for (uint64_t at = 0; at < end; at += kPiece) {
    const std::span<unsigned char> part(piece.data(), std::min<uint64_t>(kPiece, end - at));
    file_.read_exactly_at(part, at);
    sum.add(part);
  }
  unsigned char stored[8];
  file_.read_exactly_at(stored, end);
  if (load_le<uint64_t>(stored) != sum.value()) refuse("is damaged");
}

void SnapshotReader::read_places(uint64_t end) {
  for (uint64_t at = kSnapshotMagic.size(); at < end;) {
    std::array<unsigned char, kHeaderBytes> header{};
    if (end - at < header.size()) refuse("is damaged");
    file_.read_exactly_at(header, at);
    at += header.size();
    const uint64_t name_bytes = load_le<uint32_t>(header.data());
    const std::string_view type_name(reinterpret_cast<const char*>(header.data()) + 4, kTypeBytes);
    const auto type = type_called(type_name.substr(0, type_name.find('\0')));
    const uint64_t bytes = load_le<uint64_t>(header.data() + 4 + kTypeBytes);
    if (name_bytes > kMostName || name_bytes > end - at || bytes > end - at - name_bytes) refuse("is damaged");
    std::string name(name_bytes, ' ');
    file_.read_exactly_at(as_writable_raw(std::span(name)), at);
    if (!type || bytes % bytes_of(*type) != 0) refuse(fmt::format("has no known type for the field '{}'", name));
    if (!places_.try_emplace(name, FieldPlace{*type, at + name_bytes, bytes}).second)
      refuse(fmt::format("has the field '{}' twice", name));
    at += name_bytes + bytes;
  }
}

void SnapshotReader::refuse(std::string_view what) const {
  fail(ErrorKind::damaged, remedies_, "'{}' {}", file_.path(), what);
}

std::vector<unsigned char> SnapshotReader::bytes(const std::string& name) const {
  const FieldPlace& place = places_.at(name);
  std::vector<unsigned char> bytes(place.bytes);
  if (!bytes.empty()) file_.read_exactly_at(bytes, place.offset);
  return bytes;
}

std::vector<std::string> SnapshotReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

const SnapshotReader::FieldPlace& SnapshotReader::place_of(const std::string& name, ElementType type) const {
  const auto entry = places_.find(name);
  if (entry == places_.end()) refuse(fmt::format("lacks the field '{}'", name));
  if (entry->second.type != type)
    refuse(fmt::format("has {} in the field '{}' instead of {}", name_of(entry->second.type), name, name_of(type)));
  return entry->second;
}

uint64_t SnapshotReader::count(const std::string& name, ElementType type) const {
  return place_of(name, type).bytes / bytes_of(type);
}

void SnapshotReader::expect(const std::string& name, ElementType type, uint64_t count) const {
  if (const uint64_t saved = this->count(name, type); saved != count)
    refuse(fmt::format("has {} values in the field '{}' instead of {}", saved, name, count));
}

void SnapshotReader::read(const std::string& name, ElementType type, uint64_t first,
                          std::span<unsigned char> into) const {
  const FieldPlace& place = place_of(name, type);
  const uint64_t all = place.bytes / bytes_of(type);
  if (first > all || into.size() / bytes_of(type) > all - first)
    refuse(fmt::format("has too few values in the field '{}'", name));
  if (!into.empty()) file_.read_exactly_at(into, place.offset + first * bytes_of(type));
}

std::string SnapshotReader::take_text(const std::string& name) const {
  std::string text(count(name, ElementType::text), ' ');
  read(name, ElementType::text, 0, as_writable_raw(std::span(text)));
  return text;
}

}  // namespace linblock
