// The multi-class method of Crammer and Singer on blocks of rows, for one task or many.
//
// Problem:  min over w  1/2 sum of |w_m|^2 + sum of C_i max over m of (w_m.x_i - w_y.x_i + 1 - [m = y]),  y = y_i;
//           its dual,   max over a  sum of a_im - 1/2 sum of |w_m|^2,  w_m = sum over rows of class m of (sum of a_i)
//           x_i
//           - sum over the others of a_im x_i,  with a_im >= 0 for m != y_i and sum over m of a_im <= C_i.
//           (LIBLINEAR's -s 4, where alpha_i^m is -a_im, and alpha_i^y the sum of a_i.)
// Update:   for row i of the block, in random order: all of a_i to the maximum while other rows stay as they are
//           (class_step), w_y += change of the sum * x_i, w_m -= change of a_im * x_i. A visit brings in a few new
//           classes at most, those that gain most, so that duals stay few; what is left out then comes with a later
//           one.
// Paper:    Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large scale multi-class linear
// SVMs"
//           (2008); blocks as Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in memory".
// Reads:    the whole store once a pass, and once for each certificate; nothing after the first pass where it fits.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "base/dot.h"
#include "base/error.h"
#include "base/random.h"
#include "objective/class_certificate.h"
#include "objective/class_step.h"
#include "solve/run.h"

namespace linblock {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kNewClasses = 3;    // that a visit may bring in; the plan has room for as many a row
constexpr double kNearlyFull = 0.8;  // of the memory for duals: from then on one at a time
constexpr uint8_t kRestPasses = 2;   // for a row that is clearly at a bound
constexpr double kFarOut = 2;        // so many times the mean violation
constexpr double kAtBound = 1 - 1e-12;
constexpr double kShareDue = 0.5;  // of the tasks, before a reading is spent on their certificates

// One task: the step, and the sums that tell how far it is.
class ClassDescent {
 public:
  // Goes on from the solution's weights and duals, which must be there. Duals may take so many bytes.
  ClassDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution, uint64_t duals_bytes,
               const std::atomic<bool>* stop)
      : problem_(problem),
        held_out_(task.held_out),
        costs_(problem, task),
        numbers_(problem.store->info()),
        classes_(problem.classes()),
        seed_(seed),
        solution_(solution),
        duals_bytes_(duals_bytes),
        stop_(stop),
        sums_(classes_),
        scores_(classes_) {
    solution_.weights.resize(problem.weights() * classes_, 0);
    solution_.class_duals.wake_all();  // the first pass adds up what every row has
  }

  void begin_pass(int pass) {
    if (pass == pass_) return;  // taken up again before its first block
    met_all_ = pass_ > 0;
    pass_ = pass;
    far_out_ = violations_ == 0 ? kInfinity : kFarOut * violation_ / static_cast<double>(violations_);
    violation_ = 0;
    violations_ = 0;
    losses_ = std::exchange(resting_losses_[static_cast<size_t>(pass) % resting_losses_.size()], 0);
  }

  // False: stopped half-way.
  bool solve_block(const Block& block, size_t number, size_t rounds) {
    collect(block);
    solution_.class_duals.fetch(block.numbers);
    const auto held = static_cast<double>(solution_.class_duals.bytes());
    new_classes_ = held > kNearlyFull * static_cast<double>(duals_bytes_) ? 1 : kNewClasses;
    Random random(seed_, mix64(static_cast<uint64_t>(pass_), number));
    const Stopwatch working;
    bool finished = true;
    for (size_t round = 0; round < rounds && finished; ++round) {
      for (size_t i = places_.size(); i > 1; --i) std::swap(places_[i - 1], places_[random.below(i)]);
      for (size_t i = 0; i < places_.size(); ++i) {
        look_ahead(block, i);
        visit(block, places_[i], round == 0);
      }
      finished = round + 1 == rounds || stop_ == nullptr || !*stop_ || working.seconds() <= kPatience;
    }
    solution_.class_duals.put_back(block.numbers);
    return finished;
  }

