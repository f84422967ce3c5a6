#include "solve/core/row_plan.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/memory.h"
#include "solve/core/pass.h"

namespace linblock {

namespace {

constexpr double kLeastWorkingSetShare = 0.4;  // of the memory for rows, where a split is to be chosen
constexpr uint64_t kManyRows = 16;             // for each feature
constexpr uint64_t kWorkingSetRows = 3;        // one in so many rows may be in it ...
constexpr uint64_t kFewFeaturesRows = 12;      // ... and with few features: rounds over more of them come too seldom

class RowPlanner {
 public:
  RowPlanner(const RowNeeds& needs, const Problem& problem, const SolveOptions& options, const Context& context)
      : needs_(needs),
        problem_(problem),
        options_(options),
        context_(context),
        tasks_(problem.tasks.size()),
        chunks_(*problem.store) {}

  Plan make() const {
    const size_t count = problem_.store->chunks().size();
    Plan plan = share_out();
    if (options_.chunks_per_block > 0)
      plan.chunks_per_block = std::min(plan.chunks_per_block, options_.chunks_per_block);
    plan.kept_rows = plan.cache_bytes > 0 ? kept_rows() : 0;
    plan.chunks_per_block =
        std::clamp<size_t>(std::min(plan.chunks_per_block, needs_.most_chunks), 1, std::max<size_t>(1, count));
    if (plan.rows == RowsHeld::streamed && needs_.blocks == Blocks::buckets) check_buckets(plan);
    const uint64_t block_nonzeros = problem_.store->info().nonzeros / count * plan.chunks_per_block;
    plan.few_features = needs_.few_features && problem_.store->info().rows > kManyRows * problem_.weights() &&
                        block_nonzeros > kManyRows * problem_.weights();
    return plan;
  }

 private:
  uint64_t kept_rows() const {
    if (has_sample()) return needs_.sample_rows;
    return problem_.store->info().rows / (needs_.few_features ? kFewFeaturesRows : kWorkingSetRows) + 1;
  }
  bool has_sample() const { return needs_.sample_rows > 0; }
  bool small_blocks() const { return needs_.blocks == Blocks::recomposed; }
  size_t usual_chunks() const {
    if (options_.chunks_per_block > 0) return options_.chunks_per_block;
    if (needs_.usual_chunks > 0) return needs_.usual_chunks;
    return needs_.batch_bytes > 0 ? kChunksPerBlockOfBatches : kUsualChunksPerBlock;
  }

