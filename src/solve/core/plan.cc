// The plan: what the memory is used for.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "objective/row_sums.h"
#include "solve/columns/column_plan.h"
#include "solve/core/chunk_sums.h"
#include "solve/core/run.h"
#include "solve/indexed/indexed_plan.h"
#include "solve/newton/trust_region.h"
#include "solve/truncated/truncated.h"

namespace linblock {

namespace {

constexpr size_t kChunksOfNewton = 64;      // enough for all threads, and a stop can wait for so many
constexpr size_t kUsualChunksPerBlock = 8;  // fewer mix badly, more does not help: small blocks stay in cache
constexpr uint64_t kLeastCertifyBytes = uint64_t{1} << 20;  // below, a certificate takes too many passes
constexpr double kLeastCacheShare = 0.4;                    // of the memory for rows, where a split is to be chosen
constexpr uint64_t kManyRows = 16;                          // for each feature
constexpr uint64_t kKeptRowsShare = 3;  // one in so many rows may be kept where all are in memory ...
constexpr uint64_t kKeptRowBytes = 64;  // ... on a list with so many bytes a row
// Crammer and Singer: duals that are not zero, for each row, in the mean.
constexpr uint64_t kLeastPairs = 3;  // as many as a row's first step can make
constexpr uint64_t kEnoughPairs = 16;
constexpr uint64_t kManyPairs = 64;
// What a task notes of each row of a block: its turn, and its last margin or its step.
constexpr uint64_t kNoteBytes = 8;
constexpr uint64_t kPegasosNoteBytes = 12;
// Newton: sums made side by side, for one task; more where features are few and the sums short.
constexpr uint64_t kFewLanes = 2;
constexpr uint64_t kMostLanes = 8;
constexpr uint64_t kNonzerosPerLane = 32;  // for each weight

// What is asked for, as far as the plan depends on it.
struct Wanted {
  const Problem& problem;
  const SolveOptions& options;
  const Context& context;
  const ChunkSums chunks{*problem.store};
  const DualBlock* const dual = std::get_if<DualBlock>(&options.method);
  const CrammerSinger* const all_classes = std::get_if<CrammerSinger>(&options.method);
  const bool newton = std::holds_alternative<Newton>(options.method);

  uint64_t tasks() const { return problem.tasks.size(); }
  bool recomposed() const { return dual != nullptr && dual->schedule == Schedule::recomposed; }
  // For so many rows that a mean of weights may be kept.
  bool few_features() const {
    return recomposed() && problem.store->info().physical_rows() > kManyRows * problem.weights();
  }
  // Blocks of a few chunks, drawn anew for each pass.
  bool small_blocks() const { return recomposed() || all_classes != nullptr; }
  uint64_t weights() const { return weights_of_a_task(problem, options.method); }
  // Newton's certificate needs none.
  uint64_t v() const { return newton ? 0 : weights() * sizeof(double); }
  // That have use for several; for many tasks there are enough threads without.
  size_t usual_lanes() const {
    if (!newton || tasks() > 1) return 1;
    const uint64_t share = problem.store->info().nonzeros / kNonzerosPerLane / std::max<uint64_t>(1, weights());
    return std::clamp(share, kFewLanes, kMostLanes);
  }
  uint64_t bytes_per_weight(size_t lanes) const {
    if (newton) return sizeof(float) + TrustRegion::kBytesPerWeight + lanes * RowSums::kBytesPerLaneAndWeight;
    return sizeof(float) * (std::holds_alternative<Average>(options.method) || few_features() ? 2 : 1);
  }
  uint64_t bytes_per_row() const {
    if (std::holds_alternative<Pegasos>(options.method)) return 0;
    return newton ? RowSums::kBytesPerRow : Duals::kBytesPerRow;
  }
  size_t usual_chunks() const { return options.chunks_per_block > 0 ? options.chunks_per_block : kUsualChunksPerBlock; }
  // So many at most.
  size_t most_chunks() const { return newton ? kChunksOfNewton : BlockSource::kMostChunksPerBlock; }