  // Of this pass: losses of the rows as they were found, before their own step; of resting ones, as they were then.
  double losses() const { return losses_; }
  // Kept up to date; after a warm start, once a pass is done.
  double dual_values() const { return dual_values_; }
  double squared_weights() const {
    double sum = 0;
    for (const float weight : solution_.weights) sum += double{weight} * double{weight};
    return sum;
  }

  void save(SnapshotWriter& to, const std::string& name) const {
    to.put(name + "weights", std::span<const float>(solution_.weights));
    solution_.class_duals.save(to, name);
    to.put(name + "resting losses", std::span<const double>(resting_losses_));
    to.put(name + "descent",
           std::span<const double>(std::array{static_cast<double>(pass_), violation_, static_cast<double>(violations_),
                                              far_out_, losses_, dual_values_, met_all_ ? 1.0 : 0.0}));
  }
  void restore(const SnapshotReader& from, const std::string& name) {
    from.take(name + "weights", std::span<float>(solution_.weights));
    solution_.class_duals.restore(from, name);
    from.take(name + "resting losses", std::span<double>(resting_losses_));
    std::array<double, 7> numbers{};
    from.take(name + "descent", std::span<double>(numbers));
    pass_ = static_cast<int>(numbers[0]);
    violation_ = numbers[1];
    violations_ = static_cast<uint64_t>(numbers[2]);
    far_out_ = numbers[3];
    losses_ = numbers[4];
    dual_values_ = numbers[5];
    met_all_ = numbers[6] != 0;
  }

 private:
  // Which rows of the block are to be looked at: not those that rest, or are held out.
  void collect(const Block& block) {
    places_.clear();
    for (uint32_t chunk = 0; chunk < block.chunks.size(); ++chunk) {
      const std::span<uint8_t> rest = solution_.class_duals.rest(block.numbers[chunk]);
      for (uint32_t row = 0; row < rest.size(); ++row) {
        if (held_out_.holds(block.chunks[chunk]->id(row))) continue;
        if (rest[row] != 0)
          --rest[row];
        else
          places_.push_back(Block::place(chunk, row));
      }
    }
  }

  // Rows are visited in random order: they are on their way from memory before their turn comes.
  void look_ahead(const Block& block, size_t at) const {
    const auto chunk_of = [&](size_t i) { return block.chunks[Block::chunk_of(places_[i])]; };
    if (at + 4 < places_.size()) chunk_of(at + 4)->prefetch_place(Block::row_of(places_[at + 4]));
    if (at + 2 < places_.size()) chunk_of(at + 2)->prefetch(Block::row_of(places_[at + 2]));
  }

  // w_m.x of every class; in double where a float would overflow.
  void find_scores(const Row& row) {
    dot_each(row.index, row.value, solution_.weights.data(), classes_, sums_.data());
    double all = 0;
    for (size_t m = 0; m < classes_; ++m) all += scores_[m] = double{sums_[m]};
    if (!std::isfinite(all)) [[unlikely]]
      return exact_scores(row, problem_.bias, solution_.weights, scores_);
    if (!problem_.has_bias()) return;
    const std::span<const float> last = std::span<const float>(solution_.weights).last(classes_);
    for (size_t m = 0; m < classes_; ++m) scores_[m] += problem_.bias * double{last[m]};
  }

