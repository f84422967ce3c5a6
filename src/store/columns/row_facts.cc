#include "store/columns/row_facts.h"

#include <algorithm>
#include <functional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

constexpr size_t kPieceRows = 4096;

size_t fact_bytes(const RowFactsInfo& info) { return info.weighted ? format::kWeightedFactBytes : format::kFactBytes; }

std::vector<unsigned char> header(uint64_t seal, uint64_t number) {
  std::vector<unsigned char> bytes(format::kRowFactsHeaderBytes, 0);
  std::copy(format::kRowFactsMagic.begin(), format::kRowFactsMagic.end(), bytes.begin());
  store_le(bytes.data() + 8, format::kVersion);
  store_le(bytes.data() + 16, seal);
  store_le(bytes.data() + 24, number);
  return bytes;
}

// Hands out the rows' bytes piece by piece; they are good only once all have been read.
void read_pieces(const std::string& columns, const StoreInfo& info,
                 const std::function<void(std::span<const unsigned char>)>& take) {
  const RowFactsInfo& facts = info.row_facts;
  const std::string path = row_facts_path(columns, facts.number);
  const auto refuse = [&](const char* why) {
    fail(ErrorKind::damaged, {rebuild("columns", parent_directory(columns))}, "'{}' is damaged: {}", path, why);
  };
  expect_present(path);
  const File file = File::open_read(path);
  if (file.size() != facts.bytes()) refuse("it has another size than the manifest says");
  std::vector<unsigned char> bytes(format::kRowFactsHeaderBytes);
  file.read_exactly_at(bytes, 0);
  if (bytes != header(info.seal, facts.number)) refuse("its header is not this store's");
  Checksum sum;
  sum.add(bytes);
  const uint64_t piece = kPieceRows * fact_bytes(facts);
  for (uint64_t at = format::kRowFactsHeaderBytes; at < facts.bytes(); at += piece) {
    bytes.resize(std::min(piece, facts.bytes() - at));
    file.read_exactly_at(bytes, at);
    sum.add(bytes);
    take(bytes);
  }
  if (sum.value() != facts.checksum) refuse("its checksum does not match");
}

}  // namespace

RowFactsWriter::RowFactsWriter(const std::string& columns, uint64_t seal, uint64_t number, bool weighted)
    : file_(File::create(row_facts_path(columns, number), format::kRowFactsMagic)),
      info_{.number = number, .weighted = weighted},
      bytes_(header(seal, number)) {
  bytes_.reserve(bytes_.size() + kPieceRows * fact_bytes(info_));
}

void RowFactsWriter::add(const Row& row) {
  const size_t at = bytes_.size();
  bytes_.resize(at + fact_bytes(info_));
  unsigned char* const to = bytes_.data() + at;
  store_le(to, row.id);
  store_le(to + 8, row.label);
  if (info_.weighted) store_le(to + 12, row.weight);
  if (++info_.rows % kPieceRows == 0) flush();
}

void RowFactsWriter::flush() {
  file_.write_next(bytes_);
  checksum_.add(bytes_);
  bytes_.clear();
}

RowFactsInfo RowFactsWriter::finish() {
  flush();
  file_.sync();
  file_.close();
  info_.checksum = checksum_.value();
  return info_;
}

RowFacts read_row_facts(const std::string& columns, const StoreInfo& info) {
  RowFacts facts;
  const size_t row_bytes = fact_bytes(info.row_facts);
  // The file's size is looked at before the first piece comes, so the memory asked for is no more than the file.
  read_pieces(columns, info, [&](std::span<const unsigned char> bytes) {
    if (facts.ids.empty()) {
      facts.ids.reserve(info.row_facts.rows);
      facts.labels.reserve(info.row_facts.rows);
      if (info.row_facts.weighted) facts.weights.reserve(info.row_facts.rows);
    }
    for (const unsigned char* at = bytes.data(); at < bytes.data() + bytes.size(); at += row_bytes) {
      facts.ids.push_back(load_le<uint64_t>(at));
      facts.labels.push_back(load_le<int32_t>(at + 8));
      if (info.row_facts.weighted) facts.weights.push_back(load_le<float>(at + 12));
    }
  });
  return facts;
}

void check_row_facts(const std::string& columns, const StoreInfo& info) {
  read_pieces(columns, info, [](std::span<const unsigned char>) {});
}

}  // namespace linblock
