#include "base/snapshot.h"

#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/own_files.h"

namespace linblock {

namespace {

// magic; then for each array: name bytes u64, array bytes u64, name, array; at the end the checksum of all before it
constexpr size_t kPiece = size_t{256} << 10;
constexpr uint64_t kMostName = 256;

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

SnapshotWriter::SnapshotWriter(const std::string& path)
    : path_(path), file_(File::create(temporary_path(path), kSnapshotMagic)) {
  write(bytes_of(kSnapshotMagic));
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

void SnapshotWriter::begin_bytes(std::string_view name, uint64_t bytes) {
  unsigned char sizes[16];
  store(sizes, static_cast<uint64_t>(name.size()));
  store(sizes + 8, bytes);
  write(sizes);
  write(bytes_of(name));
}

void SnapshotWriter::add(std::string_view name, std::span<const unsigned char> bytes) {
  begin_bytes(name, bytes.size());
  write(bytes);
}

void SnapshotWriter::commit() {
  unsigned char sum[8];
  store(sum, checksum_.value());
  file_.write_next(sum);
  file_.sync();
  file_.close();
  if (!file_begins_as(path_, kSnapshotMagic)) refuse_foreign(path_);
  rename_path(temporary_path(path_), path_);
  committed_ = true;
  sync_directory(parent_directory(path_));
}

SnapshotReader::SnapshotReader(const std::string& path, std::string remedy)
    : file_(File::open_read(path)), remedy_(std::move(remedy)) {
  const auto refuse = [&] { fail(ErrorKind::damaged, "'{}' is damaged: {}", path, remedy_); };
  const uint64_t size = file_.size();
  if (size < kSnapshotMagic.size() + 8) refuse();
  const uint64_t end = size - 8;
  Checksum sum;
  std::vector<unsigned char> piece(kPiece);
  for (uint64_t at = 0; at < end; at += kPiece) {
    const std::span<unsigned char> part(piece.data(), std::min<uint64_t>(kPiece, end - at));
    file_.read_exactly_at(part, at);
    sum.add(part);
  }
  unsigned char stored[8];
  file_.read_exactly_at(stored, end);
  if (load<uint64_t>(stored) != sum.value()) refuse();
  std::string magic(kSnapshotMagic.size(), ' ');
  file_.read_exactly_at({reinterpret_cast<unsigned char*>(magic.data()), magic.size()}, 0);
  if (magic != kSnapshotMagic) refuse();
  for (uint64_t at = kSnapshotMagic.size(); at < end;) {
    unsigned char sizes[16];
    if (end - at < sizeof(sizes)) refuse();
    file_.read_exactly_at(sizes, at);
    at += sizeof(sizes);
    const uint64_t name_bytes = load<uint64_t>(sizes);
    const uint64_t bytes = load<uint64_t>(sizes + 8);
    if (name_bytes > kMostName || name_bytes > end - at || bytes > end - at - name_bytes) refuse();
    std::string name(name_bytes, ' ');
    file_.read_exactly_at({reinterpret_cast<unsigned char*>(name.data()), name.size()}, at);
    places_[name] = {at + name_bytes, bytes};
    at += name_bytes + bytes;
  }
}

const SnapshotReader::Place& SnapshotReader::place_of(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) fail(ErrorKind::damaged, "'{}' has no '{}': {}", file_.path(), name, remedy_);
  return found->second;
}

void SnapshotReader::read(const std::string& name, std::span<unsigned char> into) const {
  const Place& place = place_of(name);
  if (place.bytes != into.size())
    fail(ErrorKind::damaged, "in '{}', '{}' has {} bytes instead of {}: {}", file_.path(), name, place.bytes,
         into.size(), remedy_);
  file_.read_exactly_at(into, place.offset);
}

void SnapshotReader::read_part(const std::string& name, uint64_t offset, std::span<unsigned char> into) const {
  const Place& place = place_of(name);
  if (offset > place.bytes || into.size() > place.bytes - offset)
    fail(ErrorKind::damaged, "in '{}', '{}' is too short: {}", file_.path(), name, remedy_);
  file_.read_exactly_at(into, place.offset + offset);
}

std::string SnapshotReader::take_text(const std::string& name) const {
  std::string text(place_of(name).bytes, ' ');
  read(name, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
  return text;
}

}  // namespace linblock