  void visit(const Block& block, uint32_t place, bool first) {
    const Row row = block.row(place, buffer_);
    const double cost = costs_.cost_of_learned(row);
    if (cost == 0) return;
    const RowCache::Origin origin = block.origin(place);
    const size_t own = numbers_[row.label];
    const std::span<const ClassDual> old = solution_.class_duals.row(origin.chunk, origin.row);
    find_scores(row);
    const double score = std::exchange(scores_[own], -kInfinity);
    // What is left in scores_ are the classes that have no dual yet.
    candidates_.clear();
    double sum = 0;
    double lowest = kInfinity;
    double highest = 0;
    for (const ClassDual& one : old) {
      const double other = std::exchange(scores_[one.number], -kInfinity);
      sum += one.dual;
      lowest = std::min(lowest, other - score + 1);
      highest = std::max(highest, other - score + 1);
      candidates_.push_back({.number = one.number, .b = other + 1, .before = one.dual});
    }
    const double rival = *std::max_element(scores_.begin(), scores_.end()) - score + 1;
    const double slack = std::max(highest, rival);
    if (sum < cost * kAtBound) lowest = std::min(lowest, 0.0);
    if (first) {
      losses_ += cost * slack;
      if (!met_all_) dual_values_ += sum;
      // How much more the best class asks for than the worst that has something.
      if (slack > lowest) {
        violation_ += slack - lowest;
        ++violations_;
      } else if (old.size() <= 1) {
        // All or nothing for one class, and the next is so far away.
        const double distance = old.empty() ? -rival : highest - std::max(rival, 0.0);
        if (distance > far_out_) rest(origin, cost * slack);
      }
    }
    // Or it has more than it may, after a warm start from a larger cost.
    if (slack > lowest || sum * kAtBound > cost) step(row, own, score, sum, cost, origin);
  }

  // Nothing would change by far, going by the violations of the last pass: the row can wait for a few passes, and the
  // certificate will see it. Until then its loss counts as it is now.
  void rest(RowCache::Origin origin, double loss) {
    solution_.class_duals.rest(origin.chunk)[origin.row] = kRestPasses;
    for (size_t later = 1; later <= kRestPasses; ++later)
      resting_losses_[(static_cast<size_t>(pass_) + later) % resting_losses_.size()] += loss;
  }

  // From the candidates that have duals, and those of scores_ that are to have some.
  void step(const Row& row, size_t own, double score, double sum, double cost, RowCache::Origin origin) {
    double norm2 = squared_norm(row.value);
    if (problem_.has_bias()) norm2 += problem_.bias * problem_.bias;
    for (ClassCandidate& one : candidates_) one.b += norm2 * one.before;
    const double own_b = score - norm2 * sum;
    // More classes can only raise beta: who is below it now gets nothing then.
    const double beta = best_class_duals(candidates_, own_b, norm2, cost);
    const size_t old = candidates_.size();
    for (uint32_t m = 0; m < classes_; ++m)
      if (scores_[m] + 1 > beta) candidates_.push_back({.number = m, .b = scores_[m] + 1});
    if (candidates_.size() > old + new_classes_) {
      const auto begin = candidates_.begin() + static_cast<ptrdiff_t>(old);
      const auto end = begin + static_cast<ptrdiff_t>(new_classes_);
      std::nth_element(begin, end, candidates_.end(), [](const ClassCandidate& one, const ClassCandidate& other) {
        return one.b != other.b ? one.b > other.b : one.number < other.number;
      });
      candidates_.erase(end, candidates_.end());
    }
    if (candidates_.size() > old) best_class_duals(candidates_, own_b, norm2, cost);
    change_weights(row, own);
    pairs_.clear();
    for (const ClassCandidate& one : candidates_)
      if (one.dual > 0) pairs_.push_back({.number = one.number, .dual = one.dual});
    solution_.class_duals.set_row(origin.chunk, origin.row, pairs_);
  }

  void change_weights(const Row& row, size_t own) {
    double sum = 0;
    size_t count = 0;
    changes_.resize(candidates_.size() + 1);
    for (const ClassCandidate& one : candidates_) {
      if (one.dual == one.before) continue;
      sum += one.dual - one.before;
      changes_[count++] = {one.number, static_cast<float>(one.before - one.dual)};
    }
    if (count == 0) return;
    dual_values_ += sum;
    changes_[count++] = {own, static_cast<float>(sum)};
    const auto add = [&](size_t feature, float value) {
      float* const weights = solution_.weights.data() + feature * classes_;
      for (size_t i = 0; i < count; ++i) weights[changes_[i].first] += changes_[i].second * value;
    };
    for (size_t k = 0; k < row.index.size(); ++k) add(row.index[k], row.value[k]);
    if (problem_.has_bias()) add(problem_.weights() - 1, static_cast<float>(problem_.bias));
  }

