#include "solve/core/certify.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "base/threads.h"

namespace linblock {

namespace {

constexpr size_t kCertifyChunks = 8;    // to a block, where the memory allows
constexpr double kWorthMending = 0.01;  // |v - w|^2 against the gap that is asked for

// One of the two halves of a certifier's work on a chunk.
void add_half(Certifier& certifier, const Certify::Job& job, const Chunk& chunk, uint32_t number, bool losses) {
  const Duals& duals = job.solution->duals;
  const auto page = duals.empty() ? std::span<const double>() : duals.page(number);
  if (losses) certifier.add_losses(chunk, page, job.solution->weights, job.mean);
  if (!losses && !duals.empty()) certifier.add_duals(chunk, page);
}

void add_half(ClassCertifier& certifier, const Certify::Job& job, const Chunk& chunk, uint32_t number, bool losses) {
  const SparseDuals::Page page = job.solution->class_duals.page(number);
  if (losses) certifier.add_losses(chunk, page, job.solution->weights);
  if (!losses) certifier.add_duals(chunk, page);
}

}  // namespace

BlockOrder certify_order(const Store& store, const Plan& plan) {
  uint64_t largest = 1;
  for (const ChunkInfo& chunk : store.chunks()) largest = std::max(largest, chunk.memory_bytes(true));
  const bool streamed = plan.rows == RowsHeld::streamed;
  return BlockOrder::all(store, streamed
                                    ? std::clamp<size_t>(plan.certify_window_bytes / 2 / largest, 1, kCertifyChunks)
                                    : kCertifyChunks);
}

void check_certificates(const Summary& summary) {
  for (const Certificate& job : summary.certificates)
    if (summary.has_dual && job.contradicts_itself())
      throw std::logic_error(fmt::format(
          "the certificate contradicts itself: no objective can be below {:.17g}, and that of these weights is "
          "{:.17g}",
          job.dual, job.primal));
}

void Certify::begin(std::vector<Job> jobs, std::optional<BlockOrder> order) {
  jobs_ = std::move(jobs);
  begin_ = number_ = 0;
  if (jobs_.empty()) return;
  order_ = order ? std::move(*order) : certify_order(*setup_.problem.store, setup_.plan);
  at_once_ = setup_.plan.certified_at_once(weights_of_a_task(setup_.problem, setup_.options.method));
  mending_ = false;
  done_ = 0;
}

void Certify::begin_all() {
  std::vector<Job> jobs;
  for (size_t i = 0; i < setup_.solutions.size(); ++i)
    jobs.push_back({.task = &setup_.problem.tasks[i], .solution = &setup_.solutions[i]});
  begin(std::move(jobs));
}

void Certify::make_certifiers() {
  clear();
  const size_t at_once = setup_.plan.features_at_once();
  tasks_of_v_.clear();
  const auto make = [&]<class AnyCertifier>(std::type_identity<AnyCertifier>) {
    std::vector<AnyCertifier> certifiers;
    for (const Job& job : batch()) {
      certifiers.emplace_back(setup_.problem, *job.task, at_once);
      tasks_of_v_.push_back(static_cast<size_t>(job.task - setup_.problem.tasks.data()));
    }
    certifiers_ = std::move(certifiers);
  };
  if (abilities_of(setup_.options.method).tasks == TaskKind::all_classes)
    make(std::type_identity<ClassCertifier>{});
  else
    make(std::type_identity<Certifier>{});
}

size_t Certify::passes() const {
  return std::visit([](const auto& certifiers) { return certifiers.front().passes(); }, certifiers_);
}

Pass Certify::next() {
  if (number_ == 0 && !mending_) make_certifiers();
  std::visit(
      [&](auto& certifiers) {
        for (auto& certifier : certifiers) certifier.begin_pass(number_);
      },
      certifiers_);
  const double batches = std::ceil(static_cast<double>(jobs_.size()) / static_cast<double>(at_once_));
  return {.purpose = Pass::Purpose::certify,
          .order = order_,
          .window_bytes = setup_.plan.certify_window_bytes,
          .words = kCertifying,
          .done = done_,
          .readings = static_cast<double>(passes()) * batches};
}

void Certify::work(const Block& block) {
  const std::span<Job> jobs = batch();
  for (Job& job : jobs)
    if (!job.solution->duals.empty()) job.solution->duals.fetch(block.numbers);
  std::visit(
      [&](auto& certifiers) {
        // Losses and v have nothing in common, and tasks have not either.
        for_each_on_threads(setup_.context.threads, 2 * jobs.size(), [&](size_t job) {
          const bool losses = job % 2 == 0;
          if (losses && number_ > 0) return;
          for (size_t i = 0; i < block.chunks.size(); ++i)
            add_half(certifiers[job / 2], jobs[job / 2], *block.chunks[i], block.numbers[i], losses);
        });
      },
      certifiers_);
}

void Certify::end_pass() {
  ++done_;
  std::visit(
      [&](auto& certifiers) {
        const std::span<Job> jobs = batch();
        for (size_t i = 0; i < jobs.size(); ++i) certifiers[i].end_pass(jobs[i].solution->weights);
        if (mending_) set_range(jobs.front(), certifiers.front().range());
        if (++number_ < certifiers.front().passes()) return;
        number_ = 0;
        bool mend = false;
        for (size_t i = 0; i < jobs.size() && !mending_; ++i) mend = adopt(jobs[i], certifiers[i]) || mend;
        mending_ = mend;
        if (!mending_) begin_ += jobs.size();
      },
      certifiers_);
}

// The certificate of the better of two weights. Weights are sums of floats; v is what they should be: if they will be
// gone on from, it takes their place. True: v must be read again for that, since it was made in ranges.
template <class AnyCertifier>
bool Certify::adopt(Job& job, const AnyCertifier& certifier) {
  std::vector<float>& weights = job.solution->weights;
  job.certificate = certifier.finish(weights);
  const double dual = job.certificate.dual;
  Certificate of_mean = job.certificate;
  if constexpr (std::is_same_v<AnyCertifier, Certifier>)
    if (!job.mean.empty()) of_mean = certifier.finish_others(job.mean);
  const bool mean_is_better = of_mean.primal < job.certificate.primal;
  if (mean_is_better) job.certificate = of_mean;
  if (!job.replace_above || job.certificate.gap() <= *job.replace_above) {
    if (!mean_is_better) return false;
    job.solution->weights_of_duals = std::move(weights);
    weights.assign(job.mean.begin(), job.mean.end());
    return false;
  }
  if (certifier.passes() > 1) return !(certifier.drift() <= kWorthMending * setup_.options.tolerance * std::abs(dual));
  set_range(job, certifier.range());
  return false;
}

void Certify::set_range(Job& job, const Certifier::Range& range) const {
  std::transform(range.v.begin(), range.v.end(), job.solution->weights.begin() + static_cast<ptrdiff_t>(range.begin),
                 [](double x) { return static_cast<float>(x); });
}

std::vector<Certificate> Certify::certificates() const {
  std::vector<Certificate> all;
  for (const Job& job : jobs_) all.push_back(job.certificate);
  return all;
}

std::vector<PartOfV> Certify::v() const {
  std::vector<PartOfV> parts;
  std::visit(
      [&](const auto& certifiers) {
        for (size_t i = 0; i < certifiers.size(); ++i) {
          const Certifier::Range range = certifiers[i].range();
          parts.push_back({tasks_of_v_[i], range.begin, range.v});
        }
      },
      certifiers_);
  return parts;
}

}  // namespace linblock
