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
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "base/dot.h"
#include "base/error.h"
#include "base/random.h"

namespace linblock {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kConvergeTolerance = 0.1;  // of a sub-problem: LIBLINEAR's default
constexpr uint8_t kRestPasses = 3;          // for a row that is clearly no support vector
constexpr int kMostInner = 10;

}  // namespace

DualDescent::DualDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution)
    : problem_(problem), costs_(problem, task), seed_(seed), solution_(solution) {
  solution_.weights.resize(problem.weights(), 0);
  if (solution_.duals.empty()) solution_.duals = Duals(*problem.store);
  rest_.assign(solution_.duals.all().size(), 0);
}

void DualDescent::begin_pass(int pass) {
  pass_ = pass;
  last_violation_ = pass == 1 ? kInfinity : violation_;
  violation_ = 0;
  losses_ = 0;
}

void DualDescent::solve_block(const Block& block, size_t number, int rounds, bool converge) {
  std::visit([&](const auto& loss) { solve_block_with(loss, block, number, rounds, converge); }, problem_.loss);
}

template <DualLoss L>
void DualDescent::solve_block_with(const L& loss, const Block& block, size_t number, int rounds, bool converge) {
  collect(block);
  Random random(seed_, mix64(static_cast<uint64_t>(pass_), number));
  size_t active = order_.size();
  double top = kInfinity;  // what the last round left of the largest and smallest projected gradient
  double bottom = -kInfinity;
  for (int round = 0; round < rounds; ++round) {
    double highest = -kInfinity;
    double lowest = kInfinity;
    for (size_t i = active; i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
    for (size_t i = 0; i < active; ++i) {
      const Visit visit = update(loss, block, order_[i], round == 0, top, bottom);
      if (visit.shrink) {
        std::swap(order_[i], order_[--active]);
        --i;
        continue;
      }
      highest = std::max(highest, visit.projected);
      lowest = std::min(lowest, visit.projected);
    }
    if (converge && highest - lowest <= kConvergeTolerance) {
      if (active == order_.size()) break;
      active = order_.size();  // once more, with everything
      top = kInfinity;
      bottom = -kInfinity;
      continue;
    }
    top = highest > 0 ? highest : kInfinity;
    bottom = lowest < 0 ? lowest : -kInfinity;
  }
}

// Which rows of the block are to be looked at: not those that rest.
void DualDescent::collect(const Block& block) {
  order_.clear();
  for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk) {
    uint8_t* const rest = rest_.data() + solution_.duals.offset(block.numbers[chunk]);
    for (uint32_t row = 0; row < block.chunks[chunk]->rows(); ++row) {
      if (rest[row] > 0)
        --rest[row];
      else
        order_.push_back(Block::place(chunk, row));
    }
  }
}

template <DualLoss L>
DualDescent::Visit DualDescent::update(const L& loss, const Block& block, uint32_t place, bool first, double top,
                                       double bottom) {
  const Row row = block.row(place, buffer_);
  const double cost = costs_.cost(row);
  if (cost == 0) return {};
  const uint32_t chunk = block.numbers[Block::chunk_of(place)];
  const double sign = costs_.sign(row);
  double& alpha = solution_.duals.page(chunk)[Block::row_of(place)];
  const double margin = margin_of(row, sign, problem_.bias, solution_.weights);
  if (first) losses_ += cost * loss.value(margin);
  const double from = alpha == 0 ? loss.first_alpha(cost) : alpha;
  const double gradient = loss.dual_gradient(from, margin, cost);
  Visit visit;
  if (alpha == 0 && gradient > 0) {
    if (gradient > top) visit.shrink = true;
    // Farther out than any violation of the last pass: it can wait for a few passes, the certificate will see it.
    if (first && gradient > last_violation_) rest_[solution_.duals.offset(chunk) + Block::row_of(place)] = kRestPasses;
  } else if (alpha == loss.largest_alpha(cost) && gradient < 0) {
    if (gradient < bottom) visit.shrink = true;
  } else {
    visit.projected = gradient;
    if (first) violation_ = std::max(violation_, std::abs(gradient));
  }
  if (visit.shrink || visit.projected == 0) return visit;
  double norm2 = squared_norm(row.value);
  if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
  // A row without features has no say in w: its alpha goes straight to where its own term is largest.
  const double next = loss.dual_step(from, margin, std::max(norm2, 1e-300), cost);
  if (next == alpha) return visit;
  dual_values_ += (next == 0 ? 0 : loss.dual_value(next, cost)) - (alpha == 0 ? 0 : loss.dual_value(alpha, cost));
  const auto change = static_cast<float>(sign * (next - alpha));
  alpha = next;
  add_scaled(row.index, row.value, change, solution_.weights.data());
  if (problem_.has_bias()) solution_.weights.back() += change * static_cast<float>(problem_.bias);
  return visit;
}

void DualDescent::save(SnapshotWriter& to) const {
  to.put("weights", std::span<const float>(solution_.weights));
  to.put("duals", std::span<const double>(solution_.duals.all()));
  to.put("rest", std::span<const uint8_t>(rest_));
  to.put("descent", std::span<const double>(
                        std::array{static_cast<double>(pass_), violation_, last_violation_, losses_, dual_values_}));
}

void DualDescent::restore(const SnapshotReader& from) {
  from.take("weights", std::span<float>(solution_.weights));
  from.take("duals", solution_.duals.all());
  from.take("rest", std::span<uint8_t>(rest_));
  std::array<double, 5> numbers{};
  from.take("descent", std::span<double>(numbers));
  pass_ = static_cast<int>(numbers[0]);
  violation_ = numbers[1];
  last_violation_ = numbers[2];
  losses_ = numbers[3];
  dual_values_ = numbers[4];
}

