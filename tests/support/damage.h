// A small store with something of everything, and ways to damage it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/packing.h"

namespace linblock::test {

// A few chunks, a feature map, weights and an appended segment; returns the rows.
inline std::vector<OwnedRow> make_small_store(const std::string& path, const std::string& codec, uint64_t seed = 1) {
  const auto first = sample_rows(320, seed, 0, 200, true);
  const auto second = sample_rows(90, seed + 1, 320, 250);
  pack_rows(first, path, small_options(codec));
  append_rows(second, path, small_options(codec));
  return joined(first, second);
}

inline const std::vector<std::string>& small_store_files() {
  static const std::vector<std::string> names = {
      "FEATURES",           "MANIFEST", "segment-000001.directory", "segment-000001.rows", "segment-000002.directory",
      "segment-000002.rows"};
  return names;
}

inline void open_and_verify(const std::string& path) { verify(Store::open(path), 1); }

// A file whose bits can be flipped in place, one at a time.
class FlippableFile {
 public:
  explicit FlippableFile(const std::string& path) : bytes_(read_file(path)), file_(::open(path.c_str(), O_RDWR)) {
    if (file_ < 0) throw std::runtime_error("cannot open " + path);
  }
  ~FlippableFile() { ::close(file_); }
  FlippableFile(const FlippableFile&) = delete;
  FlippableFile& operator=(const FlippableFile&) = delete;

  size_t size() const { return bytes_.size(); }
  void flip(size_t at, unsigned bit) { put(at, static_cast<char>(bytes_[at] ^ (1 << bit))); }
  void restore(size_t at) { put(at, bytes_[at]); }

 private:
  void put(size_t at, char byte) {
    if (::pwrite(file_, &byte, 1, static_cast<off_t>(at)) != 1) throw std::runtime_error("cannot write");
  }

  std::string bytes_;
  int file_;
};

// Empty where `work` ends in damage whose sentence has all of `parts`; else what is wrong with that.
template <typename Work>
std::string damage_overlooked(const std::vector<std::string>& parts, Work&& work) {
  const std::optional<Error> error = error_of(work);
  if (!error) return "not noticed";
  if (error->kind() != ErrorKind::damaged) return std::string("not called damage: ") + error->what();
  for (const std::string& part : parts)
    if (!contains(words_of(*error), part)) return "no '" + part + "' in: " + words_of(*error);
  return "";
}

}  // namespace linblock::test
