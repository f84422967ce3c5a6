#include "store/index/forest_file.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "store/chunk/format.h"

namespace linblock {

namespace {

constexpr size_t kFlushBytes = size_t{256} << 10;

uint64_t node_seed(uint64_t seal, uint64_t number, uint64_t node) { return mix64(mix64(seal, number), node); }

std::vector<unsigned char> header(uint64_t seal, uint64_t number) {
  std::vector<unsigned char> bytes(format::kForestHeaderBytes, 0);
  std::copy(format::kForestMagic.begin(), format::kForestMagic.end(), bytes.begin());
  store_le(bytes.data() + 8, format::kVersion);
  store_le(bytes.data() + 16, seal);
  store_le(bytes.data() + 24, number);
  return bytes;
}

template <typename T>
void append_all(const std::vector<T>& values, std::vector<unsigned char>& to) {
  const size_t at = to.size();
  to.resize(at + values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(to.data() + at, values.data(), values.size() * sizeof(T));
}

template <typename T>
void take_all(const unsigned char*& from, size_t count, std::vector<T>& values) {
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), from, count * sizeof(T));
  from += count * sizeof(T);
}

}  // namespace

uint64_t ForestNode::memory_bytes() const {
  return sizeof(ForestNode) + children.capacity() * sizeof(ForestChild) + norm2.capacity() * sizeof(double) +
         (begin.capacity() + index.capacity()) * sizeof(uint32_t) +
         (value.capacity() + cosines.capacity()) * sizeof(float);
}

std::vector<unsigned char> encode_node(const ForestNode& node) {
  const size_t children = node.children.size();
  std::vector<unsigned char> bytes(format::kNodeHeaderBytes + children * format::kNodeChildBytes);
  store_le(bytes.data(), static_cast<uint32_t>(children));
  store_le(bytes.data() + 4, static_cast<uint32_t>(node.index.size()));
  for (size_t i = 0; i < children; ++i) {
    const ForestChild& child = node.children[i];
    unsigned char* const to = bytes.data() + format::kNodeHeaderBytes + i * format::kNodeChildBytes;
    store_le(to, child.label_bits);
    store_le(to + 8, node.norm2[i]);
    store_le(to + 16, static_cast<uint32_t>(child.is_page ? 0 : 1));
    store_le(to + 20, child.number);
    store_le(to + 24, child.rows);
    store_le(to + 28, child.radius);
    store_le(to + 32, child.smallest_norm);
    store_le(to + 36, child.largest_norm);
  }
  append_all(node.begin, bytes);
  append_all(node.cosines, bytes);
  append_all(node.index, bytes);
  append_all(node.value, bytes);
  return bytes;
}

ForestNode decode_node(std::span<const unsigned char> bytes, const std::string& where) {
  const auto refuse = [&](const char* why) { fail(ErrorKind::damaged, "{} is damaged: {}", where, why); };
  if (bytes.size() < format::kNodeHeaderBytes) refuse("it is too short");
  const uint64_t children = load_le<uint32_t>(bytes.data());
  const uint64_t nonzeros = load_le<uint32_t>(bytes.data() + 4);
  if (children == 0 || children > format::kMostBranch) refuse("it has no children, or too many");
  if (bytes.size() != format::kNodeHeaderBytes + children * format::kNodeChildBytes +
                          4 * (children + 1 + children * children + 2 * nonzeros))
    refuse("its size is not what it says");
  ForestNode node;
  const unsigned char* from = bytes.data() + format::kNodeHeaderBytes;
  node.children.reserve(children);
  node.norm2.reserve(children);
  for (uint64_t i = 0; i < children; ++i, from += format::kNodeChildBytes) {
    const auto kind = load_le<uint32_t>(from + 16);
    if (kind > 1) refuse("a child is neither a page nor a node");
    node.children.push_back({.is_page = kind == 0,
                             .number = load_le<uint32_t>(from + 20),
                             .rows = load_le<uint32_t>(from + 24),
                             .label_bits = load_le<uint64_t>(from),
                             .radius = load_le<float>(from + 28),
                             .smallest_norm = load_le<float>(from + 32),
                             .largest_norm = load_le<float>(from + 36)});
    node.norm2.push_back(load_le<double>(from + 8));
    const ForestChild& child = node.children.back();
    if (!(child.radius >= 0) || !(child.smallest_norm >= 0) || !(child.smallest_norm <= child.largest_norm) ||
        !(node.norm2.back() >= 0))
      refuse("a child's bounds make no sense");
  }
  take_all(from, children + 1, node.begin);
  take_all(from, children * children, node.cosines);
  take_all(from, nonzeros, node.index);
  take_all(from, nonzeros, node.value);
  if (node.begin.front() != 0 || node.begin.back() != nonzeros || !std::is_sorted(node.begin.begin(), node.begin.end()))
    refuse("its pivots do not follow one another");
  return node;
}

