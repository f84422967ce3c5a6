// Pegasos on blocks of rows: stochastic sub-gradient steps on the primal.
//
// Problem:  min over w  1/2 |w|^2 + C sum of loss(y_i w.x_i); divided by l C, the number of rows times the cost
// Update:   for a subset B of the block, t = 1, 2, 3 ...:
//           w <- (1 - 1/t) w - (l C / (t |B|)) sum over B of loss'(margin) y x,
//           then w <- min(1, sqrt(l C) / |w|) w; the sum of the costs of all rows, which weights may
//           make larger, takes the place of l C there, or the best w might be out of reach
// Paper:    Yu, Hsieh, Chang, Lin: Algorithm 3, equations 13 to 15. A subset of the whole block is BLOCK-P-B,
//           of one row BLOCK-P-I. For squared hinge -loss' is 2 (1 - margin) inside the margin.
// Reads:    the whole store once a pass.
//
// w is kept as scale * u with |u|^2 beside it, so that a step costs the nonzeros of its rows and not all features.
// There is no dual, and so no certificate: the primal is exact, how far it is from the best is not known.
#include "solve/baselines/pegasos.h"

#include <algorithm>
#include <cmath>

#include "base/dot.h"
#include "base/error.h"
#include "base/random.h"
#include "solve/core/certify.h"
#include "solve/core/row_plan.h"

namespace linblock {

namespace {

constexpr double kLargest = 1e30;     // of a change to u
constexpr double kLeastScale = 1e-9;  // below it u is made w again, before float runs out of range

class PegasosSteps {
 public:
  PegasosSteps(const Problem& problem, const Task& task, const Pegasos& method, uint64_t seed, Solution& solution)
      : problem_(problem),
        costs_(problem, task),
        held_out_(task.held_out),
        cost_(task.cost),
        method_(method),
        seed_(seed),
        u_(solution.weights),
        steps_(solution.steps),
        size_(static_cast<double>(problem.store->info().rows) * task.held_out.learned_share() * task.cost) {
    u_.resize(problem.weights(), 0);
    fold_scale();  // |u|^2 of what is begun with
  }

  void begin_pass(int pass) {
    pass_ = pass;
    losses_ = 0;
  }

  void solve_block(const Block& block, size_t number) {
    std::visit([&](const auto& loss) { solve_block_with(loss, block, number); }, problem_.loss);
  }

  // w itself, at the end of a pass.
  void fold_scale() {
    norm2_ = 0;
    for (float& weight : u_) {
      weight = static_cast<float>(weight * scale_);
      norm2_ += double{weight} * double{weight};
    }
    scale_ = 1;
  }

  static void visit_fields(auto& self, auto&& field) {
    field("weights", std::span(self.u_));
    field("scale", self.scale_);
    field("norm2", self.norm2_);
    field("steps", self.steps_);
    field("pass", self.pass_);
    field("losses", self.losses_);
    field("costs_met", self.costs_met_);
  }

  double losses() const { return losses_; }
  double squared_weights() const { return scale_ * scale_ * norm2_; }

 private:
  template <Loss L>
  void solve_block_with(const L& loss, const Block& block, size_t number) {
    Random random(seed_, mix64(static_cast<uint64_t>(pass_), number));
    order_.clear();
    size_t most = 0;
    for (const Chunk* chunk : block.chunks) most += chunk->rows();
    order_.reserve(most);  // and not twice as much
    for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk)
      for (uint32_t row = 0; row < block.chunks[chunk]->rows(); ++row)
        if (!is_absent(*block.chunks[chunk], row)) order_.push_back(Block::place(chunk, row));
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
    const size_t subset = method_.step.count == 0 ? order_.size() : method_.step.count;
    for (size_t begin = 0; begin < order_.size(); begin += subset)
      step(loss, block, begin, std::min(order_.size(), begin + subset));
  }

  bool is_absent(const Chunk& chunk, uint32_t row) const {
    return chunk.removed(row) || held_out_.holds(chunk.id(row));
  }

  template <Loss L>
  void step(const L& loss, const Block& block, size_t begin, size_t end) {
    ++steps_;
    // Every margin at the same w, as the sub-gradient of the whole subset asks.
    factors_.clear();
    factors_.reserve(end - begin);
    for (size_t i = begin; i < end; ++i) {
      const Row row = block.row(order_[i], buffer_);
      const double sign = costs_.sign(row);
      const double margin = scale_ * margin_of(row, sign, problem_.bias, u_);
      const double cost = costs_.cost(row);
      losses_ += cost * loss.value(margin);
      if (pass_ == 1) costs_met_ += cost;
      factors_.push_back(-cost / cost_ * loss.derivative(margin) * sign);
    }
    if (steps_ == 1)
      std::fill(u_.begin(), u_.end(), 0.0F);  // 1 - 1/t is 0: the start is forgotten
    else
      scale_ *= 1 - 1 / static_cast<double>(steps_);
    const double rate = size_ / static_cast<double>(steps_) / static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i)
      if (factors_[i - begin] != 0) add(block.row(order_[i], buffer_), rate * factors_[i - begin] / scale_);
    const double length = std::sqrt(std::max(0.0, squared_weights()));
    if (const double most = std::sqrt(std::max(size_, costs_met_)); length > most) scale_ *= most / length;
    if (scale_ < kLeastScale) fold_scale();
  }

