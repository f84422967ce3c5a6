#include "store/index/build_forest.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "store/core/store_writer.h"
#include "store/index/tree_builder.h"

namespace linblock {

namespace {

constexpr uint64_t kOwnBytes = uint64_t{1} << 20;
constexpr uint64_t kTreesAtOnce = 2;       // a tree takes no more than this share of the memory, if it can
constexpr uint64_t kPagesPerTree = 8;      // pages are smaller where a tree would have fewer
constexpr uint64_t kRowsPerPage = 32;      // and larger where one would hold fewer
constexpr uint64_t kDenseShare = 4;        // of a tree's memory, for a place for every feature
constexpr uint64_t kChunksOnTheirWay = 4;  // as built, laid out, compressed, and waiting; for each thread and two more

// What is to be made: an index that is there keeps what is not asked to change.
struct IndexShape {
  ForestInfo forest;
  uint64_t seed = 1;
  std::optional<StoreInfo> old = {};  // what is there, if it can be read
  bool extend = false;
  bool nothing_to_do = false;
};

IndexShape resolve(const Store& rows, const ForestOptions& options) {
  const StoreInfo& info = rows.info();
  IndexShape shape;
  std::optional<StoreInfo>& old = shape.old;
  if (path_kind(manifest_path(index_path(rows.path()))) != PathKind::absent) try {
      old = read_manifest(index_path(rows.path()));
      if (old->axis != Axis::forest) old.reset();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::damaged) throw;
      if (!options.force)
        fail(ErrorKind::damaged, {rebuild("index", rows.path())}, "{}; the rows are whole", error.sentence());
    }
  const ForestInfo made =
      old ? old->forest : ForestInfo{.tree_rows = kDefaultTreeRows, .branch = kDefaultBranch, .bias = -1};
  ForestInfo& forest = shape.forest;
  forest.tree_rows = options.tree_rows.value_or(made.tree_rows);
  forest.branch = options.branch.value_or(made.branch);
  forest.bias = options.bias.value_or(made.bias);
  if (forest.bias < 0) forest.bias = -1;
  forest.page_bytes = options.page_bytes.value_or(made.page_bytes);
  shape.seed = options.seed.value_or(old ? old->seed : 1);
  if (forest.tree_rows == 0 || forest.tree_rows > kMostTreeRows)
    fail(ErrorKind::usage, "`tree_rows` {}: a tree of an index has 1 to {} rows", forest.tree_rows, kMostTreeRows);
  if (forest.branch < format::kLeastBranch || forest.branch > format::kMostBranch)
    fail(ErrorKind::usage, "`branch` is {}, and must be from {} to {}", forest.branch, format::kLeastBranch,
         format::kMostBranch);
  if (forest.page_bytes != 0 && (forest.page_bytes < format::kSmallestChunkBytes || forest.page_bytes > kMostPageBytes))
    fail(ErrorKind::usage, "`page_bytes` is {}, and must be from {} to {}", forest.page_bytes,
         format::kSmallestChunkBytes, kMostPageBytes);
  const bool same = old && !options.force && forest.tree_rows == made.tree_rows && forest.branch == made.branch &&
                    forest.bias == made.bias && forest.page_bytes == made.page_bytes && shape.seed == old->seed;
  const ForestState state = same ? forest_state(info, *old) : ForestState::stale;
  shape.nothing_to_do = state == ForestState::fresh;
  shape.extend = state == ForestState::behind;
  forest.rows_seal = info.seal;
  forest.removed_number = info.removed.number;
  forest.removed_checksum = info.removed.checksum;
  if (shape.extend) forest.covered = made.covered;
  return shape;
}

// Which chunks make a tree, and how the memory is shared out.
class ForestPlan {
 public:
  ForestPlan(const Store& rows, const IndexShape& shape, const ForestOptions& options)
      : team(options.team), rows_(rows), shape_(shape) {
    const StoreInfo& info = rows.info();
    if (shape.extend) page_bytes = shape.old->chunk_bytes;
    for (size_t chunk = 0; chunk < rows.chunks().size(); ++chunk)
      if (rows.chunks()[chunk].segment >= shape.forest.covered.size()) chunks_.push_back(static_cast<uint32_t>(chunk));
    for (const uint32_t chunk : chunks_) {
      total_rows_ += rows.chunks()[chunk].rows;
      raw_bytes_ += rows.chunks()[chunk].raw_bytes;
    }
    trees_ = std::max<uint64_t>(1, (total_rows_ + shape.forest.tree_rows - 1) / shape.forest.tree_rows);
    if (page_bytes == 0) choose_page_bytes();
    uint64_t largest = page_bytes;
    uint64_t least_tree = 0;
    for (const uint32_t chunk : chunks_) {
      least_tree = std::max(least_tree, chunk_bytes(chunk));
      largest = std::max<uint64_t>(largest, rows.chunks()[chunk].raw_bytes / std::max(1U, rows.chunks()[chunk].rows));
    }
    // The store's directory and feature map, the index's, and the tables of nodes and pages.
    const uint64_t pages = 2 * raw_bytes_ / page_bytes + trees_;
    const uint64_t fixed = kProgramBytes + kOwnBytes + 2 * rows.features().memory_bytes() +
                           rows.chunks().size() * (sizeof(ChunkInfo) + 8) + info.removed.rows * sizeof(uint64_t) +
                           pages * (2 * sizeof(ForestPlace) + 2 * sizeof(uint32_t) + format::kDirectoryEntryBytes);
    const auto on_their_way = [&](uint64_t count) { return (count + 2) * kChunksOnTheirWay * largest; };
    const uint64_t least_products = products_bytes(0);
    least_bytes = fixed + on_their_way(1) + least_tree + least_products;
    if (least_bytes > options.memory_bytes)
      fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(least_bytes))},
           "to index this store, whose chunks take up to {} in memory as part of a tree, `memory` {} is too little",
           human_bytes(least_tree), human_bytes(options.memory_bytes));
    threads = options.team.size();
    const uint64_t rest = options.memory_bytes - fixed;
    // How large a tree may be does not depend on the threads, so neither does what is written.
    tree_bytes =
        std::max(least_tree + least_products, (rest - std::min(rest, on_their_way(kTreesAtOnce))) / kTreesAtOnce);
    dense_bytes = tree_bytes / kDenseShare;
    if (tree_bytes < least_tree + products_bytes(dense_bytes)) dense_bytes = 0;
    tree_bytes -= products_bytes(dense_bytes);
    cut();
    uint64_t most = 0;
    for (const std::vector<uint32_t>& tree : trees) most = std::max(most, bytes_of(tree));
    const auto needed = [&](uint64_t count) {
      return on_their_way(count) + count * (most + products_bytes(dense_bytes));
    };
    threads = std::min<size_t>(threads, std::max<size_t>(1, trees.size()));
    while (threads > 1 && needed(threads) > rest) --threads;
  }

  uint64_t page_bytes = 0;
  uint64_t least_bytes = 0;
  uint64_t tree_bytes = 0;
  uint64_t dense_bytes = 0;
  const Team team;
  size_t threads = 1;                        // of the team: as many as the memory allows
  std::vector<std::vector<uint32_t>> trees;  // chunks of each

  uint64_t rows() const { return total_rows_; }
  uint64_t largest_tree() const {
    uint64_t most = 0;
    for (const std::vector<uint32_t>& tree : trees) {
      uint64_t rows = 0;
      for (const uint32_t chunk : tree) rows += rows_.chunks()[chunk].rows;
      most = std::max(most, rows);
    }
    return most;
  }

 private:
  void choose_page_bytes() {
    page_bytes = shape_.forest.page_bytes;
    if (page_bytes == 0)
      page_bytes =
          std::clamp(kRowsPerPage * raw_bytes_ / std::max<uint64_t>(1, total_rows_), kDefaultPageBytes, kMostPageBytes);
    page_bytes = std::clamp(raw_bytes_ / trees_ / kPagesPerTree, format::kSmallestChunkBytes, page_bytes);
  }
  // A chunk's rows as part of a tree: decoded, sorted, and some of them pivots.
  uint64_t chunk_bytes(uint32_t number) const {
    const ChunkInfo& chunk = rows_.chunks()[number];
    const uint64_t pivots = std::min<uint64_t>(chunk.rows, uint64_t{4} * chunk.raw_bytes / page_bytes + 1);
    const uint64_t nonzeros = chunk.rows == 0 ? 0 : chunk.nonzeros / chunk.rows + 1;
    return chunk.memory_bytes(true) + chunk.rows * kTreeBytesPerRow +
           pivots * (16 * nonzeros + uint64_t{4} * shape_.forest.branch + 256);
  }
  uint64_t bytes_of(const std::vector<uint32_t>& chunks) const {
    uint64_t sum = 0;
    for (const uint32_t chunk : chunks) sum += chunk_bytes(chunk);
    return sum;
  }
  uint64_t products_bytes(uint64_t dense) const {
    uint64_t longest = 0;  // rows, about
    for (const uint32_t chunk : chunks_)
      longest = std::max<uint64_t>(longest, rows_.chunks()[chunk].nonzeros / std::max(1U, rows_.chunks()[chunk].rows));
    const uint64_t branch = shape_.forest.branch;
    return PivotProducts::memory_limit(rows_.info().feature_numbers(), dense, branch, 2 * branch * (longest + 1));
  }

  void cut() {
    Random random(shape_.seed, rows_.info().segments.empty() ? 0 : rows_.info().segments.back().number);
    for (size_t i = chunks_.size(); i > 1; --i) std::swap(chunks_[i - 1], chunks_[random.below(i)]);
    const uint64_t target = (total_rows_ + trees_ - 1) / trees_;
    uint64_t rows = 0;
    uint64_t bytes = 0;
    for (const uint32_t chunk : chunks_) {
      if (trees.empty() || rows >= target || bytes + chunk_bytes(chunk) > tree_bytes) {
        trees.emplace_back();
        rows = 0;
        bytes = 0;
      }
      trees.back().push_back(chunk);
      rows += rows_.chunks()[chunk].rows;
      bytes += chunk_bytes(chunk);
    }
  }

  const Store& rows_;
  const IndexShape& shape_;
  std::vector<uint32_t> chunks_;
  uint64_t total_rows_ = 0;
  uint64_t raw_bytes_ = 0;
  uint64_t trees_ = 1;
};