  // Fixed blocks are whole buckets: one may have more chunks than are asked for.
  BlockOrder fixed_blocks(size_t chunks_per_block) const {
    return order_of_pass(*problem.store,
                         {.schedule = Schedule::fixed,
                          .chunks_per_block = chunks_per_block,
                          .blocks = dual != nullptr ? dual->blocks : 0,
                          .sequence = BlockSequence::sequential},
                         1);
  }
  static size_t largest_of(const BlockOrder& order) {
    size_t most = 0;
    for (size_t number = 0; number < order.ends.size(); ++number) most = std::max(most, order.block(number).size());
    return most;
  }
  // Of blocks that are to be small, the chunks of the largest; a certificate takes as many as is usual.
  size_t chunks_in_work() const {
    const bool fixed = !small_blocks() && !std::holds_alternative<Subsample>(options.method);
    return std::max({usual_chunks(), kUsualChunksPerBlock, fixed ? largest_of(fixed_blocks(usual_chunks())) : 0});
  }
  // What all tasks note of so many chunks.
  uint64_t notes_on(uint64_t count) const {
    const uint64_t rows = std::min(count * chunks.most_rows, problem.store->info().physical_rows());
    return rows * tasks() * (std::holds_alternative<Pegasos>(options.method) ? kPegasosNoteBytes : kNoteBytes);
  }
  // Where blocks are to have so many chunks.
  uint64_t notes(size_t chunks_per_block) const {
    if (std::holds_alternative<Subsample>(options.method)) return notes_on(Subsample::kChunksPerBlock);
    return notes_on(small_blocks() ? chunks_per_block : largest_of(fixed_blocks(chunks_per_block)));
  }
};

// Rows come anew each pass: a window for them, and what is left for rows near the margin.
void split_memory(const Wanted& wanted, uint64_t free, Plan& plan) {
  const uint64_t least = wanted.chunks.least();
  const DualBlock* const dual = wanted.dual;
  const bool small = wanted.small_blocks() || plan.duals_in_file;
  // Large blocks: two of them, and the notes on one.
  const uint64_t fitting_with_notes = free / (2 * wanted.chunks.largest + wanted.notes_on(1));
  free -= std::min(free - least, wanted.notes(small ? wanted.usual_chunks() : std::max<size_t>(1, fitting_with_notes)));
  uint64_t window = free;
  if (dual != nullptr && dual->cache_fraction) {
    window = static_cast<uint64_t>(static_cast<double>(free) * (1 - *dual->cache_fraction));
  } else if (wanted.recomposed() && !plan.duals_in_file && wanted.tasks() == 1) {
    // Two blocks, or what a certificate needs to be made in one pass, and a little. Several tasks have more use for the
    // certificates of several in one reading than for a few kept rows each.
    const auto most = static_cast<uint64_t>(static_cast<double>(free) * (1 - kLeastCacheShare));
    window = std::max(std::min(2 * wanted.usual_chunks() * wanted.chunks.largest, most), wanted.v()) + least;
  }
  plan.window_bytes = std::clamp(window, least, free);
  plan.cache_bytes = dual == nullptr || plan.duals_in_file ? 0 : free - plan.window_bytes;
  // Sub-sampling certifies with its window full.
  plan.certify_bytes = std::min(wanted.v() * wanted.tasks(), dual != nullptr || wanted.all_classes != nullptr
                                                                 ? plan.window_bytes - least / 2
                                                                 : plan.window_bytes / 4);
  plan.certify_window_bytes = plan.window_bytes - plan.certify_bytes;
  const auto fitting = std::max<size_t>(1, plan.window_bytes / 2 / wanted.chunks.largest);
  plan.chunks_per_block = small ? std::min(fitting, wanted.usual_chunks()) : fitting;
}

// All rows stay, decoded or at least encoded, if they leave room for the rest. False: they do not fit.
bool hold_all_rows(const Wanted& wanted, uint64_t free, Plan& plan) {
  const ChunkSums& chunks = wanted.chunks;
  const size_t count = wanted.problem.store->chunks().size();
  const bool small = wanted.small_blocks() || plan.duals_in_file;
  plan.chunks_per_block = small ? std::min(count, wanted.usual_chunks()) : count;
  // Several tasks look at every row of a block: it is decoded for them.
  const uint64_t space =
      wanted.tasks() == 1 ? 0 : std::max(plan.chunks_per_block, wanted.chunks_in_work()) * chunks.largest_space;
  // Kept rows need no memory of their own where all are here, only a list; and their duals at hand.
  // Tasks that share their rows are faster without, unless features are few: another pass is what costs least then.
  const auto of_use = [&] {
    return wanted.tasks() == 1 || wanted.few_features() || wanted.dual->cache_fraction.has_value();
  };
  const bool keeps_rows =
      wanted.recomposed() && wanted.dual->cache_fraction.value_or(1) > 0 && !plan.duals_in_file && of_use();
  const uint64_t list = keeps_rows ? wanted.problem.store->info().rows / kKeptRowsShare * kKeptRowBytes : 0;
  const uint64_t v = wanted.v();
  free -= std::min(free, wanted.notes(plan.chunks_per_block));
  if (chunks.decoded + v + list <= free)
    plan.rows = RowsHeld::decoded;
  else if (chunks.encoded + space + std::min(v, kLeastCertifyBytes) <= free)
    plan.rows = RowsHeld::encoded;
  else
    return false;
  plan.window_bytes = plan.rows == RowsHeld::decoded ? chunks.decoded : chunks.encoded + space;
  const uint64_t left = free - plan.window_bytes;
  plan.certify_bytes = std::min(v, left);
  plan.cache_bytes = std::min(left - plan.certify_bytes, list * wanted.tasks());
  // What is left may certify several tasks at once.
  if (plan.certify_bytes == v && v > 0)
    plan.certify_bytes = std::clamp((left - plan.cache_bytes) / v, uint64_t{1}, wanted.tasks()) * v;
  return true;
}

// The blocks of the paper are whole buckets: where there are few of those, one may be larger than the window.
void check_fixed_blocks(const Wanted& wanted, const Plan& plan) {
  const BlockOrder order = wanted.fixed_blocks(plan.chunks_per_block);
  const uint64_t most = Wanted::largest_of(order);
  if (most * wanted.chunks.largest <= plan.window_bytes) return;
  fail(ErrorKind::memory,
       "a fixed block of {} chunks needs {}, and --memory leaves {} for rows: give more memory, {}or use --solver dual "
       "--schedule recomposed",
       most, human_bytes(most * wanted.chunks.largest), human_bytes(plan.window_bytes),
       order.ends.size() >= most_fixed_blocks(*wanted.problem.store)
           ? "pack the data with more memory (for more buckets), "
           : "ask for more --blocks, ");
}

// The pairs of Crammer and Singer cannot be known before they are there: as many as may be needed where they leave room
// for the rest, and else what a first pass makes. `room`: for them and the rows.
uint64_t class_duals_bytes(const Wanted& wanted, uint64_t rows, uint64_t room) {
  const uint64_t others = wanted.problem.classes() - 1;
  const auto bytes = [&](uint64_t pairs) {
    return wanted.tasks() * rows * (SparseDuals::kBytesPerRow + std::min(pairs, others) * SparseDuals::kBytesPerPair);
  };
  const uint64_t for_rows = std::min(wanted.chunks.encoded, 2 * wanted.usual_chunks() * wanted.chunks.largest) +
                            std::min(wanted.v(), kLeastCertifyBytes);
  const auto fitting = [&](uint64_t needed) {
    uint64_t pairs = std::max(others, kLeastPairs);
    while (pairs > kLeastPairs && bytes(pairs) + needed > room) --pairs;
    return pairs;
  };
  // Rows that find no room for another class hold up everything; very many pairs are worth less than a certificate in
  // one pass.
  uint64_t pairs = fitting(for_rows);
  const uint64_t window = 2 * wanted.chunks.least() + kLeastCertifyBytes;  // then rows are read each pass
  if (pairs < kEnoughPairs) pairs = std::max(pairs, std::min(kEnoughPairs, fitting(std::min(for_rows, window))));
  if (pairs > kManyPairs) pairs = std::max(kManyPairs, fitting(for_rows + wanted.v()));
  return bytes(pairs);
}

// What takes most of the memory, the least that would do, and what else would help.
std::string remedies(const Wanted& wanted, const Plan& plan, uint64_t chunks, uint64_t held, uint64_t least_memory) {
  struct Part {
    uint64_t bytes;
    const char* what;
    const char* remedy;
  };
  constexpr const char* kDual = ", or use --solver dual";
  constexpr const char* kOneVsRest = ", or use --multiclass one-vs-rest, which can train one class after another";
  const std::array<Part, 5> parts = {{{kProgramBytes, "the program itself", ""},
                                      {plan.weights_bytes, "the weights",
                                       wanted.newton                   ? kDual
                                       : wanted.all_classes != nullptr ? kOneVsRest
                                       : wanted.tasks() > 1            ? ", or use fewer --folds"
                                                                       : ", or use fewer features"},
                                      {plan.duals_bytes, wanted.newton ? "the margins" : "the duals",
                                       wanted.newton                   ? kDual
                                       : wanted.all_classes != nullptr ? kOneVsRest
                                       : wanted.tasks() > 1            ? ", or use fewer --folds"
                                                                       : ""},
                                      {chunks, "the chunks", ", or pack with smaller ones (--chunk-bytes)"},
                                      {held, "what else is held", ""}}};
  const Part& most = *std::max_element(parts.begin(), parts.end(),
                                       [](const Part& one, const Part& other) { return one.bytes < other.bytes; });
  return fmt::format("The largest part is {}: give --memory {} or more{}", most.what, size_of_at_least(least_memory),
                     most.remedy);
}

// Weights, duals, the store's directory: what is there from the first to the last pass. Returns what it leaves.
uint64_t take_fixed(const Wanted& wanted, Plan& plan) {
  const Store& store = *wanted.problem.store;
  const Context& context = wanted.context;
  const uint64_t rows = store.info().physical_rows();  // removed ones have their places too
  plan.weights_bytes = wanted.weights() * wanted.bytes_per_weight(plan.lanes) * wanted.tasks();
  const uint64_t directory = directory_bytes(store);
  const uint64_t open = wanted.all_classes == nullptr ? 0
                                                      : wanted.tasks() * wanted.usual_chunks() *
                                                            wanted.chunks.most_rows * SparseDuals::kOpenBytesPerRow;
  const uint64_t held = context.reserved_bytes + open;
  const uint64_t fixed = kProgramBytes + held + plan.weights_bytes + directory;
  const uint64_t least = wanted.chunks.least() + wanted.notes(wanted.small_blocks() ? wanted.usual_chunks() : 1);
  if (wanted.all_classes != nullptr)
    plan.duals_bytes = class_duals_bytes(wanted, rows, context.memory_bytes - std::min(context.memory_bytes, fixed));
  else
    plan.duals_bytes = rows * wanted.bytes_per_row() * wanted.tasks();
  const bool all_fit = fixed + plan.duals_bytes + wanted.chunks.encoded + kLeastCertifyBytes <= context.memory_bytes;
  // The duals of the rows in work are always here; all of them, as long as they leave room for rows.
  if (context.checkpoint.wanted() && wanted.all_classes == nullptr && !wanted.newton && !all_fit &&
      fixed + plan.duals_bytes + least + least / 2 > context.memory_bytes && plan.duals_bytes > 0) {
    plan.duals_in_file = true;
    // Those of a block, and a page on its way from or to the file.
    const uint64_t page = wanted.chunks.most_rows * Duals::kBytesPerRow;
    plan.duals_bytes = std::min(plan.duals_bytes, page * (wanted.chunks_in_work() + 1) * wanted.tasks());
  }
  const uint64_t taken = fixed + plan.duals_bytes;
  if (taken + least > context.memory_bytes)
    fail(ErrorKind::memory,
         "{} weights{}{} need {}, {} of {} rows {}, the store's directory {}, a few chunks and what is noted of "
         "their rows {}{}: with the program "
         "itself {} in all, and --memory allows {}. {}",
         grouped(wanted.problem.weights()),
         wanted.all_classes != nullptr ? fmt::format(" for each of {} classes", wanted.problem.classes()) : "",
         wanted.tasks() > 1 ? fmt::format(" for each of {} tasks", wanted.tasks()) : "",
         human_bytes(plan.weights_bytes), wanted.newton ? "the margins" : "the duals", grouped(rows),
         human_bytes(plan.duals_bytes), human_bytes(directory), human_bytes(least),
         held > 0 ? ", what else is held " + human_bytes(held) : "", human_bytes(taken + least),
         human_bytes(context.memory_bytes), remedies(wanted, plan, least, held, taken + least));
  return context.memory_bytes - taken;
}

// Everything, with so many lanes; with one where several do not fit, or where that one lets all rows stay in memory.
Plan share_out(const Wanted& wanted, size_t lanes) {
  Plan plan;
  plan.method = wanted.options.method.index();
  plan.tasks = wanted.tasks();
  plan.lanes = lanes;
  try {
    const uint64_t free = take_fixed(wanted, plan);
    if (!hold_all_rows(wanted, free, plan)) {
      plan.rows = RowsHeld::streamed;
      split_memory(wanted, free, plan);
    }
  } catch (const Error& error) {
    if (lanes == 1 || error.kind() != ErrorKind::memory) throw;
    return share_out(wanted, 1);
  }
  if (lanes == 1 || plan.rows != RowsHeld::streamed) return plan;
  const Plan single = share_out(wanted, 1);
  return single.rows != RowsHeld::streamed ? single : plan;
}

}  // namespace

Plan make_plan(const Problem& problem, const SolveOptions& options, const Context& context) {
  if (std::holds_alternative<IndexedBlock>(options.method)) return make_indexed_plan(problem, options, context);
  if (problem.truncate) {
    Problem convex = problem;
    convex.truncate.reset();
    Context rest = context;
    rest.reserved_bytes += truncated_bytes(problem);
    return make_plan(convex, options, rest);
  }
  if (goes_over_columns(options.method)) return make_column_plan(problem, options, context);
  const Wanted wanted{.problem = problem, .options = options, .context = context};
  const DualBlock* const dual = wanted.dual;
  const size_t count = problem.store->chunks().size();
  Plan plan = share_out(wanted, wanted.usual_lanes());
  plan.inner = dual == nullptr || dual->inner == 0 ? 1 : static_cast<size_t>(dual->inner);
  if (wanted.all_classes != nullptr) plan.inner = static_cast<size_t>(std::max(1, wanted.all_classes->inner));
  if (options.chunks_per_block > 0) plan.chunks_per_block = std::min(plan.chunks_per_block, options.chunks_per_block);
  plan.chunks_per_block =
      std::clamp<size_t>(std::min(plan.chunks_per_block, wanted.most_chunks()), 1, std::max<size_t>(1, count));
  if (plan.rows == RowsHeld::streamed && !wanted.small_blocks() && !std::holds_alternative<Subsample>(options.method))
    check_fixed_blocks(wanted, plan);
  const uint64_t rows = problem.store->info().rows;
  const uint64_t block_nonzeros = problem.store->info().nonzeros / count * plan.chunks_per_block;
  plan.few_features =
      wanted.recomposed() && rows > kManyRows * problem.weights() && block_nonzeros > kManyRows * problem.weights();
  const bool measured = dual != nullptr && dual->inner == 0 && !dual->converge;
  plan.settled = !measured || plan.rows != RowsHeld::streamed;
  return plan;
}

size_t tasks_at_once(const Problem& problem, const SolveOptions& options, const Context& context) {
  Problem part = problem;
  const auto fits = [&](size_t tasks, bool duals_in_file) {
    part.tasks.assign(problem.tasks.begin(), problem.tasks.begin() + static_cast<ptrdiff_t>(tasks));
    try {
      const Plan plan = make_plan(part, options, context);
      return duals_in_file || !plan.duals_in_file;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      return false;
    }
  };
  for (const bool duals_in_file : {false, true}) {
    if (!fits(1, duals_in_file)) continue;
    size_t enough = 1;
    size_t too_many = problem.tasks.size() + 1;
    while (too_many - enough > 1) {
      const size_t middle = enough + (too_many - enough) / 2;
      (fits(middle, duals_in_file) ? enough : too_many) = middle;
    }
    return enough;
  }
  make_plan(part, options, context);  // says what is too large
  return 1;
}

std::string Plan::describe() const {
  if (columns) return describe_column_plan(*this);
  if (name_of_method(method) == "indexed") return describe_indexed_plan(*this);
  std::string text = rows == RowsHeld::decoded   ? "all rows stay in memory, decoded"
                     : rows == RowsHeld::encoded ? "all rows stay in memory, encoded"
                                                 : "rows are read each pass";
  text += fmt::format("; weights {}, {} {}{}, rows {}, {} chunks a block", human_bytes(weights_bytes),
                      name_of_method(method) == "newton" ? "margins" : "duals", human_bytes(duals_bytes),
                      duals_in_file ? " (the others in a file)" : "", human_bytes(window_bytes), chunks_per_block);
  if (tasks > 1) text = fmt::format("{} tasks in the same reading; ", tasks) + text;
  if (cache_bytes > 0 && rows == RowsHeld::streamed)
    text += fmt::format(", {} for rows near the margin", human_bytes(cache_bytes));
  return text;
}

void Plan::save(SnapshotWriter& to) const {
  to.put("plan",
         std::span<const uint64_t>(std::array<uint64_t, 17>{
             static_cast<uint64_t>(rows), duals_in_file ? 1U : 0U, weights_bytes, duals_bytes, window_bytes,
             cache_bytes, certify_bytes, certify_window_bytes, chunks_per_block, inner, static_cast<uint64_t>(idle),
             settled ? 1U : 0U, few_features ? 1U : 0U, tasks, lanes, method, columns ? 1U : 0U}));
}

Plan Plan::restore(const SnapshotReader& from) {
  std::array<uint64_t, 17> numbers{};
  from.take("plan", std::span<uint64_t>(numbers));
  if (numbers[0] > static_cast<uint64_t>(RowsHeld::streamed) || numbers[8] == 0 || numbers[9] == 0 ||
      numbers[14] == 0 || numbers[15] >= std::variant_size_v<Method>)
    fail(ErrorKind::damaged, "the checkpoint's plan cannot be understood: --fresh begins anew");
  return {.method = numbers[15],
          .tasks = numbers[13],
          .columns = numbers[16] != 0,
          .rows = static_cast<RowsHeld>(numbers[0]),
          .duals_in_file = numbers[1] != 0,
          .weights_bytes = numbers[2],
          .duals_bytes = numbers[3],
          .window_bytes = numbers[4],
          .cache_bytes = numbers[5],
          .certify_bytes = numbers[6],
          .certify_window_bytes = numbers[7],
          .chunks_per_block = numbers[8],
          .few_features = numbers[12] != 0,
          .inner = numbers[9],
          .idle = static_cast<double>(numbers[10]),
          .settled = numbers[11] != 0,
          .lanes = numbers[14]};
}

}  // namespace linblock
