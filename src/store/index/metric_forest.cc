#include "store/index/metric_forest.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace linblock {

ForestState forest_state(const StoreInfo& rows, const StoreInfo& index) {
  if (index.axis != Axis::forest) return ForestState::stale;
  if (index.rows_id == rows.id) return ForestState::fresh;
  const ForestInfo& forest = index.forest;
  const bool same_rows = forest.rows_seal == rows.seal && forest.removed_number == rows.removed.number &&
                         forest.removed_checksum == rows.removed.checksum &&
                         index.features_checksum == rows.features_checksum;
  const auto covers = [](const ForestInfo::Covered& covered, const SegmentInfo& segment) {
    return covered.number == segment.number && covered.directory_checksum == segment.directory_checksum;
  };
  const bool prefix = forest.covered.size() < rows.segments.size() &&
                      std::equal(forest.covered.begin(), forest.covered.end(), rows.segments.begin(), covers);
  return same_rows && prefix ? ForestState::behind : ForestState::stale;
}

ForestState forest_state(const Store& rows) {
  const std::string path = index_path(rows.path());
  // What a killed build leaves has no manifest.
  if (path_kind(manifest_path(path)) == PathKind::absent) return ForestState::absent;
  return forest_state(rows.info(), read_manifest(path));
}

void remove_forest(const std::string& store) {
  const std::string path = index_path(store);
  if (path_kind(path) != PathKind::directory) return;
  remove_own_directory(path, store_directory(), format::kManifestName);  // what a kill leaves then is no store
}

double forest_build_seconds(const std::string& store) {
  const std::string path = index_path(store) + "/" + format::kBuiltName;
  if (path_kind(path) != PathKind::file) return 0;
  try {
    const std::vector<unsigned char> bytes = read_whole_file(path, uint64_t{1} << 16);
    return Json::parse(bytes).at("seconds").number();
  } catch (const std::exception&) {
    return 0;
  }
}

MetricForest MetricForest::open(const Store& rows) {
  const std::string& path = rows.path();
  switch (forest_state(rows)) {
    case ForestState::absent:
      fail(ErrorKind::input, {say("make it with 'linblock index {}'", path)}, "'{}' has no index yet", path);
    case ForestState::stale:
      fail(ErrorKind::input, {say("make it again with 'linblock index {}'", path)},
           "the index of '{}' is stale: its rows have changed since", path);
    case ForestState::behind:
      fail(ErrorKind::input, {say("add trees for them with 'linblock index {}'", path)},
           "the index of '{}' is behind: rows were appended since", path);
    case ForestState::fresh: break;
  }
  MetricForest forest = open_pages(Store::open(index_path(path)));
  if (forest.pages().info().rows_id != rows.info().id)
    fail(ErrorKind::io, "the index of '{}' was replaced by another process just now: try again", path);
  return forest;
}

MetricForest MetricForest::open_pages(Store pages) {
  if (pages.info().axis != Axis::forest)
    fail(ErrorKind::damaged, {rebuild("index", parent_directory(pages.path()))}, "'{}' holds no index", pages.path());
  return MetricForest(std::move(pages));
}

MetricForest::MetricForest(Store pages) : pages_(std::move(pages)), first_node_{0}, first_page_{0} {
  const StoreInfo& info = pages_.info();
  for (size_t i = 0; i < info.segments.size(); ++i) {
    files_.emplace_back(pages_.path(), info, info.forest.files[i], info.segments[i].chunks);
    const uint32_t node = first_node_.back();
    const uint32_t page = first_page_.back();
    for (const Tree& tree : files_.back().trees())
      trees_.push_back({.root = tree.root + node,
                        .first_node = tree.first_node + node,
                        .last_node = tree.last_node + node,
                        .first_page = tree.first_page + page,
                        .last_page = tree.last_page + page});
    first_node_.push_back(static_cast<uint32_t>(
        checked_size(node + files_.back().nodes(), kNone - 1, "the nodes of '" + pages_.path() + "'")));
    first_page_.push_back(static_cast<uint32_t>(
        checked_size(page + info.segments[i].chunks, kNone - 1, "the pages of '" + pages_.path() + "'")));
  }
}