namespace {

// Where a run stands between two blocks, beside the descent itself.
struct Position {
  int pass = 1;
  size_t block = 0;
  int inner = 1;
  double trust = 1;  // certified gap / estimated gap, the last time both were known

  void save(SnapshotWriter& to) const {
    to.put("position", std::span<const double>(std::array{static_cast<double>(pass), static_cast<double>(block),
                                                          static_cast<double>(inner), trust}));
  }
  void restore(const SnapshotReader& from) {
    std::array<double, 4> numbers{};
    from.take("position", std::span<double>(numbers));
    pass = static_cast<int>(numbers[0]);
    block = static_cast<size_t>(numbers[1]);
    inner = static_cast<int>(numbers[2]);
    trust = numbers[3];
  }
};

}  // namespace

Summary solve_dual_block(const Problem& problem, const SolveOptions& options, const DualBlock& method,
                         std::vector<Solution>& solutions, const Context& context) {
  const auto begin = Clock::now();
  Summary summary;
  std::optional<SnapshotReader> resumed;
  if (!context.checkpoint.path.empty() && path_kind(context.checkpoint.path) == PathKind::file)
    resumed.emplace(context.checkpoint.path);
  // What was measured the first time is not measured again: the same plan, the same bits.
  summary.plan = resumed ? Plan::restore(*resumed) : make_plan(problem, method, context);
  context.on_plan(summary.plan);
  BlockSource blocks(*problem.store, summary.plan.rows, summary.plan.window_bytes, context.threads);
  const ScheduleOptions schedule{.schedule = method.schedule,
                                 .chunks_per_block = summary.plan.chunks_per_block,
                                 .blocks = method.blocks,
                                 .sequence = method.sequence,
                                 .seed = options.seed};
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  DualDescent descent(problem, task, options.seed, solution);
  Position at{.inner = method.converge ? kConvergeRounds : std::max(1, method.inner)};
  const Checkpoint& checkpoint = context.checkpoint;
  const auto save = [&] {
    SnapshotWriter writer(checkpoint.path);
    writer.put("identity", checkpoint.identity);
    summary.plan.save(writer);
    at.save(writer);
    descent.save(writer);
    writer.commit();
  };
  if (resumed) {
    at.restore(*resumed);
    descent.restore(*resumed);
    resumed.reset();
  }
  auto last_saved = Clock::now();
  for (;; ++at.pass, at.block = 0) {
    const int pass = at.pass;
    if (at.block == 0) descent.begin_pass(pass);
    const auto pass_begin = Clock::now();
    const double waited = blocks.wait_seconds();
    bool stopped = false;
    blocks.for_each(
        order_of_pass(*problem.store, schedule, static_cast<uint64_t>(pass)),
        [&](const Block& block, size_t number) {
          descent.solve_block(block, number, at.inner, method.converge);
          at.block = number + 1;
          stopped = context.stop != nullptr && *context.stop;
          if (!checkpoint.path.empty() && (stopped || seconds_since(last_saved) >= checkpoint.every_seconds)) {
            save();
            last_saved = Clock::now();
          }
          return !stopped;
        },
        at.block);
    if (stopped && !checkpoint.path.empty())
      fail(ErrorKind::interrupted, "interrupted in pass {}: the same command goes on from here", pass);
    summary.passes = pass;
    const double wait = blocks.wait_seconds() - waited;
    const double work = seconds_since(pass_begin) - wait;
    summary.solve_seconds += work;
    // Rounds over a block are free while the disk is waited for.
    if (method.inner == 0 && !method.converge && pass == 1 && summary.plan.rows == RowsHeld::streamed)
      at.inner = std::clamp(static_cast<int>(1 + wait / std::max(work, 1e-9)), 1, kMostInner);

    double w2 = 0;
    for (const float weight : solution.weights) w2 += double{weight} * double{weight};
    PassReport report{.pass = pass,
                      .primal_estimate = 0.5 * w2 + descent.losses(),
                      .dual = descent.dual_values() - 0.5 * w2,
                      .wait_seconds = wait,
                      .solve_seconds = work,
                      .weights = &solution.weights};
    const double estimate = report.dual > 0 ? (report.primal_estimate - report.dual) / report.dual : kInfinity;
    const bool last = pass >= options.max_passes || stopped ||
                      (options.max_seconds > 0 && seconds_since(begin) > options.max_seconds);
    if (last || estimate * at.trust <= options.tolerance) {
      const auto certify_begin = Clock::now();
      std::vector<double> v;
      report.certified = certify(problem, task, solution, BlockOrder::all(*problem.store), blocks, &v);
      summary.certify_seconds += seconds_since(certify_begin);
      const double gap = report.certified->gap();
      if (estimate > 0 && std::isfinite(estimate)) at.trust = std::clamp(gap / estimate, 0.1, 10.0);
      // To be gone on with: from weights that have not drifted.
      if (gap > options.tolerance && !last)
        std::transform(v.begin(), v.end(), solution.weights.begin(), [](double x) { return static_cast<float>(x); });
    }
    report.seconds = seconds_since(begin);
    report.bytes_read = blocks.bytes_read();
    context.observer(report);
    const bool converged = report.certified && report.certified->gap() <= options.tolerance;
    if (!converged && !last) continue;
    summary.termination = converged                    ? Termination::converged
                          : stopped                    ? Termination::interrupted
                          : pass >= options.max_passes ? Termination::pass_limit
                                                       : Termination::time_limit;
    summary.certificates = {*report.certified};
    break;
  }
  summary.bytes_read = blocks.bytes_read();
  summary.read_wait_seconds = blocks.wait_seconds();
  summary.total_seconds = seconds_since(begin);
  return summary;
}

}  // namespace linblock
