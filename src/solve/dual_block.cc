// Dual coordinate descent on blocks of rows.
//
// Problem:  max over alpha  sum of dual_value(alpha_i, C_i) - 1/2 |v|^2,  v = sum of alpha_i y_i x_i,  0 <= alpha_i <=
// U_i Update:   for row i of the block, in random order: alpha_i to the maximum along its coordinate, w += change * y_i
// x_i Paper:    Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in memory": Algorithms 1 and
// 2; the
//           step and the shrinking are those of Hsieh et al. (2008). `inner` rounds a block is BLOCK-L-N, `converge`
//           BLOCK-L-D. Fixed blocks are the paper's; recomposed ones are drawn anew each pass.
// Reads:    the whole store once a pass, and once for each certificate; nothing after the first pass where it fits.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/dot.h"
#include "base/error.h"
#include "base/random.h"
#include "solve/solver.h"

namespace linblock {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr double kConvergeTolerance = 0.1;  // of a sub-problem: LIBLINEAR's default
constexpr int kConvergeRounds = 1000;
constexpr uint8_t kRestPasses = 3;  // for a row that is clearly no support vector
template <DualLoss L>
class DualBlockSolver {
 public:
  DualBlockSolver(const Problem& problem, const Task& task, const SolveOptions& options, const DualBlock& method,
                  Solution& solution)
      : problem_(problem),
        loss_(std::get<L>(problem.loss)),
        costs_(problem, task),
        options_(options),
        method_(method),
        solution_(solution) {
    solution_.weights.resize(problem.weights(), 0);
    if (solution_.duals.empty()) solution_.duals = Duals(*problem.store);
    for (const ChunkInfo& chunk : problem.store->chunks()) rest_.emplace_back(chunk.rows, uint8_t{0});
  }

  void begin_pass(int pass) {
    pass_ = pass;
    last_violation_ = pass == 1 ? std::numeric_limits<double>::infinity() : violation_;
    violation_ = 0;
    losses_ = 0;
  }

  void solve_block(const Block& block, size_t block_number, int rounds) {
    collect(block);
    Random random(options_.seed, mix64(static_cast<uint64_t>(pass_), block_number));
    size_t active = order_.size();
    double top = std::numeric_limits<double>::infinity();
    double bottom = -top;
    for (int round = 0; round < rounds; ++round) {
      double highest = -std::numeric_limits<double>::infinity();
      double lowest = -highest;
      for (size_t i = active; i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
      for (size_t i = 0; i < active; ++i) {
        const Visit visit = update(block, order_[i], round == 0, top, bottom);
        if (visit.shrink) {
          std::swap(order_[i], order_[--active]);
          --i;
          continue;
        }
        highest = std::max(highest, visit.projected);
        lowest = std::min(lowest, visit.projected);
      }
      if (method_.converge && highest - lowest <= kConvergeTolerance) {
        if (active == order_.size()) break;
        active = order_.size();  // check once more, with everything
        top = std::numeric_limits<double>::infinity();
        bottom = -top;
        continue;
      }
      top = highest > 0 ? highest : std::numeric_limits<double>::infinity();
      bottom = lowest < 0 ? lowest : -std::numeric_limits<double>::infinity();
    }
  }

  double violation() const { return violation_; }
  double losses() const { return losses_; }
  double dual_values() const { return dual_values_; }

 private:
  struct Visit {
    bool shrink = false;
    double projected = 0;  // gradient
  };

  // Which rows of the block are to be looked at: not those that rest.
  void collect(const Block& block) {
    order_.clear();
    for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk) {
      std::vector<uint8_t>& rest = rest_[block.numbers[chunk]];
      for (uint32_t row = 0; row < block.chunks[chunk]->rows(); ++row) {
        if (rest[row] > 0)
          --rest[row];
        else
          order_.push_back(Block::place(chunk, row));
      }
    }
  }

  Visit update(const Block& block, uint32_t place, bool first, double top, double bottom) {
    const uint32_t chunk = Block::chunk_of(place);
    const uint32_t number = Block::row_of(place);
    const Row row = block.row(place, buffer_);
    const double cost = costs_.cost(row);
    if (cost == 0) return {};
    const double sign = costs_.sign(row);
    double& alpha = solution_.duals.page(block.numbers[chunk])[number];
    const double margin = margin_of(row, sign, problem_.bias, solution_.weights);
    if (first) losses_ += cost * loss_.value(margin);
    const double bound = loss_.largest_alpha(cost);
    const double gradient = loss_.dual_gradient(alpha == 0 ? loss_.first_alpha(cost) : alpha, margin, cost);
    Visit visit;
    if (alpha == 0 && gradient > 0) {
      if (gradient > top) visit.shrink = true;
      if (first && gradient > last_violation_) rest_[block.numbers[chunk]][number] = kRestPasses;
    } else if (alpha == bound && gradient < 0) {
      if (gradient < bottom) visit.shrink = true;
    } else {
      visit.projected = gradient;
      if (first) violation_ = std::max(violation_, std::abs(gradient));
    }
    if (visit.shrink || visit.projected == 0) return visit;
    double norm2 = squared_norm(row.value);
    if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
    const double old = alpha;
    // A row without features has no say in w: its alpha goes straight to where its own term is largest.
    const double from = old == 0 ? loss_.first_alpha(cost) : old;
    const double next = loss_.dual_step(from, margin, std::max(norm2, 1e-300), cost);
    if (next == old) return visit;
    alpha = next;
    dual_values_ += (next == 0 ? 0 : loss_.dual_value(next, cost)) - (old == 0 ? 0 : loss_.dual_value(old, cost));
    const auto change = static_cast<float>(sign * (next - old));
    add_scaled(row.index, row.value, change, solution_.weights.data());
    if (problem_.has_bias()) solution_.weights.back() += change * static_cast<float>(problem_.bias);
    return visit;
  }