  // u += change * x, and |u|^2 with it.
  void add(const Row& row, double change) {
    double x2 = squared_norm(row.value);
    if (const double largest = std::abs(change) * std::sqrt(x2); largest > kLargest) {
      // A float could not hold it: u is made smaller, and its scale larger.
      const double factor = largest / kLargest;
      for (float& weight : u_) weight = static_cast<float>(weight / factor);
      scale_ *= factor;
      norm2_ /= factor * factor;
      change /= factor;
    }
    double product = exact_dot(row.index, row.value, u_.data());
    add_scaled(row.index, row.value, static_cast<float>(change), u_.data());
    if (problem_.has_bias()) {
      product += problem_.bias * double{u_.back()};
      x2 += problem_.bias * problem_.bias;
      u_.back() += static_cast<float>(change * problem_.bias);
    }
    norm2_ += 2 * change * product + change * change * x2;
  }

  const Problem& problem_;
  const RowCost costs_;
  const HeldOut held_out_;
  const double cost_;
  const Pegasos& method_;
  const uint64_t seed_;
  std::vector<float>& u_;
  uint64_t& steps_;
  const double size_;     // l C
  double costs_met_ = 0;  // of all rows, once a pass is done
  double scale_ = 1;
  double norm2_ = 0;
  int pass_ = 0;
  double losses_ = 0;
  std::vector<uint32_t> order_;
  std::vector<double> factors_;
  RowBuffer buffer_;
};

class PegasosSolver : public Solver {
 public:
  PegasosSolver(const Setup& setup, const Pegasos& method) : setup_(setup), certify_(setup) {
    for (size_t i = 0; i < setup.problem.tasks.size(); ++i)
      tasks_.emplace_back(setup.problem, setup.problem.tasks[i], method, setup.options.seed, setup.solutions[i]);
  }

  std::optional<Pass> next(const Position& at) override {
    if (certify_.in_work()) return certify_.next();
    certify_.clear();
    if (limit_) return std::nullopt;
    for (PegasosSteps& steps : tasks_)
      if (at.block == 0) steps.begin_pass(at.pass);
    return Pass{.order = order_of_pass(*setup_.problem.store,
                                       {.schedule = Schedule::fixed,
                                        .chunks_per_block = setup_.plan.chunks_per_block,
                                        .seed = setup_.options.seed},
                                       static_cast<uint64_t>(at.pass))};
  }

  bool work(const Block& block, size_t number) override {
    if (certify_.in_work()) {
      certify_.work(block);
      return true;
    }
    return for_each_task(setup_.context, tasks_.size(), [&](size_t i) {
      tasks_[i].solve_block(block, number);
      return true;
    });
  }

  std::optional<PassReport> end_pass(const PassEnd& end) override {
    if (certify_.in_work()) {
      certify_.end_pass();
      limit_ = end.limit;
      return std::nullopt;
    }
    PassReport report;
    for (PegasosSteps& steps : tasks_) {
      steps.fold_scale();
      report.add_task(0.5 * steps.squared_weights() + steps.losses(), 0);
    }
    report.tasks_left = tasks_.size();
    limit_ = end.limit;
    // The primal of the weights that are saved; without duals it proves nothing.
    if (limit_) certify_.begin_all();
    return report;
  }

  std::vector<std::span<const float>> weights() const override { return weights_of(setup_.solutions); }
  std::vector<PartOfV> v() const override { return certify_.v(); }

  void finish(Summary& summary) override {
    summary.has_dual = false;
    summary.termination = *limit_;
    summary.certificates = certify_.certificates();
  }

  void save(FieldWriter& to) const override {
    for (size_t i = 0; i < tasks_.size(); ++i) to(numbered("task", i), tasks_[i]);
  }
  void restore(FieldReader& from, const Position&) override {
    for (size_t i = 0; i < tasks_.size(); ++i) from(numbered("task", i), tasks_[i]);
  }

 private:
  const Setup setup_;
  Certify certify_;
  std::vector<PegasosSteps> tasks_;
  std::optional<Termination> limit_;
};

}  // namespace

Plan Pegasos::plan(const Problem& problem, const SolveOptions& options, const Context& context) const {
  return plan_rows({.weights = problem.weights(),
                    .v_bytes = problem.weights() * sizeof(double),
                    .note_bytes = sizeof(uint32_t) + sizeof(double)},
                   problem, options, context);
}

std::unique_ptr<Solver> Pegasos::make(const Setup& setup) const {
  return std::make_unique<PegasosSolver>(setup, *this);
}

}  // namespace linblock
