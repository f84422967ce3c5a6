// Dual coordinate descent on blocks of rows.
//
// Problem:  max over alpha  sum of dual_value(alpha_i, C_i) - 1/2 |v|^2,  v = sum of alpha_i y_i x_i,  0 <= alpha_i <=
// U_i Update:   for row i of the block, in random order: alpha_i to the maximum along its coordinate, w += change * y_i
// x_i Paper:    Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in memory": Algorithms 1 and
// 2; the
//           step and the shrinking are those of Hsieh et al. (2008). `inner` rounds a block is BLOCK-L-N, `converge`
//           BLOCK-L-D. Fixed blocks are the paper's; recomposed ones are drawn anew each pass.
// Reads:    the whole store once a pass, and once for each certificate; nothing after the first pass where it fits.
#include "solve/dual_block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/dot.h"
#include "base/error.h"
#include "base/random.h"
#include "solve/run.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kConvergeTolerance = 0.1;  // of a sub-problem: LIBLINEAR's default
constexpr uint8_t kCached = 0x80;           // in a row's rest: it is kept across blocks
constexpr uint8_t kRestPasses = 2;          // for a row that is clearly at a bound
constexpr double kFarOut = 2;               // so many times the mean violation
constexpr int kMostInner = 10;
constexpr size_t kRowWork = 8;  // what a row costs beside its nonzeros, in nonzeros
constexpr int kMostKeptRounds = 100;
constexpr double kStride = 1.5;  // with few features; on documents anything beyond 1 costs passes
constexpr double kZealStep = 1.3;
constexpr double kLeastZeal = 0.1;
constexpr double kMostZeal = 6;
constexpr double kPatience = 0.5;        // seconds that a block may still take when told to stop
constexpr double kKeptAtEviction = 0.8;  // of the kept bytes

// Work is free while the disk is waited for: half of it for more rounds over the blocks, half for kept rows.
void use_idle_time(const PassReport& pass, Plan& plan) {
  plan.settled = true;
  plan.idle = std::floor(pass.costs.wait_seconds / std::max(pass.solve_seconds, 1e-9));
  plan.inner = static_cast<size_t>(std::clamp(1 + plan.idle / 2, 1.0, double{kMostInner}));
}

}  // namespace

DualDescent::DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution,
                         const std::atomic<bool>* stop)
    : problem_(problem), costs_(problem, task), seed_(seed), solution_(solution), stop_(stop) {
  solution_.weights.resize(problem.weights(), 0);
}

void DualDescent::keep_rows(uint64_t bytes, const std::vector<Chunk>* resident) {
  cache_ = RowCache(*problem_.store, bytes, resident);
}

void DualDescent::expect_few_features() {
  mean_.assign(problem_.weights(), 0);
  // The logistic dual may not touch its bounds, so its steps stay what they are.
  if (!std::holds_alternative<Logistic>(problem_.loss)) stride_ = kStride;
}

void DualDescent::begin_pass(int pass) {
  if (pass == pass_) return;  // taken up again before its first block
  pass_ = pass;
  far_out_ = violations_ == 0 ? kInfinity : kFarOut * violation_ / static_cast<double>(violations_);
  violation_ = 0;
  violations_ = 0;
  losses_ = std::exchange(resting_losses_[static_cast<size_t>(pass) % resting_losses_.size()], 0);
  mean_of_ = 0;
  least_worth_ = 0;
  std::fill(active_.begin(), active_.end(), uint8_t{1});
}

double DualDescent::squared_weights() const {
  double sum = 0;
  for (const float weight : solution_.weights) sum += double{weight} * double{weight};
  return sum;
}

bool DualDescent::must_leave(const Stopwatch& working) const {
  return stop_ != nullptr && *stop_ && working.seconds() > kPatience;
}

bool DualDescent::solve_block(const Block& block, size_t number, const Rounds& rounds) {
  Block with_kept = block;
  with_kept.cache = &cache_;
  solution_.duals.fetch(block.numbers);
  const bool finished =
      std::visit([&](const auto& loss) { return solve_block_with(loss, with_kept, number, rounds); }, problem_.loss);
  if (!finished) return false;
  solution_.duals.put_back(block.numbers, static_cast<uint32_t>(pass_));
  const auto share = 1 / static_cast<float>(++mean_of_);
  for (size_t i = 0; i < mean_.size(); ++i) mean_[i] += share * (solution_.weights[i] - mean_[i]);
  return true;
}

