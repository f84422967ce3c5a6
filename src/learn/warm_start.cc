#include "learn/warm_start.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/error.h"
#include "learn/stages.h"
#include "learn/state.h"

namespace linblock {

namespace {

constexpr uint32_t kWarmVersion = 2;

// Finds for each row of the store where it stood in the state.
class RowMatcher {
 public:
  static constexpr uint64_t kNew = UINT64_MAX;

  RowMatcher(const FieldReader& state, const StateHeader& header, const Store& store) : store_(store) {
    struct Known {
      uint64_t first_row = 0;
      uint64_t rows = 0;
      size_t place = 0;
    };
    std::map<std::pair<uint64_t, uint64_t>, Known> known;
    uint64_t row = 0;
    uint64_t newest_segment = 0;
    for (size_t i = 0; i < header.chunks.size(); ++i) {
      const ChunkPlace& place = header.chunks[i];
      known[{place.segment, place.number}] = {row, place.rows, i};
      row += place.rows;
      newest_segment = std::max(newest_segment, place.segment);
    }
    first_.assign(store.chunks().size(), kNew);
    const std::vector<ChunkPlace> now = places_of(store);
    for (size_t i = 0; i < now.size(); ++i) {
      const auto place = known.find({now[i].segment, now[i].number});
      const bool same =
          place != known.end() && place->second.rows == now[i].rows &&
          (header.checksums.empty() || header.checksums[place->second.place] == store.chunks()[i].checksum);
      if (same) {
        first_[i] = place->second.first_row;
        known.erase(place);
      } else if (now[i].segment <= newest_segment) {
        other_history_ = true;
      }
    }
    // Rows of chunks that are no longer there may stand in others: compact keeps their ids.
    for (const auto& [place, rows] : known) {
      std::vector<uint64_t> ids(rows.rows);
      state.take_part("ids", rows.first_row, std::span(ids));
      for (uint64_t i = 0; i < ids.size(); ++i) lost_.emplace_back(ids[i], rows.first_row + i);
    }
    std::sort(lost_.begin(), lost_.end());
    found_.assign(lost_.size(), false);
  }

  // Row by row: its place in the state, or kNew.
  void find(uint32_t chunk, std::vector<uint64_t>& places) {
    places.resize(store_.chunks()[chunk].rows);
    if (first_[chunk] != kNew) {
      for (size_t row = 0; row < places.size(); ++row) places[row] = first_[chunk] + row;
      return;
    }
    std::fill(places.begin(), places.end(), kNew);
    if (lost_.empty() || other_history_) return;
    Chunk rows;
    store_.read(chunk, rows);
    for (size_t row = 0; row < places.size(); ++row) {
      const auto at = std::lower_bound(lost_.begin(), lost_.end(), std::pair(rows.id(row), uint64_t{0}));
      if (at == lost_.end() || at->first != rows.id(row)) continue;
      places[row] = at->second;
      found_[static_cast<size_t>(at - lost_.begin())] = true;
    }
  }

  // Of those that find() has not come across: places in the state.
  std::vector<uint64_t> not_found() const {
    std::vector<uint64_t> places;
    for (size_t i = 0; i < lost_.size(); ++i)
      if (!found_[i]) places.push_back(lost_[i].second);
    return places;
  }

 private:
  const Store& store_;
  std::vector<uint64_t> first_;                      // by chunk
  std::vector<std::pair<uint64_t, uint64_t>> lost_;  // id, place
  std::vector<bool> found_;
  // A segment as old as the state is not as it was then: the store went back to a snapshot or a copy, and what was
  // appended there has the ids of other rows.
  bool other_history_ = false;
};

// Row by row, the alphas of one task that stand at these places of the state.
void take_alphas(const FieldReader& state, const std::string& name, std::span<const uint64_t> places,
                 std::span<double> alphas) {
  std::fill(alphas.begin(), alphas.end(), 0.0);
  for (size_t row = 0; row < places.size();) {
    if (places[row] == RowMatcher::kNew) {
      ++row;
      continue;
    }
    size_t end = row + 1;  // a stretch that stood together
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    state.take_part(name, places[row], alphas.subspan(row, end - row));
    row = end;
  }
}

// How far a warm start has come in its readings: shown, and ended by a stop.
class Readings {
 public:
  Readings(const Context& context, size_t count) : context_(context), count_(static_cast<double>(count)) {}

  // So much of the one in work.
  void at(double share) const {
    context_.observer.reading("to find the rows of the state again", (done_ + share) / count_);
    if (context_.stopped()) fail(ErrorKind::interrupted, "interrupted before the first pass: the same command resumes");
  }
  void next() {
    at(1);
    ++done_;
  }