ForestFileWriter::ForestFileWriter(const std::string& index, uint64_t seal, uint64_t number)
    : file_(File::create(forest_path(index, number), format::kForestMagic)),
      seal_(seal),
      info_{.number = number},
      header_(header(seal, number)),
      pending_(header_) {}

void ForestFileWriter::add_tree(uint32_t nodes, std::span<const uint32_t> parents_of_pages) {
  if (page_parents_.size() + parents_of_pages.size() >= kNoNode || places_.size() + nodes >= kNoNode)
    fail(ErrorKind::input, {say("make it with larger `page_bytes`")}, "an index has at most {} pages and nodes",
         kNoNode);
  trees_.emplace_back(nodes, static_cast<uint32_t>(parents_of_pages.size()));
  page_parents_.insert(page_parents_.end(), parents_of_pages.begin(), parents_of_pages.end());
}

void ForestFileWriter::add_node(uint32_t parent, std::span<const unsigned char> body) {
  places_.push_back({.parent = parent,
                     .bytes = static_cast<uint32_t>(body.size()),
                     .checksum = checksum(body, node_seed(seal_, info_.number, places_.size()))});
  pending_.insert(pending_.end(), body.begin(), body.end());
  if (pending_.size() >= kFlushBytes) flush();
}

void ForestFileWriter::flush() {
  file_.write_next(pending_);
  info_.bytes += pending_.size();
  pending_.clear();
}

ForestInfo::Trees ForestFileWriter::finish() {
  flush();
  Checksum sum;
  sum.add(header_);
  const auto end_table = [&] {
    sum.add(pending_);
    flush();
  };
  pending_.reserve(trees_.size() * format::kForestTreeBytes);
  for (const auto& [nodes, pages] : trees_) append_all(std::vector<uint32_t>{nodes, pages}, pending_);
  end_table();
  for (const ForestPlace& place : places_) {
    const size_t at = pending_.size();
    pending_.resize(at + format::kForestNodeBytes);
    store_le(pending_.data() + at, place.checksum);
    store_le(pending_.data() + at + 8, place.parent);
    store_le(pending_.data() + at + 12, place.bytes);
    if (pending_.size() >= kFlushBytes) end_table();
  }
  end_table();
  for (const uint32_t parent : page_parents_) {
    const size_t at = pending_.size();
    pending_.resize(at + format::kForestPageBytes);
    store_le(pending_.data() + at, parent);
    if (pending_.size() >= kFlushBytes) end_table();
  }
  end_table();
  file_.sync();
  file_.close();
  info_.trees = trees_.size();
  info_.nodes = places_.size();
  info_.checksum = sum.value();
  return info_;
}