template <DualLoss L>
bool DualDescent::solve_block_with(const L& loss, const Block& block, size_t number, const Rounds& rounds) {
  collect(block, rounds.kept_join);
  done_ = {};  // what came before would round this block's sums otherwise than after a checkpoint
  Random random(seed_, mix64(static_cast<uint64_t>(pass_), number));
  const Stopwatch working;
  size_t active = visitors_.size();
  double top = kInfinity;  // what the last round left of the largest and smallest projected gradient
  double bottom = -kInfinity;
  for (int round = 0; round < rounds.most; ++round) {
    if (round > 0 && must_leave(working)) return false;
    double highest = -kInfinity;
    double lowest = kInfinity;
    for (size_t i = active; i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
    for (size_t i = 0; i < active; ++i) {
      look_ahead(block, i, active);
      const Visit visit = update(loss, block, visitors_[i], round == 0, top, bottom);
      if (visit.shrink) {
        std::swap(visitors_[i], visitors_[--active]);
        --i;
        continue;
      }
      highest = std::max(highest, visit.projected);
      lowest = std::min(lowest, visit.projected);
    }
    if (rounds.converge && highest - lowest <= kConvergeTolerance) {
      if (active == visitors_.size()) break;
      active = visitors_.size();  // once more, with everything
      top = kInfinity;
      bottom = -kInfinity;
      continue;
    }
    top = highest > 0 ? highest : kInfinity;
    bottom = lowest < 0 ? lowest : -kInfinity;
  }
  if (cache_.capacity() == 0) return true;
  choose_rows(loss, block);
  if (rounds.kept_join) return true;
  fresh_.gain += done_.gain;
  fresh_.work += done_.work;
  credit_ += zeal_ * done_.work;
  return work_on_kept(loss, block, random, working);
}

// Rows are visited in random order: they are on their way from memory before their turn comes.
void DualDescent::look_ahead(const Block& block, size_t at, size_t end) const {
  const auto is_near = [&](size_t i) { return i >= end || block.is_cached(visitors_[i].place); };
  const auto chunk_of = [&](size_t i) { return block.chunks[Block::chunk_of(visitors_[i].place)]; };
  if (!is_near(at + 4)) chunk_of(at + 4)->prefetch_place(Block::row_of(visitors_[at + 4].place));
  if (!is_near(at + 2)) chunk_of(at + 2)->prefetch(Block::row_of(visitors_[at + 2].place));
}

// Which rows of the block are to be looked at: not those that rest.
void DualDescent::collect(const Block& block, bool kept_join) {
  visitors_.clear();
  for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk) {
    const std::span<uint8_t> rest = solution_.duals.rest(block.numbers[chunk]);
    for (uint32_t row = 0; row < rest.size(); ++row) {
      if ((rest[row] & ~kCached) != 0)
        --rest[row];
      else
        visitors_.push_back({Block::place(chunk, row)});
    }
  }
  for (size_t kept = 0; kept < cache_.size() && kept_join; ++kept) visitors_.push_back({block.cached_place(kept)});
}

// Far beyond the usual violation of the last pass: a row at a bound can wait for a few passes, and the certificate will
// see it. Until then its loss counts as it is now.
void DualDescent::rest(RowCache::Origin origin, double loss) {
  uint8_t& passes = solution_.duals.rest(origin.chunk)[origin.row];
  passes = (passes & kCached) | kRestPasses;
  for (size_t later = 1; later <= kRestPasses; ++later)
    resting_losses_[(static_cast<size_t>(pass_) + later) % resting_losses_.size()] += loss;
}

