#include "learn/state.h"

#include <algorithm>

#include "base/error.h"

namespace linblock {

namespace {

constexpr size_t kPiece = 32768;  // values

// `count` values of a file become an array of the state.
template <Element T>
void copy_array(const File& from, uint64_t count, const std::string& name, FieldWriter& to) {
  to.begin<T>(name, count);
  std::vector<T> piece(kPiece);
  for (uint64_t at = 0; at < count; at += kPiece) {
    const std::span<T> part(piece.data(), std::min<uint64_t>(kPiece, count - at));
    from.read_exactly_at(as_writable_raw(part), at * sizeof(T));
    to.add_piece(std::span<const T>(part));
  }
}

}  // namespace

std::vector<ChunkPlace> places_of(const Store& store) {
  std::vector<ChunkPlace> places;
  for (const ChunkInfo& chunk : store.chunks())
    places.push_back({store.info().segments[chunk.segment].number, chunk.number, chunk.rows});
  return places;
}

std::vector<uint64_t> checksums_of(const Store& store) {
  std::vector<uint64_t> checksums;
  for (const ChunkInfo& chunk : store.chunks()) checksums.push_back(chunk.checksum);
  return checksums;
}

std::vector<Remedy> state_remedies() {
  return {say("train that model with `keep_state`"), say("use `solver` newton, which needs nothing but the model"),
          leave_out("warm")};
}

std::string state_path(const std::string& model) { return model + ".state"; }

void check_state(const std::string& path) {
  if (path_kind(path) != PathKind::file) fail(ErrorKind::input, state_remedies(), "`warm`: there is no '{}'", path);
}

std::string state_identity(const TrainOptions& options, const Problem& problem) {
  std::string text = fmt::format("store: {:016x}\n", problem.store->info().seal);
  text += fmt::format("{}cost: {}\nbias: {}\n", identity_of(options.loss), options.cost, options.bias);
  text += fmt::format("solver: {}\n", name_of(options.solve.method));
  std::string weights;
  for (const auto& [label, weight] : problem.class_weights) weights += fmt::format(" {}={}", label, weight);
  return text + fmt::format("class weights:{}\n", weights.empty() ? " none" : weights);
}

StateWriter::StateWriter(std::string path, const std::string& scratch, bool has_duals, const Store& store,
                         const Problem& problem)
    : path_(std::move(path)),
      scratch_(scratch.empty() ? path_ + ".kept" : scratch),
      keep_scratch_(!scratch.empty()),
      has_duals_(has_duals),
      store_(store),
      problem_(problem),
      begin_(row_begins(store)) {}

File StateWriter::scratch(const std::string& what) const { return File::open_update(scratch_ + "." + what); }

void StateWriter::take_v(size_t task, size_t begin, std::span<const double> v) const {
  scratch(fmt::format("v-{}", task)).write_at(as_raw(v), begin * sizeof(double));
}

void StateWriter::take_ids(const Block& block) const {
  const File file = scratch("ids");
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < block.chunks.size(); ++i) {
    ids.resize(block.chunks[i]->rows());
    for (size_t row = 0; row < ids.size(); ++row) ids[row] = block.chunks[i]->id(row);
    file.write_at(as_raw(std::span<const uint64_t>(ids)), begin_[block.numbers[i]] * sizeof(uint64_t));
  }
}

void StateWriter::take_solution(size_t task, Solution& solution) const {
  if (!has_duals_) {
    std::vector<double> w(solution.weights.begin(), solution.weights.end());
    take_v(task, 0, w);
    scratch(fmt::format("steps-{}", task)).write_at(as_raw(std::span<const uint64_t>(&solution.steps, 1)), 0);
    return;
  }
  const File file = scratch(fmt::format("alpha-{}", task));
  for (uint32_t chunk = 0; chunk < store_.chunks().size(); ++chunk) {
    solution.duals.fetch({&chunk, 1});
    file.write_at(as_raw(std::span<const double>(solution.duals.page(chunk))), begin_[chunk] * sizeof(double));
  }
}

void StateWriter::commit(const std::string& identity) const {
  SnapshotWriter file(path_);
  FieldWriter to(file);
  StateHeader header{.identity = identity, .chunks = places_of(store_)};
  for (const Task& task : problem_.tasks) header.positives.push_back(task.positive);
  StateHeader::visit_fields(header, to);
  to("checksums", checksums_of(store_));
  if (has_duals_) copy_array<uint64_t>(scratch("ids"), begin_.back(), "ids", to);
  for (size_t task = 0; task < problem_.tasks.size(); ++task) {
    FieldWriter fields = to.inside(numbered("task", task));
    copy_array<double>(scratch(fmt::format("v-{}", task)), problem_.weights(), "v", fields);
    if (has_duals_)
      copy_array<double>(scratch(fmt::format("alpha-{}", task)), begin_.back(), "alpha", fields);
    else
      copy_array<uint64_t>(scratch(fmt::format("steps-{}", task)), 1, "steps", fields);
  }
  file.commit();
  if (!keep_scratch_) remove_scratch();
}

void StateWriter::remove_scratch() const {
  std::vector<std::string> parts = {"ids"};
  for (size_t task = 0; task < problem_.tasks.size(); ++task)
    for (const char* what : {"v", "alpha", "steps"}) parts.push_back(fmt::format("{}-{}", what, task));
  for (const std::string& part : parts)
    if (path_kind(scratch_ + "." + part) == PathKind::file) remove_file(scratch_ + "." + part);
}

}  // namespace linblock