// Trees are built side by side, and written one after another in their order.
class Building {
 public:
  Building(const Store& rows, StoreWriter& writer, const ForestPlan& plan, uint64_t first_tree,
           const ForestContext& context)
      : rows_(rows),
        writer_(writer),
        plan_(plan),
        first_tree_(first_tree),
        context_(context),
        file_(writer.folder(), writer.info().seal, writer.segment_number()) {}

  ForestReport run() {
    plan_.team.run_loops(
        plan_.threads, [this] { work(); },
        [this] {
          const std::lock_guard lock(mutex_);
          failed_ = true;
          moved_.notify_all();
          writer_.abandon();
        });
    ForestInfo::Trees trees = file_.finish();
    trees.nearest_angle = nearest_angle_;
    trees.mean_angle = mean_angle_;
    writer_.add_trees(trees);
    return {.changed = true, .rows = done_, .nonzeros = nonzeros_, .trees = trees.trees};
  }

 private:
  void work() {
    const auto tick = [this] {
      if (context_.stop != nullptr && *context_.stop)
        fail(ErrorKind::interrupted, "interrupted: the store and its index are as they were");
    };
    while (true) {
      size_t number = 0;
      {
        const std::lock_guard lock(mutex_);
        if (failed_ || next_ == plan_.trees.size()) return;
        number = next_++;
      }
      std::vector<Chunk> chunks(plan_.trees[number].size());
      size_t kept = 0;
      for (size_t i = 0; i < chunks.size(); ++i) {
        tick();
        rows_.read(plan_.trees[number][i], chunks[i]);
        chunks[i].decode();
        for (size_t row = 0; row < chunks[i].rows(); ++row)
          if (!chunks[i].removed(row)) ++kept;
      }
      const StoreInfo& info = writer_.info();
      const TreeOptions options{.branch = info.forest.branch,
                                .bias = info.forest.bias,
                                .page_bytes = info.chunk_bytes,
                                .seed = mix64(info.seed, first_tree_ + number),
                                .features = info.feature_numbers(),
                                .dense_bytes = plan_.dense_bytes};
      const TreeDraft draft = kept == 0 ? TreeDraft{} : build_tree(chunks, options, tick);
      if (!wait_for_turn(number)) return;
      if (kept > 0) put(chunks, draft);
      const std::lock_guard lock(mutex_);
      ++turn_;
      moved_.notify_all();
    }
  }