template <DualLoss L>
DualDescent::Visit DualDescent::update(const L& loss, const Block& block, Visitor& visitor, bool first, double top,
                                       double bottom) {
  const Row row = block.row(visitor.place, buffer_);
  const double cost = costs_.cost(row);
  if (cost == 0) return {};
  done_.work += static_cast<double>(row.index.size() + kRowWork);
  const RowCache::Origin origin = block.origin(visitor.place);
  const double sign = costs_.sign(row);
  double& alpha = solution_.duals.page(origin.chunk)[origin.row];
  const double margin = margin_of(row, sign, problem_.bias, solution_.weights);
  visitor.margin = static_cast<float>(margin);
  const bool counted = first && !block.is_cached(visitor.place);
  if (counted) losses_ += cost * loss.value(margin);
  const double from = alpha == 0 ? loss.first_alpha(cost) : alpha;
  const double gradient = loss.dual_gradient(from, margin, cost);
  Visit visit;
  if (alpha == 0 && gradient > 0) {
    if (gradient > top) visit.shrink = true;
    if (counted && gradient > far_out_) rest(origin, cost * loss.value(margin));
  } else if (alpha == loss.largest_alpha(cost) && gradient < 0) {
    if (gradient < bottom) visit.shrink = true;
    if (counted && -gradient > far_out_) rest(origin, cost * loss.value(margin));
  } else {
    visit.projected = gradient;
    if (counted) {
      violation_ += std::abs(gradient);
      ++violations_;
    }
  }
  if (visit.shrink || visit.projected == 0) return visit;
  double norm2 = squared_norm(row.value);
  if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
  // A row without features has no say in w: its alpha goes straight to where its own term is largest.
  double next = loss.dual_step(from, margin, std::max(norm2, 1e-300), cost);
  if (stride_ != 1) next = std::clamp(alpha + stride_ * (next - alpha), 0.0, loss.largest_alpha(cost));
  if (next == alpha) return visit;
  const double value_change =
      (next == 0 ? 0 : loss.dual_value(next, cost)) - (alpha == 0 ? 0 : loss.dual_value(alpha, cost));
  dual_values_ += value_change;
  done_.gain += value_change - (next - alpha) * (margin + 0.5 * (next - alpha) * norm2);
  const auto change = static_cast<float>(sign * (next - alpha));
  alpha = next;
  add_scaled(row.index, row.value, change, solution_.weights.data());
  if (problem_.has_bias()) solution_.weights.back() += change * static_cast<float>(problem_.bias);
  return visit;
}

// Kept rows are worked on for as long as a unit of work earns more of the dual there than on fresh rows, whose reading
// counts as well: the work due grows with that on fresh rows, faster or slower as the last rounds were worth it.
template <DualLoss L>
bool DualDescent::work_on_kept(const L& loss, const Block& block, Random& random, const Stopwatch& working) {
  for (int round = 0; round < kMostKeptRounds; ++round) {
    if (must_leave(working)) return false;
    double cost = 0;
    for (size_t i = 0; i < cache_.size(); ++i)
      if (active_[i] != 0) cost += static_cast<double>(cache_.nonzeros(i) + kRowWork);
    if (cost == 0 || credit_ < cost) return true;
    const Yield before = done_;
    kept_round(loss, block, random);
    const Yield kept{done_.gain - before.gain, done_.work - before.work};
    credit_ -= kept.work;
    const bool worth_it = kept.rate() * (1 + idle_) > fresh_.rate();
    zeal_ = std::clamp(worth_it ? zeal_ * kZealStep : zeal_ / kZealStep, kLeastZeal, kMostZeal * (1 + idle_));
    if (!worth_it) credit_ = 0;
    fresh_ = {fresh_.gain / 2, fresh_.work / 2};  // what was long ago counts little
  }
  credit_ = 0;
  return true;
}

template <DualLoss L>
void DualDescent::kept_round(const L& loss, const Block& block, Random& random) {
  visitors_.clear();
  for (size_t i = 0; i < cache_.size(); ++i)
    if (active_[i] != 0) visitors_.push_back({block.cached_place(i)});
  for (size_t i = visitors_.size(); i > 1; --i) std::swap(visitors_[i - 1], visitors_[random.below(i)]);
  const double top = kept_top_ > 0 ? kept_top_ : kInfinity;
  const double bottom = kept_bottom_ < 0 ? kept_bottom_ : -kInfinity;
  kept_top_ = -kInfinity;
  kept_bottom_ = kInfinity;
  for (size_t i = 0; i < visitors_.size(); ++i) {
    look_ahead(block, i, visitors_.size());
    Visitor& visitor = visitors_[i];
    const Visit visit = update(loss, block, visitor, false, top, bottom);
    if (visit.shrink) active_[block.cached_number(visitor.place)] = 0;
    kept_top_ = std::max(kept_top_, visit.projected);
    kept_bottom_ = std::min(kept_bottom_, visit.projected);
  }
}

// Selective block minimization (Chang and Roth, 2011): a row is worth keeping when it is near the margin, or when its
// own part of the duality gap is large; for each byte that it takes.
template <DualLoss L>
float DualDescent::worth(const L& loss, const Block& block, const Visitor& visitor, double cost, uint64_t bytes) {
  const RowCache::Origin origin = block.origin(visitor.place);
  const double alpha = solution_.duals.page(origin.chunk)[origin.row];
  const auto margin = static_cast<double>(visitor.margin);
  const double own_gap = cost * loss.value(margin) + alpha * margin - (alpha == 0 ? 0 : loss.dual_value(alpha, cost));
  const bool free = alpha > 0 && alpha < loss.largest_alpha(cost);
  const double near = free ? 1 : std::exp(-4 * std::abs(margin - 1));
  const double worth = (near + own_gap) / static_cast<double>(bytes);
  return worth > 0 ? static_cast<float>(std::min(worth, 1e30)) : 0;  // whatever huge values make of it
}