 private:
  const Context& context_;
  double count_;
  double done_ = 0;
};

// v of a task, a range of features at a time: as it was, or anew from its duals.
class WeightsOfDuals {
 public:
  WeightsOfDuals(FieldReader& state, const Problem& problem, uint64_t memory_bytes, const Readings& readings)
      : state_(state),
        problem_(problem),
        readings_(readings),
        at_once_(std::max<uint64_t>(1, std::min<uint64_t>(problem.weights(), memory_bytes / 8 / sizeof(double)))) {}

  // `chunks`: those with rows whose alpha y x is taken from v; `anew`: whose rows make all of it.
  void set(const std::string& name, const Task& task, const std::vector<uint32_t>& chunks, bool anew,
           const std::function<void(uint32_t, const Chunk&, std::span<double>)>& alphas_of, Solution& solution,
           const std::function<void(size_t, std::span<const double>)>& on_v) const {
    const size_t count = problem_.weights();
    const size_t features = problem_.store->info().feature_numbers();
    const size_t old = state_.count<double>(name);
    const size_t old_features = old - (problem_.has_bias() ? 1 : 0);
    solution.weights.assign(count, 0);
    const RowCost costs(problem_, task);
    std::vector<double> v;
    std::vector<double> alphas;
    RowBuffer buffer;
    for (size_t begin = 0; begin < count; begin += at_once_) {
      v.assign(std::min<size_t>(at_once_, count - begin), 0);
      if (!anew && begin < old_features)
        state_.take_part(name, begin, std::span(v).first(std::min(v.size(), old_features - begin)));
      const bool with_bias = problem_.has_bias() && begin + v.size() == count;
      if (!anew && with_bias) state_.take_part(name, old - 1, std::span(v).last(1));
      for (size_t c = 0; c < chunks.size(); ++c) {
        const uint32_t number = chunks[c];
        readings_.at(
            (static_cast<double>(begin) + static_cast<double>(v.size() * c) / static_cast<double>(chunks.size())) /
            static_cast<double>(count));
        Chunk chunk;
        problem_.store->read(number, chunk);
        alphas.resize(chunk.rows());
        alphas_of(number, chunk, alphas);
        for (size_t i = 0; i < chunk.rows(); ++i) {
          if (alphas[i] == 0) continue;
          const Row row = chunk.row(i, buffer);
          const double scale = (anew ? 1 : -1) * alphas[i] * costs.sign(row);
          for (size_t k = 0; k < row.index.size(); ++k)
            if (row.index[k] >= begin && row.index[k] < std::min(begin + v.size(), features))
              v[row.index[k] - begin] += scale * double{row.value[k]};
          if (with_bias) v.back() += scale * problem_.bias;
        }
      }
      std::transform(v.begin(), v.end(), solution.weights.begin() + static_cast<ptrdiff_t>(begin),
                     [](double x) { return static_cast<float>(x); });
      on_v(begin, v);
    }
  }