  const Problem& problem_;
  const HeldOut held_out_;
  const RowCost costs_;
  const ClassNumbers numbers_;
  const size_t classes_;
  const uint64_t seed_;
  Solution& solution_;
  const uint64_t duals_bytes_;
  const std::atomic<bool>* stop_;
  size_t new_classes_ = kNewClasses;
  std::vector<uint32_t> places_;
  RowBuffer buffer_;
  std::vector<float> sums_;
  std::vector<double> scores_;
  std::vector<ClassCandidate> candidates_;
  std::vector<ClassDual> pairs_;
  std::vector<std::pair<size_t, float>> changes_;
  int pass_ = 0;
  double violation_ = 0;                       // of this pass, added up ...
  uint64_t violations_ = 0;                    // ... over so many rows that are not at a bound
  double far_out_ = kInfinity;                 // beyond it a row may rest
  std::array<double, 4> resting_losses_ = {};  // of rows that rest, by the pass they are missing from, modulo 4
  double losses_ = 0;
  double dual_values_ = 0;
  bool met_all_ = false;  // until then a row's duals are added when it is first met
};

// One task on its way.
struct Training {
  const Task& task;
  Solution& solution;
  std::string name;  // of what is its own in a checkpoint
  ClassDescent descent;
  double trust;       // certified gap / estimated gap, as far as is known
  bool done = false;  // certified within the tolerance: left out of later passes
  Certificate certificate = {};
  Certificate estimate = {};

  void save(SnapshotWriter& to) const {
    to.put(name + "state",
           std::span<const double>(std::array{trust, done ? 1.0 : 0.0, certificate.primal, certificate.dual}));
    descent.save(to, name);
  }
  void restore(const SnapshotReader& from) {
    std::array<double, 4> state{};
    from.take(name + "state", std::span<double>(state));
    trust = state[0];
    done = state[1] != 0;
    certificate = {state[2], state[3]};
    descent.restore(from, name);
  }
};

class CrammerSingerRun {
 public:
  CrammerSingerRun(const Problem& problem, const SolveOptions& options, std::vector<Solution>& solutions,
                   const Context& context)
      : problem_(problem), options_(options), solutions_(solutions), run_(problem, options, context) {
    const Plan& plan = run_.plan();
    // Estimates are of losses before a step, and so too high: a certificate that costs but one pass is tried early.
    const bool cheap = plan.certify_bytes >= weights_of_a_task(problem, options.method) * sizeof(double);
    for (size_t i = 0; i < problem.tasks.size(); ++i) {
      if (solutions[i].class_duals.empty()) solutions[i].class_duals = SparseDuals(*problem.store);
      tasks_.push_back(std::unique_ptr<Training>(
          new Training{.task = problem.tasks[i],
                       .solution = solutions[i],
                       .name = fmt::format("{} ", i),
                       .descent = ClassDescent(problem, problem.tasks[i], options.seed, solutions[i],
                                               plan.duals_bytes / problem.tasks.size(), context.stop),
                       .trust = cheap ? 0.5 : 1}));
    }
    if (const auto checkpoint = run_.take_checkpoint())
      for (auto& task : tasks_) task->restore(*checkpoint);
  }

  Summary solve() {
    for (;; ++run_.pass, run_.block = 0) {
      work_on_pass();
      PassReport report = run_.pass_report();
      const bool last = run_.last_pass();
      certify_those_due(last, report);
      for (const auto& task : tasks_) {
        const Certificate& known = task->done ? task->certificate : task->estimate;
        report.add_task(known.primal, known.dual);
        if (!task->done) ++report.tasks_left;
      }
      report.solutions = &solutions_;
      run_.report(report);
      if (report.tasks_left > 0 && !last) continue;
      std::vector<Certificate> certificates;
      for (const auto& task : tasks_) certificates.push_back(task->certificate);
      return run_.finish(report.tasks_left == 0 ? Termination::converged : run_.limit(), std::move(certificates));
    }
  }