template <DualLoss L>
void DualDescent::choose_rows(const L& loss, const Block& block) {
  for (const Visitor& visitor : visitors_) {
    if (block.is_cached(visitor.place)) {
      const size_t number = block.cached_number(visitor.place);
      const Row row = cache_.row(number, buffer_);
      worths_[number] = worth(loss, block, visitor, costs_.cost(row), cache_.bytes_of(number));
    }
  }
  for (const Visitor& visitor : visitors_) {
    if (block.is_cached(visitor.place)) continue;
    const RowCache::Origin origin = block.origin(visitor.place);
    uint8_t& rest = solution_.duals.rest(origin.chunk)[origin.row];
    if (rest != 0) continue;  // resting, or kept already
    const EncodedRow row = block.chunks[Block::chunk_of(visitor.place)]->encoded(origin.row, buffer_);
    const double cost = costs_.cost(Row{.label = row.label, .weight = row.weight});
    if (cost == 0) continue;
    const float value = worth(loss, block, visitor, cost, cache_.bytes_of(row));
    if (value <= least_worth_) continue;
    if (!cache_.add(origin, row)) {
      evict();
      if (value <= least_worth_ || !cache_.add(origin, row)) continue;
    }
    worths_.push_back(value);
    active_.push_back(1);
    rest |= kCached;
  }
}

// The least worthy go, and rows that are worth no more than they do not come in again in this pass.
void DualDescent::evict() {
  // By classes of worth, eight to a power of two: a sort would cost more than the rows.
  const auto class_of = [](float value) { return std::bit_cast<uint32_t>(value) >> 20; };
  std::array<uint64_t, 2048> bytes{};
  for (size_t i = 0; i < cache_.size(); ++i) bytes[class_of(worths_[i])] += cache_.bytes_of(i);
  auto room = static_cast<uint64_t>(kKeptAtEviction * static_cast<double>(cache_.capacity()));
  uint32_t least = 2047;
  while (least > 0 && bytes[least] <= room) room -= bytes[least--];
  least_worth_ = std::bit_cast<float>((least + 1) << 20);
  std::vector<uint8_t> keep(cache_.size());
  size_t kept = 0;
  for (size_t i = 0; i < cache_.size(); ++i) {
    const uint32_t own = class_of(worths_[i]);
    // Of the class on the border, as many as fit.
    keep[i] = own > least || (own == least && cache_.bytes_of(i) <= room);
    if (own == least && keep[i] != 0) room -= cache_.bytes_of(i);
    const RowCache::Origin origin = cache_.origin(i);
    if (keep[i] != 0) {
      active_[kept] = active_[i];
      worths_[kept++] = worths_[i];
    } else {
      solution_.duals.rest(origin.chunk)[origin.row] &= static_cast<uint8_t>(~kCached);
    }
  }
  worths_.resize(kept);
  active_.resize(kept);
  cache_.keep(keep);
}

void DualDescent::save(SnapshotWriter& to) const {
  solution_.duals.sync();
  to.put("weights", std::span<const float>(solution_.weights));
  if (!solution_.duals.in_file()) {
    to.put("duals", std::span<const double>(solution_.duals.all()));
    to.put("rest", std::span<const uint8_t>(solution_.duals.all_rests()));
  }
  if (cache_.capacity() > 0) {
    cache_.save(to);
    to.put("active", std::span<const uint8_t>(active_));
    to.put("worths", std::span<const float>(worths_));
    to.put("zeal",
           std::span<const double>(std::array{fresh_.gain, fresh_.work, credit_, zeal_, kept_top_, kept_bottom_}));
  }
  to.put("resting losses", std::span<const double>(resting_losses_));
  to.put("mean", std::span<const float>(mean_));
  to.put("descent", std::span<const double>(std::array{
                        static_cast<double>(pass_), violation_, static_cast<double>(violations_), far_out_, losses_,
                        dual_values_, static_cast<double>(least_worth_), static_cast<double>(mean_of_)}));
}

