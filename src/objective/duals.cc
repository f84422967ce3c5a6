#include "objective/duals.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"
#include "base/random.h"

namespace linblock {

namespace {

constexpr uint64_t kChecksumBytes = 8;

}  // namespace

Duals::Duals(const Store& store) : begin_(row_begins(store)) {
  at_ = begin_;
  alpha_.assign(begin_.back(), 0);
  passes_out_.assign(begin_.back(), 0);
}

Duals::Duals(const Store& store, const std::string& path) : begin_(row_begins(store)) {
  at_.assign(begin_.size(), 0);
  version_.assign(store.chunks().size(), 0);
  file_ = File::open_update(path);
}

// Odd and even versions of all pages, one after the other; a page is alphas, rests, checksum.
uint64_t Duals::place_of(uint32_t chunk, uint32_t version) const {
  const uint64_t all = begin_.back() * kBytesPerRow + (begin_.size() - 1) * kChecksumBytes;
  return (version & 1) * all + begin_[chunk] * kBytesPerRow + chunk * kChecksumBytes;
}

std::span<unsigned char> Duals::bytes_of(uint32_t chunk) {
  page_bytes_.resize((begin_[chunk + 1] - begin_[chunk]) * kBytesPerRow + kChecksumBytes);
  return page_bytes_.span();
}

void Duals::fetch(std::span<const uint32_t> chunks) {
  if (!in_file()) return;
  size_t rows = 0;
  for (const uint32_t chunk : chunks) {
    at_[chunk] = rows;
    rows += begin_[chunk + 1] - begin_[chunk];
  }
  alpha_.resize(rows);
  passes_out_.resize(rows);
  for (const uint32_t chunk : chunks) {
    const std::span<double> alphas = page(chunk);
    const std::span<uint8_t> page_passes = passes_out(chunk);
    if (version_[chunk] == 0) {
      std::fill(alphas.begin(), alphas.end(), 0.0);
      std::fill(page_passes.begin(), page_passes.end(), uint8_t{0});
      continue;
    }
    const std::span<unsigned char> bytes = bytes_of(chunk);
    file_.read_exactly_at(bytes, place_of(chunk, version_[chunk]));
    const size_t checked = bytes.size() - kChecksumBytes;
    if (checksum(bytes.first(checked), mix64(version_[chunk], chunk)) != load_le<uint64_t>(bytes.data() + checked))
      fail(ErrorKind::damaged, {start_over()}, "'{}' is damaged: the duals of chunk {} have a wrong checksum",
           file_.path(), chunk);
    std::memcpy(alphas.data(), bytes.data(), alphas.size_bytes());
    std::memcpy(page_passes.data(), bytes.data() + alphas.size_bytes(), page_passes.size());
  }
}

void Duals::put_back(std::span<const uint32_t> chunks, uint32_t version) {
  if (!in_file()) return;
  for (const uint32_t chunk : chunks) {
    const std::span<double> alphas = page(chunk);
    const std::span<uint8_t> page_passes = passes_out(chunk);
    const std::span<unsigned char> bytes = bytes_of(chunk);
    std::memcpy(bytes.data(), alphas.data(), alphas.size_bytes());
    std::memcpy(bytes.data() + alphas.size_bytes(), page_passes.data(), page_passes.size());
    const size_t checked = bytes.size() - kChecksumBytes;
    linblock::store_le(bytes.data() + checked, checksum(bytes.first(checked), mix64(version, chunk)));
    file_.write_at(bytes, place_of(chunk, version));
    version_[chunk] = version;
  }
}

Duals Duals::scaled(double factor) const {
  Duals copy;
  copy.begin_ = begin_;
  copy.at_ = at_;
  copy.alpha_.assign(alpha_.size(), 0);
  copy.passes_out_.assign(passes_out_.size(), 0);
  copy.add_scaled(*this, factor);
  return copy;
}

void Duals::add_scaled(const Duals& addend, double factor) {
  for (size_t i = 0; i < alpha_.size(); ++i) alpha_[i] += factor * addend.alpha_[i];
}

void Duals::sync() const {
  if (in_file()) file_.sync();
}

}  // namespace linblock
