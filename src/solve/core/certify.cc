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
void add_half(Certifier& certifier, const Certify::One& one, const Chunk& chunk, uint32_t number, bool losses) {
  const Duals& duals = one.solution->duals;
  const auto page = duals.empty() ? std::span<const double>() : duals.page(number);
  if (losses) certifier.add_losses(chunk, page, one.solution->weights, one.mean);
  if (!losses && !duals.empty()) certifier.add_duals(chunk, page);
}

void add_half(ClassCertifier& certifier, const Certify::One& one, const Chunk& chunk, uint32_t number, bool losses) {
  const SparseDuals::Page page = one.solution->class_duals.page(number);
  if (losses) certifier.add_losses(chunk, page, one.solution->weights);
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
  for (const Certificate& one : summary.certificates)
    if (summary.has_dual && one.contradicts_itself())
      throw std::logic_error(fmt::format(
          "the certificate contradicts itself: no objective can be below {:.17g}, and that of these weights is "
          "{:.17g}",
          one.dual, one.primal));
}

void Certify::begin(std::vector<One> those, std::optional<BlockOrder> order) {
  those_ = std::move(those);
  begin_ = number_ = 0;
  if (those_.empty()) return;
  order_ = order ? std::move(*order) : certify_order(*setup_.problem.store, setup_.plan);
  at_once_ = setup_.plan.certified_at_once(weights_of_a_task(setup_.problem, setup_.options.method));
  mending_ = false;
  done_ = 0;
}

void Certify::begin_all() {
  std::vector<One> those;
  for (size_t i = 0; i < setup_.solutions.size(); ++i)
    those.push_back({.task = &setup_.problem.tasks[i], .solution = &setup_.solutions[i]});
  begin(std::move(those));
}

void Certify::make_certifiers() {
  clear();
  const size_t at_once = setup_.plan.features_at_once();
  tasks_of_v_.clear();
  const auto make = [&]<class AnyCertifier>(std::type_identity<AnyCertifier>) {
    std::vector<AnyCertifier> certifiers;
    for (const One& one : batch()) {
      certifiers.emplace_back(setup_.problem, *one.task, at_once);
      tasks_of_v_.push_back(static_cast<size_t>(one.task - setup_.problem.tasks.data()));
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
  const double batches = std::ceil(static_cast<double>(those_.size()) / static_cast<double>(at_once_));
  return {.purpose = Pass::Purpose::certify,
          .order = order_,
          .window_bytes = setup_.plan.certify_window_bytes,
          .words = kCertifying,
          .done = done_,
          .readings = static_cast<double>(passes()) * batches};
}

void Certify::work(const Block& block) {
  const std::span<One> those = batch();
  for (One& one : those)
    if (!one.solution->duals.empty()) one.solution->duals.fetch(block.numbers);
  std::visit(
      [&](auto& certifiers) {
        // Losses and v have nothing in common, and tasks have not either.
        for_each_on_threads(setup_.context.threads, 2 * those.size(), [&](size_t job) {
          const bool losses = job % 2 == 0;
          if (losses && number_ > 0) return;
          for (size_t i = 0; i < block.chunks.size(); ++i)
            add_half(certifiers[job / 2], those[job / 2], *block.chunks[i], block.numbers[i], losses);
        });
      },
      certifiers_);
}

void Certify::end_pass() {
  ++done_;
  std::visit(
      [&](auto& certifiers) {
        const std::span<One> those = batch();
        for (size_t i = 0; i < those.size(); ++i) certifiers[i].end_pass(those[i].solution->weights);
        if (mending_) set_range(those.front(), certifiers.front().range());
        if (++number_ < certifiers.front().passes()) return;
        number_ = 0;
        bool mend = false;
        for (size_t i = 0; i < those.size() && !mending_; ++i) mend = settle(those[i], certifiers[i]) || mend;
        mending_ = mend;
        if (!mending_) begin_ += those.size();
      },
      certifiers_);
}

// The certificate of the better of two weights. Weights are sums of floats; v is what they should be: if they will be
// gone on from, it takes their place. True: v must be read again for that, since it was made in ranges.
template <class AnyCertifier>
bool Certify::settle(One& one, const AnyCertifier& certifier) {
  std::vector<float>& weights = one.solution->weights;
  one.certificate = certifier.finish(weights);
  const double dual = one.certificate.dual;
  Certificate of_mean = one.certificate;
  if constexpr (std::is_same_v<AnyCertifier, Certifier>)
    if (!one.mean.empty()) of_mean = certifier.finish_others(one.mean);
  const bool mean_is_better = of_mean.primal < one.certificate.primal;
  if (mean_is_better) one.certificate = of_mean;
  if (!one.replace_above || one.certificate.gap() <= *one.replace_above) {
    if (!mean_is_better) return false;
    one.solution->weights_of_duals = std::move(weights);
    weights.assign(one.mean.begin(), one.mean.end());
    return false;
  }
  if (certifier.passes() > 1) return !(certifier.drift() <= kWorthMending * setup_.options.tolerance * std::abs(dual));
  set_range(one, certifier.range());
  return false;
}

void Certify::set_range(One& one, const Certifier::Range& range) const {
  std::transform(range.v.begin(), range.v.end(), one.solution->weights.begin() + static_cast<ptrdiff_t>(range.begin),
                 [](double x) { return static_cast<float>(x); });
}

std::vector<Certificate> Certify::certificates() const {
  std::vector<Certificate> all;
  for (const One& one : those_) all.push_back(one.certificate);
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
