#include "base/fields.h"

#include <fmt/format.h>

namespace linblock {

namespace {

std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

}  // namespace

std::string numbered(std::string_view name, size_t number) { return fmt::format("{}.{}", name, number); }

std::string FieldWriter::path_of(std::string_view name) const { return joined(path_, name); }

FieldReader::FieldReader(const std::string& path, std::vector<Remedy> remedies)
    : open_(std::make_shared<Open>(Open{.file = SnapshotReader(path, std::move(remedies))})) {}

std::string FieldReader::path_of(std::string_view name) const { return joined(path_, name); }

std::string FieldReader::take_text(std::string_view name) {
  const std::string path = path_of(name);
  std::string text = open_->file.take_text(path);
  open_->taken.insert(path);
  return text;
}

uint64_t FieldReader::count_at(const std::string& path, ElementType type) {
  const uint64_t count = open_->file.count(path, type);
  open_->taken.insert(path);
  return count;
}

void FieldReader::expect(const std::string& path, ElementType type, uint64_t count) {
  open_->file.expect(path, type, count);
  open_->taken.insert(path);
}

void FieldReader::finish() const {
  for (const std::string& name : open_->file.names())
    if (!open_->taken.contains(name))
      open_->file.refuse(fmt::format("has the field '{}', which this version does not know", name));
}

void FieldReader::refuse_value(std::string_view name) const { refuse_path(path_of(name)); }

void FieldReader::refuse_path(const std::string& path) const {
  open_->file.refuse(fmt::format("has a value in the field '{}' that is not possible", path));
}

}  // namespace linblock
