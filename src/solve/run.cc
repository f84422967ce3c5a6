#include "solve/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/threads.h"

namespace linblock {

namespace {

constexpr size_t kCertifyChunks = 8;    // to a block, where the memory allows
constexpr double kWorthMending = 0.01;  // |v - w|^2 against the gap that is asked for

}  // namespace

Run::Run(const Problem& problem, const SolveOptions& options, const Method& method, const Context& context)
    : problem_(problem),
      options_(options),
      context_(context),
      summary_([&] {
        if (context.checkpoint.wanted() && path_kind(context.checkpoint.path) == PathKind::file)
          resumed_ = std::make_unique<SnapshotReader>(context.checkpoint.path);
        // What was measured the first time is not measured again: the same plan, the same bits.
        Summary summary;
        summary.plan = resumed_ ? Plan::restore(*resumed_) : make_plan(problem, method, context);
        return summary;
      }()),
      blocks_(std::make_unique<BlockSource>(*problem.store, summary_.plan.rows, summary_.plan.window_bytes,
                                            context.threads)) {
  context_.on_plan(summary_.plan);
  if (!resumed_) return;
  std::array<double, 8> at{};
  resumed_->take("position", std::span<double>(at));
  pass = static_cast<int>(at[0]);
  block = static_cast<size_t>(at[1]);
  pass_rows_ = static_cast<uint64_t>(at[2]);
  pass_solve_seconds_ = at[3];
  pass_costs_ = {static_cast<uint64_t>(at[4]), at[5], at[6], at[7]};
}

void Run::save(const std::function<void(SnapshotWriter&)>& save) {
  if (!context_.checkpoint.wanted()) return;
  SnapshotWriter writer(context_.checkpoint.path);
  writer.put("identity", context_.checkpoint.identity);
  summary_.plan.save(writer);
  writer.put("position", std::span<const double>(std::array{
                             static_cast<double>(pass), static_cast<double>(block), static_cast<double>(pass_rows_),
                             pass_solve_seconds_, static_cast<double>(pass_costs_.bytes), pass_costs_.read_seconds,
                             pass_costs_.decode_seconds, pass_costs_.wait_seconds}));
  save(writer);
  writer.commit();
  since_saved_.restart();
}

void Run::hold(const std::vector<uint32_t>& chunks) {
  earlier_costs_ = costs();
  blocks_.reset();  // its memory first
  blocks_ = std::make_unique<BlockSource>(*problem_.store, chunks.empty() ? summary_.plan.rows : RowsHeld::decoded,
                                          summary_.plan.window_bytes, context_.threads, chunks);
}

ReadCosts Run::costs() const {
  ReadCosts sum = earlier_costs_;
  sum += blocks_->costs();
  return sum;
}

Duals Run::make_duals() const {
  return summary_.plan.duals_in_file ? Duals(*problem_.store, context_.checkpoint.path + ".duals")
                                     : Duals(*problem_.store);
}

void Run::work_on_pass(const BlockOrder& order, const std::function<bool(const Block&, size_t)>& work,
                       const std::function<void(SnapshotWriter&)>& save, bool save_first) {
  const Checkpoint& checkpoint = context_.checkpoint;
  if (block == 0) {
    pass_costs_ = {};
    pass_solve_seconds_ = 0;
    pass_rows_ = 0;
    if (save_first) this->save(save);
  }
  ReadCosts before = costs();
  bool finished = true;
  blocks_->for_each(
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

PassReport Run::pass_report() const {
  return {.pass = pass, .rows = pass_rows_, .costs = pass_costs_, .solve_seconds = pass_solve_seconds_};
}

double PassReport::gap_estimate() const {
  return dual > 0 ? (primal_estimate - dual) / dual : std::numeric_limits<double>::infinity();
}

Termination Run::limit() const {
  if (stopped()) return Termination::interrupted;
  return pass >= options_.max_passes ? Termination::pass_limit : Termination::time_limit;
}

// Blocks of a few chunks, as the memory that v leaves allows.
BlockOrder Run::certify_order() const {
  uint64_t largest = 1;
  for (const ChunkInfo& chunk : problem_.store->chunks())
    largest = std::max(largest, Chunk::memory_limit(std::max<uint64_t>(chunk.raw_bytes, chunk.extent()), chunk.rows,
                                                    chunk.nonzeros, true));
  const Plan& plan = summary_.plan;
  const bool streamed = plan.rows == RowsHeld::streamed;
  return BlockOrder::all(
      *problem_.store,
      streamed ? std::clamp<size_t>(plan.certify_window_bytes / 2 / largest, 1, kCertifyChunks) : kCertifyChunks);
}

void Run::certify_pass(Solution& solution, Certifier& certifier, size_t number, const BlockOrder& order,
                       std::span<const float> mean) {
  certifier.begin_pass(number);
  blocks_->for_each(
      order,
      [&](const Block& rows, size_t) {
        const bool have_duals = !solution.duals.empty();
        if (have_duals) solution.duals.fetch(rows.numbers);
        const auto page = [&](size_t i) {
          return have_duals ? std::span<const double>(solution.duals.page(rows.numbers[i])) : std::span<const double>();
        };
        // Losses and v have nothing in common: a thread each.
        const auto losses = [&] {
          for (size_t i = 0; i < rows.chunks.size() && number == 0; ++i)
            certifier.add_losses(*rows.chunks[i], page(i), solution.weights, mean);
        };
        const auto v = [&] {
          for (size_t i = 0; i < rows.chunks.size() && have_duals; ++i) certifier.add_duals(*rows.chunks[i], page(i));
        };
        if (context_.threads > 1 && number == 0 && have_duals) {
          run_on_threads(2, [&](size_t thread) { thread == 0 ? losses() : v(); });
        } else {
          losses();
          v();
        }
        if (context_.stopped() && context_.checkpoint.wanted())
          fail(ErrorKind::interrupted,
               "interrupted in the certificate of pass {}: the same command goes on from the last "
               "checkpoint",
               pass);
        return true;
      },
      0, summary_.plan.certify_window_bytes);
  certifier.end_pass(solution.weights);
}

Certificate Run::certify(const Task& task, Solution& solution, const Certifying& how) {
  const Stopwatch certifying;
  const ReadCosts before = costs();
  const BlockOrder rows = how.order != nullptr ? *how.order : certify_order();
  Certifier certifier(problem_, task, summary_.plan.features_at_once());
  for (size_t number = 0; number < certifier.passes(); ++number)
    certify_pass(solution, certifier, number, rows, how.mean);
  Certificate certificate = certifier.finish(solution.weights);
  const Certificate of_mean = how.mean.empty() ? certificate : certifier.finish_others(how.mean);
  const bool mean_is_better = of_mean.primal < certificate.primal;
  if (!how.mend_above || std::min(certificate.gap(), of_mean.gap()) <= *how.mend_above) {
    if (mean_is_better) solution.weights.assign(how.mean.begin(), how.mean.end());
  } else {
    mend(solution, certifier, rows, certificate);
  }
  if (mean_is_better) certificate = of_mean;
  last_certify_seconds_ = certifying.seconds();
  last_certify_costs_ = costs() - before;
  summary_.certify_seconds += last_certify_seconds_;
  return certificate;
}

// Weights are sums of floats; v is what they should be.
void Run::mend(Solution& solution, Certifier& certifier, const BlockOrder& rows, const Certificate& certificate) {
  const auto set_range = [&] {
    const Certifier::Range range = certifier.range();
    std::transform(range.v.begin(), range.v.end(), solution.weights.begin() + static_cast<ptrdiff_t>(range.begin),
                   [](double x) { return static_cast<float>(x); });
  };
  if (certifier.passes() == 1) {
    set_range();
  } else if (certifier.drift() > kWorthMending * options_.tolerance * std::abs(certificate.dual)) {
    for (size_t number = 0; number < certifier.passes(); ++number) {
      certify_pass(solution, certifier, number, rows, {});
      set_range();
    }
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

Summary Run::finish(Termination termination, const Certificate& certificate) {
  summary_.termination = termination;
  summary_.certificates = {certificate};
  summary_.costs = costs();
  summary_.total_seconds = clock_.seconds();
  return std::move(summary_);
}

}  // namespace linblock