 private:
  std::vector<Training*> in_work() const {
    std::vector<Training*> found;
    for (const auto& task : tasks_)
      if (!task->done) found.push_back(task.get());
    return found;
  }

  void work_on_pass() {
    const std::vector<Training*> tasks = in_work();
    for (Training* task : tasks)
      if (run_.block == 0) task->descent.begin_pass(run_.pass);
    run_.work_on_pass(
        order_of_pass(*problem_.store, {.chunks_per_block = run_.plan().chunks_per_block, .seed = options_.seed},
                      static_cast<uint64_t>(run_.pass)),
        [&](const Block& block, size_t number) {
          const bool finished = run_.for_each_task(
              tasks.size(), [&](size_t i) { return tasks[i]->descent.solve_block(block, number, run_.plan().inner); });
          check_memory();
          return finished;
        },
        [&](SnapshotWriter& to) {
          for (const auto& task : tasks_) task->save(to);
        });
    for (Training* task : tasks) {
      const double w2 = task->descent.squared_weights();
      task->estimate = {0.5 * w2 + task->descent.losses(), task->descent.dual_values() - 0.5 * w2};
    }
  }

  void check_memory() const {
    uint64_t bytes = 0;
    uint64_t pairs = 0;
    for (const Solution& solution : solutions_) {
      bytes += solution.class_duals.bytes();
      pairs += solution.class_duals.pairs();
    }
    if (bytes <= run_.plan().duals_bytes) return;
    fail(ErrorKind::memory,
         "{} duals are not zero and need {}, and the plan has {} for them: give more memory, or lower the cost", pairs,
         human_bytes(bytes), human_bytes(run_.plan().duals_bytes));
  }

  void certify_those_due(bool last, PassReport& report) {
    std::vector<Training*> due;
    const std::vector<Training*> tasks = in_work();
    for (Training* task : tasks)
      if (last || task->estimate.gap() * task->trust <= options_.tolerance) due.push_back(task);
    // Where rows are read for it, a certificate waits for others.
    const bool reads = run_.plan().rows == RowsHeld::streamed;
    if (!last && reads && static_cast<double>(due.size()) < kShareDue * static_cast<double>(tasks.size())) return;
    std::vector<Run::Certifying> those;
    for (Training* task : due)
      those.push_back({.task = &task->task,
                       .solution = &task->solution,
                       .mend_above = last ? std::nullopt : std::optional(options_.tolerance)});
    run_.certify(those);
    for (size_t i = 0; i < due.size(); ++i) {
      Training& task = *due[i];
      task.certificate = those[i].certificate;
      const double gap = task.certificate.gap();
      if (const double estimate = task.estimate.gap(); estimate > 0 && std::isfinite(estimate))
        task.trust = std::clamp(gap / estimate, 0.1, 1.0);
      task.done = gap <= options_.tolerance;
      if (!report.certified || gap > report.certified->gap()) report.certified = task.certificate;
    }
  }

  const Problem& problem_;
  const SolveOptions& options_;
  std::vector<Solution>& solutions_;
  Run run_;
  std::vector<std::unique_ptr<Training>> tasks_;
};

}  // namespace

Summary solve_crammer_singer(const Problem& problem, const SolveOptions& options, const CrammerSinger&,
                             std::vector<Solution>& solutions, const Context& context) {
  if (!std::holds_alternative<Hinge>(problem.loss))
    fail(ErrorKind::usage, "crammer-singer is for the hinge loss: use --loss hinge, or one-vs-rest with {}",
         name_of(problem.loss));
  return CrammerSingerRun(problem, options, solutions, context).solve();
}

}  // namespace linblock