void DualDescent::restore(const SnapshotReader& from, const BlockOrder& order, size_t done) {
  from.take("weights", std::span<float>(solution_.weights));
  from.take("resting losses", std::span<double>(resting_losses_));
  from.take("mean", std::span<float>(mean_));
  std::array<double, 8> numbers{};
  from.take("descent", std::span<double>(numbers));
  pass_ = static_cast<int>(numbers[0]);
  violation_ = numbers[1];
  violations_ = static_cast<uint64_t>(numbers[2]);
  far_out_ = numbers[3];
  losses_ = numbers[4];
  dual_values_ = numbers[5];
  least_worth_ = static_cast<float>(numbers[6]);
  mean_of_ = static_cast<size_t>(numbers[7]);
  if (solution_.duals.in_file()) {
    // What this pass has put back already, and what the pass before it has.
    const size_t chunks_done = done == 0 ? 0 : order.ends[done - 1];
    for (size_t i = 0; i < order.chunks.size(); ++i)
      solution_.duals.set_version(order.chunks[i],
                                  static_cast<uint32_t>(i < chunks_done || pass_ == 0 ? pass_ : pass_ - 1));
  } else {
    from.take("duals", solution_.duals.all());
    from.take("rest", solution_.duals.all_rests());
  }
  if (cache_.capacity() == 0) return;
  cache_.restore(from);
  active_.resize(cache_.size());
  from.take("active", std::span<uint8_t>(active_));
  worths_.resize(cache_.size());
  from.take("worths", std::span<float>(worths_));
  std::array<double, 6> zeal{};
  from.take("zeal", std::span<double>(zeal));
  fresh_ = {zeal[0], zeal[1]};
  credit_ = zeal[2];
  zeal_ = zeal[3];
  kept_top_ = zeal[4];
  kept_bottom_ = zeal[5];
}

Summary solve_dual_block(const Problem& problem, const SolveOptions& options, const DualBlock& method,
                         std::vector<Solution>& solutions, const Context& context) {
  Run run(problem, options, method, context);
  Plan& plan = run.plan();
  const ScheduleOptions schedule{.schedule = method.schedule,
                                 .chunks_per_block = plan.chunks_per_block,
                                 .blocks = method.blocks,
                                 .sequence = method.sequence,
                                 .seed = options.seed};
  const auto order_of = [&](int pass) { return order_of_pass(*problem.store, schedule, static_cast<uint64_t>(pass)); };
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  if (solution.duals.empty()) solution.duals = run.make_duals();
  DualDescent descent(problem, task, options.seed, solution, context.stop);
  if (plan.cache_bytes > 0) descent.keep_rows(plan.cache_bytes, run.resident());
  if (plan.few_features) descent.expect_few_features();
  // Estimates are of losses before a step, and so too high, the more so where a mean is better than the weights that
  // made them: a certificate that costs but one pass is tried early.
  const bool cheap = plan.certify_bytes >= problem.weights() * sizeof(double);
  double trust = !cheap ? 1 : plan.few_features ? 0.3 : 0.5;  // certified gap / estimated gap, as far as is known
  const auto save = [&](SnapshotWriter& to) {
    to.put("trust", trust);
    descent.save(to);
  };
  if (const auto checkpoint = run.take_checkpoint()) {
    trust = checkpoint->take<double>("trust");
    descent.restore(*checkpoint, order_of(run.pass), run.block);
  }
  for (;; ++run.pass, run.block = 0) {
    if (run.block == 0) descent.begin_pass(run.pass);
    const DualDescent::Rounds rounds{.most = method.converge ? kConvergeRounds : static_cast<int>(plan.inner),
                                     .converge = method.converge,
                                     .kept_join = method.inner > 0 || method.converge};
    descent.set_idle(plan.idle);
    run.work_on_pass(
        order_of(run.pass),
        [&](const Block& block, size_t number) { return descent.solve_block(block, number, rounds); }, save,
        plan.duals_in_file);
    PassReport report = run.pass_report();
    if (!plan.settled) {
      use_idle_time(report, plan);
      // What was measured is kept before it takes effect; nothing to gain, nothing to keep.
      if (plan.idle > 0) run.save(save);
    }
    const double w2 = descent.squared_weights();
    report.primal_estimate = 0.5 * w2 + descent.losses();
    report.dual = descent.dual_values() - 0.5 * w2;
    report.weights = &solution.weights;
    const bool last = run.last_pass();
    const double estimate = report.gap_estimate();
    if (last || estimate * trust <= options.tolerance) {
      report.certified =
          run.certify(task, solution,
                      {.mend_above = last ? std::nullopt : std::optional(options.tolerance), .mean = descent.mean()});
      if (estimate > 0 && std::isfinite(estimate)) trust = std::clamp(report.certified->gap() / estimate, 0.1, 1.0);
    }
    run.report(report);
    const bool converged = report.certified && report.certified->gap() <= options.tolerance;
    if (converged || last) return run.finish(converged ? Termination::converged : run.limit(), *report.certified);
  }
}

}  // namespace linblock