  // Until then, it helps to seal pages of trees before.
  bool wait_for_turn(size_t number) {
    std::unique_lock lock(mutex_);
    while (true) {
      moved_.wait(lock, [&] { return failed_ || turn_ == number || writer_.pending() > 0; });
      if (failed_) return false;
      if (turn_ == number) return true;
      lock.unlock();
      writer_.seal_one();
      lock.lock();
    }
  }

  void put(const std::vector<Chunk>& chunks, const TreeDraft& draft) {
    const uint32_t first_node = file_.nodes();
    const uint32_t first_page = file_.pages();
    std::vector<uint32_t> parents = draft.page_parents;
    for (uint32_t& parent : parents) parent += first_node;
    file_.add_tree(static_cast<uint32_t>(draft.nodes.size()), parents);
    for (size_t i = 0; i < draft.nodes.size(); ++i) {
      ForestNode node = draft.nodes[i];
      for (ForestChild& child : node.children) child.number += child.is_page ? first_page : first_node;
      const uint32_t parent = draft.node_parents[i];
      file_.add_node(parent == kNoNode ? kNoNode : parent + first_node, encode_node(node));
    }
    nearest_angle_ += draft.nearest_angle;
    mean_angle_ += draft.mean_angle;
    RowBuffer buffer;
    for (size_t page = 0; page + 1 < draft.page_begin.size(); ++page) {
      for (uint32_t i = draft.page_begin[page]; i < draft.page_begin[page + 1]; ++i) {
        const TreeRow place = draft.rows[i];
        const Chunk& chunk = chunks[place.chunk];
        writer_.route(chunk.id(place.row), chunk.encoded(place.row, buffer));
        nonzeros_ += chunk.nonzeros(place.row);
      }
      writer_.close_bucket(0);
      done_ += draft.page_begin[page + 1] - draft.page_begin[page];
      moved_.notify_one();
      while (writer_.pending() > plan_.threads && writer_.seal_one()) continue;
      context_.observer(done_, plan_.rows());
    }
    while (writer_.seal_one()) continue;
  }