ForestFile::ForestFile(const std::string& index, const StoreInfo& info, const ForestInfo::Trees& trees, uint64_t pages)
    : seal_(info.seal), number_(trees.number) {
  const std::string path = forest_path(index, trees.number);
  const auto refuse = [&](const char* why) {
    fail(ErrorKind::damaged, {rebuild("index", parent_directory(index))}, "'{}' is damaged: {}", path, why);
  };
  expect_present(path);
  file_ = File::open_read(path);
  if (file_.size() != trees.bytes) refuse("it has another size than the manifest says");
  checked_size(trees.trees, trees.bytes / format::kForestTreeBytes, "'" + path + "': the number of trees");
  checked_size(trees.nodes, std::min<uint64_t>(kNoNode - 1, trees.bytes / format::kForestNodeBytes),
               "'" + path + "': the number of nodes");
  checked_size(pages, std::min<uint64_t>(kNoNode - 1, trees.bytes / format::kForestPageBytes),
               "'" + path + "': the number of pages");
  const uint64_t tables = trees.trees * format::kForestTreeBytes + trees.nodes * format::kForestNodeBytes +
                          pages * format::kForestPageBytes;
  if (tables + format::kForestHeaderBytes > trees.bytes) refuse("its tables do not fit in it");
  std::vector<unsigned char> bytes(format::kForestHeaderBytes);
  file_.read_exactly_at(bytes, 0);
  if (bytes != header(info.seal, trees.number)) refuse("its header is not this index's");
  Checksum sum;
  sum.add(bytes);
  bytes.resize(tables);
  file_.read_exactly_at(bytes, trees.bytes - tables);
  sum.add(bytes);
  if (sum.value() != trees.checksum) refuse("its checksum does not match");

  const unsigned char* from = bytes.data();
  trees_.reserve(trees.trees);
  uint64_t node = 0;
  uint64_t page = 0;
  for (uint64_t i = 0; i < trees.trees; ++i, from += format::kForestTreeBytes) {
    const uint64_t last_node = node + load_le<uint32_t>(from);
    const uint64_t last_page = page + load_le<uint32_t>(from + 4);
    if (last_node == node || last_page == page || last_node > trees.nodes || last_page > pages)
      refuse("its trees do not add up");
    trees_.push_back({.root = static_cast<uint32_t>(node),
                      .first_node = static_cast<uint32_t>(node),
                      .last_node = static_cast<uint32_t>(last_node),
                      .first_page = static_cast<uint32_t>(page),
                      .last_page = static_cast<uint32_t>(last_page)});
    node = last_node;
    page = last_page;
  }
  if (node != trees.nodes || page != pages) refuse("its trees do not add up");
  places_.reserve(trees.nodes);
  offsets_.reserve(trees.nodes);
  uint64_t offset = format::kForestHeaderBytes;
  for (uint64_t i = 0; i < trees.nodes; ++i, from += format::kForestNodeBytes) {
    places_.push_back({.parent = load_le<uint32_t>(from + 8),
                       .bytes = load_le<uint32_t>(from + 12),
                       .checksum = load_le<uint64_t>(from)});
    offsets_.push_back(offset);
    offset += places_.back().bytes;
  }
  if (offset + tables != trees.bytes) refuse("its nodes do not add up");
  page_parents_.resize(pages);
  if (pages > 0) std::memcpy(page_parents_.data(), from, pages * sizeof(uint32_t));
  for (const ForestTree& tree : trees_) {
    for (uint32_t i = tree.first_node; i < tree.last_node; ++i)
      if (i == tree.root ? places_[i].parent != kNoNode : places_[i].parent < tree.first_node || places_[i].parent >= i)
        refuse("a node's parent is not above it");
    for (uint32_t i = tree.first_page; i < tree.last_page; ++i)
      if (page_parents_[i] < tree.first_node || page_parents_[i] >= tree.last_node)
        refuse("a page's parent is not in its tree");
  }
}

ForestNode ForestFile::read_node(uint32_t node) const {
  const ForestPlace& place = places_[node];
  thread_local std::vector<unsigned char> bytes;
  bytes.resize(place.bytes);
  file_.read_exactly_at(bytes, offsets_[node]);
  const std::string where = fmt::format("'{}', node {} at offset {},", file_.path(), node, offsets_[node]);
  if (checksum(bytes, node_seed(seal_, number_, node)) != place.checksum)
    fail(ErrorKind::damaged, {rebuild("index", parent_directory(parent_directory(file_.path())))},
         "{} is damaged: its checksum does not match", where);
  return decode_node(bytes, where);
}

uint64_t ForestFile::table_bytes() const {
  return trees_.capacity() * sizeof(ForestTree) + places_.capacity() * sizeof(ForestPlace) +
         offsets_.capacity() * sizeof(uint64_t) + page_parents_.capacity() * sizeof(uint32_t);
}

}  // namespace linblock