  const Problem& problem_;
  const L loss_;
  const RowCost costs_;
  const SolveOptions& options_;
  const DualBlock& method_;
  Solution& solution_;
  std::vector<std::vector<uint8_t>> rest_;  // passes that a row is still left out, by chunk
  std::vector<uint32_t> order_;
  RowBuffer buffer_;
  int pass_ = 0;
  double violation_ = 0;
  double last_violation_ = 0;
  double losses_ = 0;
  double dual_values_ = 0;
};

template <DualLoss L>
Summary run(const Problem& problem, const SolveOptions& options, const DualBlock& method,
            std::vector<Solution>& solutions, const Context& context) {
  const auto begin = Clock::now();
  Summary summary;
  summary.plan = make_plan(problem, method, context);
  context.on_plan(summary.plan);
  BlockSource blocks(*problem.store, summary.plan.rows, summary.plan.window_bytes, context.threads);
  const ScheduleOptions schedule{.schedule = method.schedule,
                                 .chunks_per_block = summary.plan.chunks_per_block,
                                 .blocks = method.blocks,
                                 .sequence = method.sequence,
                                 .seed = options.seed};
  const Task& task = problem.tasks.front();
  Solution& solution = solutions.front();
  DualBlockSolver<L> solver(problem, task, options, method, solution);

  const auto certify = [&] {
    const auto started = Clock::now();
    Certifier certifier(problem, task);
    blocks.for_each(BlockOrder::all(*problem.store, summary.plan.chunks_per_block), [&](const Block& block, size_t) {
      for (size_t i = 0; i < block.chunks.size(); ++i)
        certifier.add(*block.chunks[i], solution.duals.page(block.numbers[i]), solution.weights);
      return true;
    });
    const Certificate certificate = certifier.finish(solution.weights);
    summary.certify_seconds += seconds_since(started);
    // Not yet good enough: the next pass begins from weights without drift.
    if (certificate.gap() > options.tolerance)
      std::transform(certifier.dual_weights().begin(), certifier.dual_weights().end(), solution.weights.begin(),
                     [](double weight) { return static_cast<float>(weight); });
    return certificate;
  };

  int inner = method.converge ? kConvergeRounds : std::max(1, method.inner);
  double trust = 1;  // certified gap / estimated gap, the last time both were known
  std::optional<Certificate> certificate;
  for (int pass = 1;; ++pass) {
    certificate.reset();
    solver.begin_pass(pass);
    const auto pass_begin = Clock::now();
    const double waited = blocks.wait_seconds();
    bool stopped = false;
    blocks.for_each(order_of_pass(*problem.store, schedule, static_cast<uint64_t>(pass)),
                    [&](const Block& block, size_t number) {
                      solver.solve_block(block, number, inner);
                      stopped = context.stop != nullptr && *context.stop;
                      return !stopped;
                    });
    summary.passes = pass;
    const double pass_seconds = seconds_since(pass_begin);
    const double wait = blocks.wait_seconds() - waited;
    summary.solve_seconds += pass_seconds - wait;
    // Rounds over a block are free while the disk is waited for.
    if (method.inner == 0 && !method.converge && pass == 1 && summary.plan.rows == RowsHeld::streamed)
      inner = std::clamp(static_cast<int>(1 + wait / std::max(pass_seconds - wait, 1e-9)), 1, 10);

    double w2 = 0;
    for (const float weight : solution.weights) w2 += double{weight} * double{weight};
    const double primal = 0.5 * w2 + solver.losses();
    const double dual = solver.dual_values() - 0.5 * w2;
    const double estimate = dual > 0 ? (primal - dual) / dual : std::numeric_limits<double>::infinity();
    const bool last = pass >= options.max_passes || stopped ||
                      (options.max_seconds > 0 && seconds_since(begin) > options.max_seconds);
    if (last || estimate * trust <= options.tolerance) {
      certificate = certify();
      if (estimate > 0 && std::isfinite(estimate)) trust = std::clamp(certificate->gap() / estimate, 0.1, 10.0);
    }
    context.observer({.pass = pass,
                      .seconds = seconds_since(begin),
                      .primal_estimate = primal,
                      .dual = dual,
                      .certified = certificate,
                      .bytes_read = blocks.bytes_read(),
                      .wait_seconds = wait,
                      .solve_seconds = pass_seconds - wait,
                      .weights = &solution.weights});
    if (certificate && certificate->gap() <= options.tolerance) {
      summary.termination = Termination::converged;
      break;
    }
    if (last) {
      summary.termination = stopped                      ? Termination::interrupted
                            : pass >= options.max_passes ? Termination::pass_limit
                                                         : Termination::time_limit;
      certificate = certify();  // the weights were just mended: certify those that are saved
      break;
    }
  }
  summary.certificates = {*certificate};
  summary.bytes_read = blocks.bytes_read();
  summary.read_wait_seconds = blocks.wait_seconds();
  summary.total_seconds = seconds_since(begin);
  return summary;
}

}  // namespace

Summary solve_dual_block(const Problem& problem, const SolveOptions& options, const DualBlock& method,
                         std::vector<Solution>& solutions, const Context& context) {
  solutions.resize(problem.tasks.size());
  return std::visit([&]<class L>(const L&) { return run<L>(problem, options, method, solutions, context); },
                    problem.loss);
}

}  // namespace linblock