  // Fixed blocks are whole buckets: one may have more chunks than are asked for.
  BlockOrder bucket_blocks(size_t chunks_per_block) const {
    return order_of_pass(*problem_.store,
                         {.schedule = Schedule::fixed,
                          .chunks_per_block = chunks_per_block,
                          .blocks = needs_.fixed_blocks,
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
    return std::max({usual_chunks(), kUsualChunksPerBlock,
                     needs_.blocks == Blocks::buckets ? largest_of(bucket_blocks(usual_chunks())) : 0});
  }
  // What all tasks note of so many chunks.
  uint64_t notes_on(uint64_t count) const {
    const uint64_t rows = std::min(count * chunks_.most_rows, problem_.store->info().physical_rows());
    return rows * tasks_ * needs_.note_bytes;
  }
  // Where blocks are to have so many chunks.
  uint64_t notes(size_t chunks_per_block) const {
    switch (needs_.blocks) {
      case Blocks::part: return notes_on(needs_.part_chunks);
      case Blocks::recomposed: return notes_on(chunks_per_block);
      case Blocks::buckets: break;
    }
    return notes_on(largest_of(bucket_blocks(chunks_per_block)));
  }

  // For as many tasks as fit. Speed alone, and no bit, depends on it. Returns what it takes.
  uint64_t take_side_by_side(uint64_t free, Plan& plan) const {
    if (needs_.side_by_side_bytes == 0) return 0;
    const uint64_t copied = std::min<uint64_t>(tasks_, free / needs_.side_by_side_bytes);
    if (copied < 2) return 0;
    plan.add_part(kSideBySide, copied * needs_.side_by_side_bytes);
    return copied * needs_.side_by_side_bytes;
  }

  // Of all tasks, where rows are read in each pass.
  uint64_t whole_sample() const { return needs_.sample_rows * needs_.bytes_per_sample_row * tasks_; }

  // Rows are read again in each pass: a window for them, and what is left for the working set.
  void split_memory(uint64_t free, Plan& plan) const {
    const uint64_t least = chunks_.least();
    const bool small = small_blocks() || plan.duals_in_file;
    // Large blocks: two of them, and the notes on one.
    const uint64_t fitting_with_notes = free / (2 * chunks_.largest + notes_on(1));
    free -= std::min(free - least, notes(small ? usual_chunks() : std::max<size_t>(1, fitting_with_notes)));
    // Two blocks and one v come first.
    const uint64_t enough = 2 * usual_chunks() * chunks_.largest + least + needs_.v_bytes;
    if (free > enough) free -= take_side_by_side(free - enough, plan);
    uint64_t window = free;
    if (needs_.working_set_share) {
      window = static_cast<uint64_t>(static_cast<double>(free) * (1 - *needs_.working_set_share));
    } else if (needs_.shares_out_working_set && !plan.duals_in_file && tasks_ == 1) {
      // Two blocks and a little.
      const auto most = static_cast<uint64_t>(static_cast<double>(free) * (1 - kLeastWorkingSetShare));
      window = std::min(2 * usual_chunks() * chunks_.largest, most) + least;
    }
    plan.window_bytes = std::clamp(window, least, free);
    plan.cache_bytes = !needs_.has_working_set || plan.duals_in_file ? 0 : free - plan.window_bytes;
    if (has_sample() && plan.cache_bytes > whole_sample()) {
      plan.cache_bytes = whole_sample();
      plan.window_bytes = free - plan.cache_bytes;
    }
    plan.certify_bytes = std::min(needs_.v_bytes * tasks_,
                                  needs_.certifies_in_window ? plan.window_bytes - least / 2 : plan.window_bytes / 4);
    plan.certify_window_bytes = plan.window_bytes - plan.certify_bytes;
    const auto fitting = std::max<size_t>(1, plan.window_bytes / 2 / chunks_.largest);
    plan.chunks_per_block = small ? std::min(fitting, usual_chunks()) : fitting;
  }

  // All rows stay, decoded or at least encoded, if they leave room for the rest. False: they do not fit.
  bool hold_all_rows(uint64_t free, Plan& plan) const {
    const size_t count = problem_.store->chunks().size();
    const bool small = small_blocks() || plan.duals_in_file;
    plan.chunks_per_block = small ? std::min(count, usual_chunks()) : count;
    // Several tasks visit every row of a block: it is decoded for them.
    const uint64_t space = tasks_ == 1 ? 0 : std::max(plan.chunks_per_block, chunks_in_work()) * chunks_.largest_space;
    // The working set needs no memory of its own where all rows are here, only a list; and its duals at hand.
    // Tasks that share their rows are faster without, unless features are few: another pass is what costs least then.
    const auto of_use = [&] { return tasks_ == 1 || needs_.few_features || needs_.working_set_share.has_value(); };
    const bool has_list = has_sample() || (needs_.shares_out_working_set && needs_.working_set_share.value_or(1) > 0 &&
                                           !plan.duals_in_file && of_use());
    const uint64_t list = has_list ? kept_rows() * needs_.bytes_per_listed_row : 0;
    const uint64_t v = needs_.v_bytes;
    free -= std::min(free, notes(plan.chunks_per_block));
    const uint64_t remembered = problem_.store->info().physical_rows() * needs_.remembered_bytes_per_row;
    // A list is worth less than rows that stay; a sample is worth more, and a smaller one costs passes.
    const uint64_t beside_decoded = has_sample() ? list * tasks_ : list;
    const uint64_t beside_encoded = has_sample() ? list * tasks_ : 0;
    if (chunks_.decoded + remembered + v + beside_decoded <= free)
      plan.rows = RowsHeld::decoded;
    else if (chunks_.encoded + space + std::min(v, kLeastCertifyBytes) + beside_encoded <= free)
      plan.rows = RowsHeld::encoded;
    else
      return false;
    plan.window_bytes = plan.rows == RowsHeld::decoded ? chunks_.decoded + remembered : chunks_.encoded + space;
    uint64_t left = free - plan.window_bytes;
    plan.certify_bytes = std::min(v, left);
    plan.cache_bytes = std::min(left - plan.certify_bytes, list * tasks_);
    left -= take_side_by_side(left - plan.certify_bytes - plan.cache_bytes, plan);
    // What is left may certify several tasks at once.
    if (plan.certify_bytes == v && v > 0)
      plan.certify_bytes = std::clamp((left - plan.cache_bytes) / v, uint64_t{1}, uint64_t{tasks_}) * v;
    return true;
  }

  // The blocks of the paper are whole buckets: where there are few of those, one may be larger than the window.
  void check_buckets(const Plan& plan) const {
    const BlockOrder order = bucket_blocks(plan.chunks_per_block);
    const uint64_t most = largest_of(order);
    if (most * chunks_.largest <= plan.window_bytes) return;
    const bool one_bucket_each = order.ends.size() >= most_fixed_blocks(*problem_.store);
    std::vector<Remedy> remedies = {say("give more `memory`"), say("use `schedule` recomposed")};
    if (!one_bucket_each) remedies.push_back(say("ask for more `blocks`"));
    fail(ErrorKind::memory, std::move(remedies), "a fixed block of {} chunks needs {}, and `memory` leaves {} for rows",
         most, human_bytes(most * chunks_.largest), human_bytes(plan.window_bytes));
  }

  // What is there from the first pass to the last. Returns what it leaves.
  uint64_t take_fixed(Plan& plan) const {
    const Store& store = *problem_.store;
    const uint64_t rows = store.info().physical_rows();  // removed ones have their places too
    const uint64_t weights = needs_.weights * needs_.bytes_per_weight * tasks_;
    const uint64_t directory = directory_bytes(store);
    const uint64_t held =
        context_.reserved_bytes + tasks_ * usual_chunks() * chunks_.most_rows * needs_.open_bytes_per_row;
    uint64_t fixed = kProgramBytes + held + weights + directory + needs_.batch_bytes;
    for (const MemoryPart& part : needs_.others) fixed += part.bytes;
    const uint64_t least = chunks_.least() + notes(small_blocks() ? usual_chunks() : 1);
    uint64_t kept = needs_.kept_bytes
                        ? needs_.kept_bytes(chunks_, context_.memory_bytes - std::min(context_.memory_bytes, fixed))
                        : rows * needs_.bytes_per_row * tasks_;
    const bool all_fit = fixed + kept + chunks_.encoded + kLeastCertifyBytes <= context_.memory_bytes;
    // What is kept of the rows in work is always here; all of it, as long as it leaves room for rows.
    if (context_.checkpoint.wanted() && needs_.may_be_filed && !all_fit &&
        fixed + kept + least + least / 2 > context_.memory_bytes && kept > 0) {
      plan.duals_in_file = true;
      // Of a block, and a page on its way from or to the file.
      const uint64_t page = chunks_.most_rows * needs_.bytes_per_row;
      kept = std::min(kept, page * (chunks_in_work() + 1) * tasks_);
    }
    const std::vector<Remedy> fewer_tasks = tasks_ > 1 ? std::vector{say("use fewer `folds`")} : std::vector<Remedy>();
    const std::vector<Remedy> fewer_weights = tasks_ > 1 ? fewer_tasks : std::vector{say("use fewer features")};
    plan.add_part("weights", weights, needs_.remedies_for_weights.empty() ? fewer_weights : needs_.remedies_for_weights,
                  features_words(problem_, needs_.weights / std::max<size_t>(1, problem_.weights())));
    if (kept > 0 || needs_.bytes_per_row > 0)
      plan.add_part(needs_.kept_of_rows, kept,
                    needs_.remedies_for_rows.empty() ? fewer_tasks : needs_.remedies_for_rows, grouped(rows) + " rows");
    if (needs_.batch_bytes > 0) plan.add_part("batches", needs_.batch_bytes, {use("batch", "1")});
    for (const MemoryPart& part : needs_.others) plan.parts.push_back(part);
    const uint64_t taken = fixed + kept;
    if (taken + least > context_.memory_bytes) refuse(plan, held, directory, least, taken + least);
    return context_.memory_bytes - taken;
  }

  [[noreturn]] void refuse(Plan plan, uint64_t held, uint64_t directory, uint64_t least, uint64_t needed) const {
    plan.add_part("chunk table", directory);
    plan.add_part("a few chunks", least, {say("pack with smaller chunks (`chunk_bytes`)")});
    if (held > 0) plan.add_part("what the caller holds", held);
    refuse_memory(plan, needed, context_.memory_bytes);
  }

  Plan share_out() const {
    Plan plan;
    plan.tasks = tasks_;
    const uint64_t free = take_fixed(plan);
    if (!hold_all_rows(free, plan)) {
      plan.rows = RowsHeld::streamed;
      split_memory(free, plan);
    }
    plan.add_part("rows", plan.window_bytes);
    if (plan.cache_bytes > 0 && plan.rows == RowsHeld::streamed) plan.add_part("working set", plan.cache_bytes);
    return plan;
  }

  const RowNeeds& needs_;
  const Problem& problem_;
  const SolveOptions& options_;
  const Context& context_;
  const size_t tasks_;
  const ChunkSums chunks_;
};

}  // namespace

bool has_few_features(const Problem& problem) {
  return problem.store->info().physical_rows() > kManyRows * problem.weights();
}

Plan plan_rows(const RowNeeds& needs, const Problem& problem, const SolveOptions& options, const Context& context) {
  return RowPlanner(needs, problem, options, context).make();
}

}  // namespace linblock