  const Store& rows_;
  StoreWriter& writer_;
  const ForestPlan& plan_;
  const uint64_t first_tree_;
  const ForestContext& context_;
  ForestFileWriter file_;
  std::mutex mutex_;
  std::condition_variable moved_;
  bool failed_ = false;
  size_t next_ = 0;  // tree to be built
  size_t turn_ = 0;  // tree to be written
  uint64_t done_ = 0;
  uint64_t nonzeros_ = 0;
  double nearest_angle_ = 0;
  double mean_angle_ = 0;
};

// Only for people to read.
void note_seconds(const std::string& index, double seconds, bool extended) {
  try {
    const double before = extended ? forest_build_seconds(parent_directory(index)) : 0;
    const std::string text = Json{{"seconds", before + seconds}}.dump() + "\n";
    replace_file(index + "/" + format::kBuiltName, {reinterpret_cast<const unsigned char*>(text.data()), text.size()},
                 format::kBuiltBeginning);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): nothing depends on it
  }
}

}  // namespace

uint64_t least_forest_memory(const Store& rows, const ForestOptions& options) {
  ForestOptions unlimited = options;
  unlimited.memory_bytes = UINT64_MAX / 2;
  const IndexShape shape = resolve(rows, unlimited);
  return ForestPlan(rows, shape, unlimited).least_bytes;
}

ForestReport build_forest(const Store& rows, const ForestOptions& options, const ForestContext& context) {
  const Stopwatch watch;
  expect_rows(rows.info(), rows.path());
  IndexShape shape = resolve(rows, options);
  if (shape.nothing_to_do) {
    StoreWriter::clean(rows.path(), index_path(rows.path()));
    return {};
  }
  const ForestPlan plan(rows, shape, options);
  const StoreInfo& info = rows.info();
  const uint64_t first_tree = shape.extend ? shape.old->forest.trees() : 0;
  shape.forest.covered.clear();
  for (const SegmentInfo& segment : info.segments)
    shape.forest.covered.push_back({segment.number, segment.directory_checksum});
  const std::unique_ptr<StoreWriter> writer =
      StoreWriter::index_of(rows,
                            {.seed = shape.seed,
                             .shuffle = false,
                             .chunk_bytes = plan.page_bytes,
                             .codec = info.codec,
                             .codec_reason = "as the rows: " + info.codec_reason},
                            shape.forest, shape.extend ? &*shape.old : nullptr);
  ForestReport report = Building(rows, *writer, plan, first_tree, context).run();
  writer->commit();
  // It is done; what cannot be deleted now is deleted by the next writer.
  try {
    remove_leftovers(writer->folder(), writer->info());
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
  }
  report.extended = shape.extend;
  report.rows_per_tree = plan.largest_tree();
  report.seconds = watch.seconds();
  note_seconds(writer->folder(), report.seconds, shape.extend);
  return report;
}

}  // namespace linblock