namespace {

size_t place_in(const std::vector<uint32_t>& begins, uint32_t number) {
  return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), number) - begins.begin()) - 1;
}

}  // namespace

uint32_t MetricForest::parent_of_node(uint32_t node) const {
  const size_t file = place_in(first_node_, node);
  const uint32_t parent = files_[file].parent_of_node(node - first_node_[file]);
  return parent == kNone ? kNone : parent + first_node_[file];
}

uint32_t MetricForest::parent_of_page(uint32_t page) const {
  const size_t file = place_in(first_page_, page);
  return files_[file].parent_of_page(page - first_page_[file]) + first_node_[file];
}

uint64_t MetricForest::node_bytes(uint32_t number) const {
  const size_t file = place_in(first_node_, number);
  return files_[file].node_bytes(number - first_node_[file]);
}

MetricForest::Node MetricForest::read_node(uint32_t number) const {
  const size_t file = place_in(first_node_, number);
  Node node = files_[file].read_node(number - first_node_[file]);
  const auto refuse = [&] {
    fail(ErrorKind::damaged, "'{}' is damaged: node {} has a child or a feature that cannot be",
         forest_path(pages_.path(), info().files[file].number), number - first_node_[file]);
  };
  for (Child& child : node.children) {
    const uint64_t place = uint64_t{child.number} + (child.is_page ? first_page_[file] : first_node_[file]);
    if (place >= (child.is_page ? first_page_[file + 1] : first_node_[file + 1])) refuse();
    child.number = static_cast<uint32_t>(place);
    if ((child.is_page ? parent_of_page(child.number) : parent_of_node(child.number)) != number) refuse();
  }
  const uint64_t features = pages_.info().feature_numbers();
  for (const uint32_t feature : node.index)
    if (feature >= features) refuse();
  return node;
}

uint64_t MetricForest::table_bytes() const {
  uint64_t bytes = trees_.capacity() * sizeof(Tree);
  for (const ForestFile& file : files_) bytes += file.table_bytes();
  return bytes;
}

void check_forest(const MetricForest& forest) {
  const auto refuse = [&](const char* why) {
    fail(ErrorKind::damaged, {rebuild("index", parent_directory(forest.pages().path()))},
         "the trees of '{}' are damaged: {}", forest.pages().path(), why);
  };
  std::vector<uint32_t> rows_below(forest.nodes(), 0);
  std::vector<uint8_t> page_seen(forest.pages().chunks().size(), 0);
  std::vector<uint8_t> node_seen(forest.nodes(), 0);
  // Children have larger numbers than their parents, so backwards every sum is complete when it is needed.
  for (size_t number = forest.nodes(); number-- > 0;) {
    const MetricForest::Node node = forest.read_node(static_cast<uint32_t>(number));
    uint64_t rows = 0;
    for (const MetricForest::Child& child : node.children) {
      if (!child.is_page && child.number <= number) refuse("a node is not above its child");
      uint8_t& seen = child.is_page ? page_seen[child.number] : node_seen[child.number];
      if (seen++ > 0) refuse("two nodes have the same child");
      if (child.rows != (child.is_page ? forest.pages().chunks()[child.number].rows : rows_below[child.number]))
        refuse("a child has other rows than its node says");
      rows += child.rows;
    }
    rows_below[number] = static_cast<uint32_t>(rows);
  }
  for (const MetricForest::Tree& tree : forest.trees()) node_seen[tree.root] += 1;
  const auto once = [](uint8_t seen) { return seen == 1; };
  if (!std::all_of(page_seen.begin(), page_seen.end(), once)) refuse("a page has no node");
  if (!std::all_of(node_seen.begin(), node_seen.end(), once)) refuse("a node has no parent");
}

}  // namespace linblock
