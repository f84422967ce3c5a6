#include "solve/core/run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/threads.h"
#include "objective/class_certificate.h"
#include "solve/solve.h"

namespace linblock {

namespace {

constexpr size_t kCertifyChunks = 8;  // to a block, where the memory allows
constexpr std::string_view kCertifying = "to certify how far from the best possible";
constexpr double kWorthMending = 0.01;  // |v - w|^2 against the gap that is asked for

// One of the two halves of a certifier's work on a chunk.
void add_half(Certifier& certifier, const Run::Certifying& one, const Chunk& chunk, uint32_t number, bool losses) {
  const Duals& duals = one.solution->duals;
  const auto page = duals.empty() ? std::span<const double>() : duals.page(number);
  if (losses) certifier.add_losses(chunk, page, one.solution->weights, one.mean);
  if (!losses && !duals.empty()) certifier.add_duals(chunk, page);
}

void add_half(ClassCertifier& certifier, const Run::Certifying& one, const Chunk& chunk, uint32_t number, bool losses) {
  const SparseDuals::Page page = one.solution->class_duals.page(number);
  if (losses) certifier.add_losses(chunk, page, one.solution->weights);
  if (!losses) certifier.add_duals(chunk, page);
}

}  // namespace

Run::Run(const Problem& problem, const SolveOptions& options, const Context& context, const Store* columns)
    : problem_(problem),
      options_(options),
      context_(context),
      columns_(columns),
      summary_([&] {
        if (context.checkpoint.wanted() && path_kind(context.checkpoint.path) == PathKind::file)
          resumed_.emplace(context.checkpoint.path);
        // What was measured the first time is not measured again: the same plan, the same bits.
        Summary summary;
        summary.plan = resumed_ ? resumed_->take<Plan>("plan") : make_plan(problem, options, context);
        return summary;
      }()),
      rows_(context.handed_on != nullptr ? *context.handed_on : own_rows_),
      costs_of_others_(rows_.costs()) {
  rows_.hold({.store = columns != nullptr ? columns : problem.store,
              .held = summary_.plan.rows,
              .window_bytes = summary_.plan.window_bytes,
              .threads = context.threads,
              .decode_blocks = columns == nullptr && problem.tasks.size() > 1});
  context_.on_plan(summary_.plan);
  if (resumed_) restore_position();
}

void Run::restore_position() {
  constexpr int kMostPasses = 1'000'000'000;
  constexpr uint64_t kMostCounted = 1'000'000'000'000'000;
  resumed_->take<std::string>("identity");  // which the caller has compared
  FieldReader position = resumed_->inside("position");
  visit_position(*this, position);
  if (pass < 0 || pass > kMostPasses) position.refuse_value("pass");
  if (block > kMostCounted) position.refuse_value("block");
  if (pass_rows_ > kMostCounted) position.refuse_value("rows");
  if (pass_costs_.bytes > kMostCounted) position.refuse_value("costs.bytes");
}

bool Run::restore(const std::function<void(FieldReader&)>& restore) {
  if (!resumed_) return false;
  restore(*resumed_);
  resumed_->finish();
  resumed_.reset();
  return true;
}

void Run::save(const std::function<void(FieldWriter&)>& save) {
  if (!context_.checkpoint.wanted()) return;
  SnapshotWriter file(context_.checkpoint.path);
  FieldWriter to(file);
  to("identity", context_.checkpoint.identity);
  to("plan", summary_.plan);
  visit_position(*this, to.inside("position"));
  save(to);
  file.commit();
  since_saved_.restart();
}

void Run::hold(const std::vector<uint32_t>& chunks) {
  rows_.hold({.store = problem_.store,
              .held = chunks.empty() ? summary_.plan.rows : RowsHeld::decoded,
              .window_bytes = summary_.plan.window_bytes,
              .threads = context_.threads,
              .only = chunks});
}

ReadCosts Run::costs() const {
  ReadCosts sum = own_costs_;
  sum += rows_.costs();
  return sum - costs_of_others_;
}

Duals Run::make_duals(size_t task) const {
  return linblock::make_duals(*problem_.store, summary_.plan.duals_in_file, context_.checkpoint, task);
}

bool Run::for_each_task(size_t count, const std::function<bool(size_t)>& work) const {
  const Stopwatch working;
  std::atomic<bool> finished = true;
  for_each_on_threads(context_.threads, count, [&](size_t number) {
    if ((number > 0 && stopped() && working.seconds() > kPatience) || !work(number)) finished = false;
  });
  return finished;
}

void Run::work_on_pass(const BlockOrder& order, const std::function<bool(const Block&, size_t)>& work,
                       const std::function<void(FieldWriter&)>& save, bool save_first) {
  const Checkpoint& checkpoint = context_.checkpoint;
  if (block == 0) {
    pass_costs_ = {};
    pass_solve_seconds_ = 0;
    pass_rows_ = 0;
    if (save_first) this->save(save);
  }
  ReadCosts before = costs();
  bool finished = true;
  rows_.for_each(
      order,
      [&](const Block& rows, size_t number) {
        const Stopwatch solving;
        finished = work(rows, number);
        if (!finished) return false;
        block = number + 1;
        BlockReport report{.pass = pass, .block = block, .blocks = order.ends.size()};
        for (const Chunk* chunk : rows.chunks) report.rows += chunk->rows();
        report.solve_seconds = solving.seconds();
        const ReadCosts now = costs();
        report.costs = now - before;
        before = now;
        pass_costs_ += report.costs;
        pass_solve_seconds_ += report.solve_seconds;
        pass_rows_ += report.rows;
        report.seconds = clock_.seconds();
        context_.on_block(report);
        const bool stop = context_.stopped();
        if (checkpoint.wanted() && (stop || since_saved_.seconds() >= checkpoint.every_seconds)) this->save(save);
        return !stop;
      },
      block);
  summary_.solve_seconds += pass_solve_seconds_;
  if (!stopped() || !checkpoint.wanted()) return;
  const bool saved = path_kind(checkpoint.path) == PathKind::file;
  fail(ErrorKind::interrupted, "interrupted in pass {}: the same command {}", pass,
       finished ? "goes on from here"
       : saved  ? "goes on from the last checkpoint"
                : "begins anew");
}

void Run::end_step(const std::function<void(FieldWriter&)>& save) {
  const Checkpoint& checkpoint = context_.checkpoint;
  if (!checkpoint.wanted()) return;
  if (!stopped() && since_saved_.seconds() < checkpoint.every_seconds) return;
  ++pass;  // the next one
  this->save(save);
  --pass;
  if (stopped()) fail(ErrorKind::interrupted, "interrupted in step {}: the same command goes on from here", pass);
}

bool Run::gives_up(std::string_view what) {
  if (!stopped()) return false;
  const std::lock_guard lock(told_mutex_);
  if (!told_to_stop_) told_to_stop_.emplace();
  if (told_to_stop_->seconds() < kPatience) return false;
  if (context_.checkpoint.wanted())
    fail(ErrorKind::interrupted, "interrupted in {} {}: the same command {}", what, pass,
         path_kind(context_.checkpoint.path) == PathKind::file ? "resumes from the last checkpoint" : "starts over");
  return true;
}

PassReport Run::pass_report() const {
  return {.pass = pass, .rows = pass_rows_, .costs = pass_costs_, .solve_seconds = pass_solve_seconds_};
}

void PassReport::add_task(double primal, double its_dual) {
  primal_estimate += primal;
  dual += its_dual;
  largest_gap = std::max(largest_gap, relative_gap(primal, its_dual));
}

Termination Run::limit() const {
  if (stopped()) return Termination::interrupted;
  return pass >= options_.max_passes ? Termination::pass_limit : Termination::time_limit;
}

// Blocks of a few chunks, as the memory that v leaves allows.
BlockOrder Run::certify_order() const {
  uint64_t largest = 1;
  for (const ChunkInfo& chunk : problem_.store->chunks()) largest = std::max(largest, chunk.memory_bytes(true));
  const Plan& plan = summary_.plan;
  const bool streamed = plan.rows == RowsHeld::streamed;
  return BlockOrder::all(
      *problem_.store,
      streamed ? std::clamp<size_t>(plan.certify_window_bytes / 2 / largest, 1, kCertifyChunks) : kCertifyChunks);
}

template <typename AnyCertifier>
void Run::certify_pass(std::span<Certifying> those, std::vector<AnyCertifier>& certifiers, size_t number,
                       const BlockOrder& order) {
  for (AnyCertifier& certifier : certifiers) certifier.begin_pass(number);
  rows_.for_each(
      order,
      [&](const Block& rows, size_t block_number) {
        for (Certifying& one : those)
          if (!one.solution->duals.empty()) one.solution->duals.fetch(rows.numbers);
        // Losses and v have nothing in common, and tasks have not either.
        for_each_on_threads(context_.threads, 2 * those.size(), [&](size_t job) {
          const bool losses = job % 2 == 0;
          if (losses && number > 0) return;
          for (size_t i = 0; i < rows.chunks.size(); ++i)
            add_half(certifiers[job / 2], those[job / 2], *rows.chunks[i], rows.numbers[i], losses);
        });
        context_.on_reading(kCertifying, (certify_done_ + static_cast<double>(block_number + 1) /
                                                              static_cast<double>(order.ends.size())) /
                                             certify_passes_);
        fail_if_stopped();
        return true;
      },
      0, summary_.plan.certify_window_bytes);
  for (size_t i = 0; i < those.size(); ++i) {
    certifiers[i].end_pass(those[i].solution->weights);
    const Certifier::Range range = certifiers[i].range();
    if (context_.on_v) context_.on_v(static_cast<size_t>(those[i].task - problem_.tasks.data()), range.begin, range.v);
  }
  ++certify_done_;
}

void Run::fail_if_stopped() const {
  if (context_.stopped() && context_.checkpoint.wanted())
    fail(ErrorKind::interrupted, "interrupted in the certificate of pass {}: the same command {}", pass,
         path_kind(context_.checkpoint.path) == PathKind::file ? "goes on from the last checkpoint" : "begins anew");
}

void Run::certify(std::span<Certifying> those, const BlockOrder* order) {
  const Stopwatch certifying;
  const ReadCosts before = costs();
  const BlockOrder rows = order != nullptr ? *order : certify_order();
  if (abilities_of(options_.method).tasks == TaskKind::all_classes)
    certify_with<ClassCertifier>(those, rows);
  else
    certify_with<Certifier>(those, rows);
  last_certify_seconds_ = certifying.seconds();
  last_certify_costs_ = costs() - before;
  summary_.certify_seconds += last_certify_seconds_;
}

template <typename AnyCertifier>
void Run::certify_with(std::span<Certifying> those, const BlockOrder& rows) {
  const size_t at_once = summary_.plan.certified_at_once(weights_of_a_task(problem_, options_.method));
  certify_done_ = 0;
  for (size_t begin = 0; begin < those.size(); begin += at_once) {
    const std::span<Certifying> batch = those.subspan(begin, std::min(at_once, those.size() - begin));
    std::vector<AnyCertifier> certifiers;
    for (const Certifying& one : batch) certifiers.emplace_back(problem_, *one.task, summary_.plan.features_at_once());
    certify_passes_ = static_cast<double>(certifiers.front().passes()) *
                      std::ceil(static_cast<double>(those.size()) / static_cast<double>(at_once));
    for (size_t number = 0; number < certifiers.front().passes(); ++number)
      certify_pass(batch, certifiers, number, rows);
    for (size_t i = 0; i < batch.size(); ++i) settle(batch[i], certifiers, i, rows);
  }
}

void Run::read_for_certificate(const BlockOrder& order, size_t number, size_t readings,
                               const std::function<void(const Block&, size_t)>& work) {
  const Stopwatch reading;
  const ReadCosts before = costs();
  if (number == 0) {
    last_certify_seconds_ = 0;
    last_certify_costs_ = {};
  }
  rows_.for_each(order, [&](const Block& some, size_t at) {
    work(some, at);
    context_.on_reading(kCertifying, (static_cast<double>(number) +
                                      static_cast<double>(at + 1) / static_cast<double>(order.ends.size())) /
                                         static_cast<double>(readings));
    fail_if_stopped();
    return true;
  });
  last_certify_seconds_ += reading.seconds();
  last_certify_costs_ += costs() - before;
  summary_.certify_seconds += reading.seconds();
}

std::vector<Certificate> Run::certify_all(std::vector<Solution>& solutions) {
  std::vector<Certifying> those;
  for (size_t i = 0; i < solutions.size(); ++i)
    those.push_back({.task = &problem_.tasks[i], .solution = &solutions[i]});
  certify(those);
  std::vector<Certificate> certificates;
  certificates.reserve(those.size());
  for (const Certifying& one : those) certificates.push_back(one.certificate);
  return certificates;
}

// The certificate of the better of two weights. Weights are sums of floats; v is what they should be: if they will be
// gone on from, it takes their place.
template <typename AnyCertifier>
void Run::settle(Certifying& one, std::vector<AnyCertifier>& certifiers, size_t which, const BlockOrder& rows) {
  AnyCertifier& certifier = certifiers[which];
  std::vector<float>& weights = one.solution->weights;
  one.certificate = certifier.finish(weights);
  const double dual = one.certificate.dual;
  Certificate of_mean = one.certificate;
  if constexpr (std::is_same_v<AnyCertifier, Certifier>)
    if (!one.mean.empty()) of_mean = certifier.finish_others(one.mean);
  const bool mean_is_better = of_mean.primal < one.certificate.primal;
  if (mean_is_better) one.certificate = of_mean;
  if (!one.mend_above || one.certificate.gap() <= *one.mend_above) {
    if (!mean_is_better) return;
    one.solution->weights_of_duals = std::move(weights);
    weights.assign(one.mean.begin(), one.mean.end());
    return;
  }
  const auto set_range = [&] {
    const Certifier::Range range = certifier.range();
    std::transform(range.v.begin(), range.v.end(), weights.begin() + static_cast<ptrdiff_t>(range.begin),
                   [](double x) { return static_cast<float>(x); });
  };
  if (certifier.passes() == 1) return set_range();
  if (certifier.drift() <= kWorthMending * options_.tolerance * std::abs(dual)) return;
  // In ranges: there is but this one certifier.
  for (size_t number = 0; number < certifier.passes(); ++number) {
    certify_pass({&one, 1}, certifiers, number, rows);
    set_range();
  }
}

void Run::report(PassReport report) {
  if (report.certified) {
    report.certify_seconds = last_certify_seconds_;
    report.certify_costs = last_certify_costs_;
  }
  report.seconds = clock_.seconds();
  report.bytes_read = costs().bytes;
  summary_.passes = report.pass;
  context_.observer(report);
}

void Run::give_rows_of_answer() {
  const Plan& plan = summary_.plan;
  BlockOrder order = certify_order();
  if (columns_ != nullptr) {
    // The columns have done their work: their memory is for rows now.
    rows_.hold({.store = problem_.store, .window_bytes = plan.window_bytes, .threads = context_.threads});
    uint64_t largest = 1;
    for (const ChunkInfo& chunk : problem_.store->chunks()) largest = std::max(largest, chunk.memory_bytes(true));
    order = BlockOrder::all(*problem_.store, std::clamp<size_t>(plan.window_bytes / 2 / largest, 1, kCertifyChunks));
  }
  rows_.for_each(
      order,
      [&](const Block& rows, size_t number) {
        context_.on_answer(rows);
        context_.on_reading("to look at the rows with what was learned",
                            static_cast<double>(number + 1) / static_cast<double>(order.ends.size()));
        return !stopped();
      },
      0, plan.certify_window_bytes);
}

Summary Run::finish(Termination termination, std::vector<Certificate> certificates) {
  if (context_.on_answer) give_rows_of_answer();
  if ((context_.on_answer || termination == Termination::interrupted) && stopped() && context_.checkpoint.wanted())
    fail(ErrorKind::interrupted, "interrupted: the same command goes on");
  summary_.termination = termination;
  summary_.certificates = std::move(certificates);
  summary_.costs = costs();
  summary_.total_seconds = clock_.seconds();
  if (columns_ != nullptr || summary_.plan.rows == RowsHeld::streamed) rows_.release();
  return std::move(summary_);
}

}  // namespace linblock