 private:
  FieldReader& state_;
  const Problem& problem_;
  const Readings& readings_;
  uint64_t at_once_;
};

// The state, open: its header is read and compared, and all of its arrays are there.
FieldReader open_state(const std::string& path, const TrainOptions& options, const Problem& problem,
                       StateHeader& header) {
  check_state(path);
  FieldReader state(path, state_remedies());
  StateHeader::visit_fields(header, state);
  if (const std::string now = state_identity(options, problem); header.identity != now)
    fail(ErrorKind::usage, {say("give the same ones"), leave_out("warm")},
         "`warm`: '{}' does not belong to this store and these options:{}\n", path, differences(header.identity, now));
  if (state.has("checksums")) {
    state("checksums", header.checksums);
    if (header.checksums.size() != header.chunks.size()) state.refuse_value("checksums");
  }
  uint64_t rows = 0;
  for (const ChunkPlace& chunk : header.chunks)
    rows += checked_size(chunk.rows, format::kMostChunkRows, "the state: a chunk's number of rows");
  const bool has_duals = state.has("ids");
  if (has_duals && state.count<uint64_t>("ids") != rows) state.refuse_value("ids");
  for (size_t task = 0; task < header.positives.size(); ++task) {
    FieldReader fields = state.inside(numbered("task", task));
    if (fields.count<double>("v") < (problem.has_bias() ? 1 : 0)) fields.refuse_value("v");
    if (!has_duals) fields.take<uint64_t>("steps");
    if (has_duals && fields.count<double>("alpha") != rows) fields.refuse_value("alpha");
  }
  state.finish();
  return state;
}

}  // namespace

std::string WarmStart::describe() const {
  if (known_rows + new_rows == 0)
    return fmt::format("its weights, and {} steps that were made",
                       grouped(solutions.empty() ? 0 : solutions.front().steps));
  std::string text = fmt::format("{} rows keep their duals, {} are new, {} are gone", grouped(known_rows),
                                 grouped(new_rows), grouped(gone_rows));
  return recomputed ? text + "; its weights are computed again, without those that are no longer in any file" : text;
}

WarmStart warm_start(const std::string& path, const TrainOptions& options, const Problem& problem,
                     const std::string& duals_in_file, const Context& context, const VObserver& on_v) {
  StateHeader header;
  FieldReader state = open_state(path, options, problem, header);
  const std::vector<int32_t>& positives = header.positives;
  const Store& store = *problem.store;
  WarmStart warm;
  warm.solutions.resize(problem.tasks.size());
  const auto old_task = [&](const Task& task) {
    return static_cast<size_t>(std::find(positives.begin(), positives.end(), task.positive) - positives.begin());
  };
  const auto name_of = [](size_t task, std::string_view array) {
    return fmt::format("{}.{}", numbered("task", task), array);
  };
  Readings readings(context, 1 + 2 * problem.tasks.size());  // of all rows, then for v and duals of each task
  const WeightsOfDuals weights(state, problem, context.memory_bytes, readings);
  const auto observe = [&](size_t task) {
    return [&, task](size_t begin, std::span<const double> v) {
      if (on_v) on_v(task, begin, v);
    };
  };
  if (!state.has("ids")) {  // Pegasos: w and the number of steps are all there is
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      const size_t old = old_task(problem.tasks[i]);
      if (old == positives.size()) continue;
      weights.set(name_of(old, "v"), problem.tasks[i], {}, false, {}, warm.solutions[i], observe(i));
      warm.solutions[i].steps = state.take<uint64_t>(name_of(old, "steps"));
    }
    return warm;
  }
  const auto share_of = [&](uint32_t chunk) {
    return static_cast<double>(chunk) / static_cast<double>(store.chunks().size());
  };
  RowMatcher finder(state, header, store);
  std::vector<uint64_t> places;
  std::vector<uint32_t> shrunk;  // chunks with rows that were removed
  std::vector<uint32_t> all;
  for (uint32_t chunk = 0; chunk < store.chunks().size(); ++chunk) {
    readings.at(share_of(chunk));
    finder.find(chunk, places);
    all.push_back(chunk);
    if (std::all_of(places.begin(), places.end(), [](uint64_t place) { return place == RowMatcher::kNew; }))
      warm.new_chunks.push_back(chunk);
    Chunk rows;
    const bool some_removed = !store.removed_from(chunk).empty();
    if (some_removed) {
      shrunk.push_back(chunk);
      store.read(chunk, rows);
    }
    for (size_t row = 0; row < places.size(); ++row) {
      const bool removed = some_removed && rows.removed(row);
      if (places[row] != RowMatcher::kNew)
        ++(removed ? warm.gone_rows : warm.known_rows);
      else if (!removed)
        ++warm.new_rows;
    }
  }
  readings.next();
  const std::vector<uint64_t> gone = finder.not_found();
  warm.gone_rows += gone.size();
  for (size_t i = 0; i < problem.tasks.size(); ++i) {
    const Task& task = problem.tasks[i];
    Solution& solution = warm.solutions[i];
    solution.duals = duals_in_file.empty()
                         ? Duals(store)
                         : Duals(store, i == 0 ? duals_in_file : fmt::format("{}-{}", duals_in_file, i));
    solution.duals.set_base_version(duals_in_file.empty() ? 0 : kWarmVersion);
    solution.weights.assign(problem.weights(), 0);
    const size_t old = old_task(task);
    const std::string name = name_of(old, "alpha");
    // The alphas that rows of a chunk had: of those that stay, or of those that leave.
    const auto alphas_of = [&](uint32_t chunk, const Chunk& rows, bool stay, std::span<double> alphas) {
      finder.find(chunk, places);
      take_alphas(state, name, places, alphas);
      for (size_t row = 0; row < rows.rows(); ++row)
        if ((rows.removed(row) || task.held_out.holds(rows.id(row))) == stay) alphas[row] = 0;
    };
    const bool known = old < positives.size();
    if (known) {
      // Rows that are in no file any more cannot be taken from w, unless they had no part in it.
      const bool anew = std::any_of(gone.begin(), gone.end(), [&](uint64_t place) {
        double alpha = 0;
        state.take_part(name, place, std::span<double>(&alpha, 1));
        return alpha != 0;
      });
      warm.recomputed = warm.recomputed || anew;
      weights.set(
          name_of(old, "v"), task, anew || task.held_out.parts > 0 ? all : shrunk, anew,
          [&](uint32_t chunk, const Chunk& rows, std::span<double> alphas) { alphas_of(chunk, rows, anew, alphas); },
          solution, observe(i));
    }
    readings.next();
    for (const uint32_t chunk : all) {
      readings.at(share_of(chunk));
      solution.duals.fetch({&chunk, 1});
      if (known) {
        Chunk rows;
        const bool some_leave = !store.removed_from(chunk).empty() || task.held_out.parts > 0;
        if (some_leave) store.read(chunk, rows);
        alphas_of(chunk, rows, true, solution.duals.page(chunk));
      }
      solution.duals.put_back({&chunk, 1}, kWarmVersion);
    }
    readings.next();
  }
  return warm;
}

}  // namespace linblock
