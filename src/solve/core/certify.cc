#include "solve/core/certify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "base/error.h"

namespace linblock {

namespace {

constexpr size_t kCertifyChunks = 8;    // to a block, where the memory allows
constexpr double kWorthMending = 0.01;  // |v - w|^2 against the gap that is asked for

constexpr size_t kRowsPerPiece = 256;  // of the rows of a chunk: sums are kept by piece and added in order

// Where to cut the features of v so that the parts have about as many nonzeros: by the features of some rows.
std::vector<size_t> cuts_of(const Block& block, const Certifier::FeatureRange& range, size_t parts) {
  constexpr size_t kSample = 4096;
  std::vector<size_t> seen;
  RowBuffer buffer;
  const Chunk& chunk = *block.chunks.front();
  for (size_t i = 0; i < chunk.rows() && seen.size() < kSample; ++i)
    for (const uint32_t index : chunk.row(i, buffer).index)
      if (index >= range.begin && index < range.begin + range.v.size()) seen.push_back(index - range.begin);
  std::sort(seen.begin(), seen.end());
  std::vector<size_t> cuts = {0};
  for (size_t part = 1; part < parts && !seen.empty(); ++part)
    cuts.push_back(std::max(cuts.back(), seen[part * seen.size() / parts]));
  cuts.push_back(range.v.size());
  return cuts;
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
  sequence_.clear();
  for (Job& job : jobs_) sequence_.push_back(&job);
  const auto with_v =
      std::stable_partition(sequence_.begin(), sequence_.end(), [](const Job* job) { return !job->needs_v; });
  without_v_ = static_cast<size_t>(with_v - sequence_.begin());
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
    for (const Job* job : batch()) {
      if constexpr (std::is_same_v<AnyCertifier, Certifier>)
        certifiers.emplace_back(setup_.problem, *job->task, at_once,
                                makes_v() ? std::nullopt : std::optional(job->drift_bound));
      else
        certifiers.emplace_back(setup_.problem, *job->task, at_once);
      if (makes_v()) tasks_of_v_.push_back(static_cast<size_t>(job->task - setup_.problem.tasks.data()));
    }
    certifiers_ = std::move(certifiers);
  };
  if (abilities_of(setup_.options.method).tasks == TaskKind::all_classes)
    make(std::type_identity<ClassCertifier>{});
  else
    make(std::type_identity<Certifier>{});
}

// Side by side where the memory for v is free: margins alone are the certificate then.
void Certify::load_weights() {
  if (!std::holds_alternative<std::vector<Certifier>>(certifiers_)) return;
  std::vector<std::span<float>> tasks;
  for (const Job* job : batch()) tasks.emplace_back(job->solution->weights);
  const size_t bytes_of_a_task = std::max<size_t>(1, setup_.problem.weights()) * sizeof(float);
  weights_ =
      SideBySide(std::move(tasks), makes_v() ? 0 : setup_.plan.certify_bytes / bytes_of_a_task, 1, setup_.problem.bias);
  weights_.load(setup_.context.team);
}

size_t Certify::passes() const {
  return std::visit([](const auto& certifiers) { return certifiers.front().passes(); }, certifiers_);
}

Pass Certify::next() {
  if (number_ == 0 && !mending_) {
    make_certifiers();
    load_weights();
  }
  const std::span<Job* const> jobs = batch();
  std::visit(
      [&]<class AnyCertifier>(std::vector<AnyCertifier>& certifiers) {
        for (size_t i = 0; i < certifiers.size(); ++i)
          if constexpr (std::is_same_v<AnyCertifier, Certifier>)
            certifiers[i].begin_pass(number_, jobs[i]->solution->weights, jobs[i]->mean);
          else
            certifiers[i].begin_pass(number_);
      },
      certifiers_);
  const double batches = (without_v_ > 0 ? 1 : 0) +
                         std::ceil(static_cast<double>(jobs_.size() - without_v_) / static_cast<double>(at_once_));
  return {.purpose = Pass::Purpose::certify,
          .order = order_,
          .window_bytes = setup_.plan.certify_window_bytes,
          .words = kCertifying,
          .done = done_,
          .readings = static_cast<double>(passes()) * batches};
}

void Certify::work(const Block& block) {
  for (const Job* job : batch())
    if (!job->solution->duals.empty()) job->solution->duals.fetch(block.numbers);
  std::visit([&](auto& certifiers) { add_block(certifiers, block); }, certifiers_);
}

void Certify::add_block(std::vector<Certifier>& certifiers, const Block& block) {
  const std::span<Job* const> jobs = batch();
  const Team& team = setup_.context.team;
  struct RowPiece {
    size_t chunk = 0;
    size_t first_row = 0;
  };
  std::vector<RowPiece> pieces;
  for (size_t chunk = 0; chunk < block.chunks.size() && number_ == 0 && !mending_; ++chunk)
    for (size_t row = 0; row < block.chunks[chunk]->rows(); row += kRowsPerPiece) pieces.push_back({chunk, row});
  const auto page_of = [&](const Job& job, size_t chunk) {
    const Duals& duals = job.solution->duals;
    return duals.empty() ? std::span<const double>() : duals.page(block.numbers[chunk]);
  };
  std::vector<CertificateSums> sums(pieces.size() * jobs.size());
  const std::span<const WeightGroup> groups = weights_.groups();
  const size_t of_sums = pieces.size() * groups.size();
  // Of v, of each task: each part looks at every row, so there are no more of them than cores.
  const size_t parts = makes_v() && !block.chunks.empty() ? team.owners() : 0;
  const std::vector<size_t> cuts =
      parts == 0 ? std::vector<size_t>() : cuts_of(block, certifiers.front().range(), parts);
  const size_t of_v = cuts.empty() ? 0 : cuts.size() - 1;
  team.for_each(of_sums + of_v * jobs.size(), [&](size_t number) {
    RowBuffer buffer;
    // The long pieces first.
    if (number < of_v * jobs.size()) {
      const Job& job = *jobs[number / of_v];
      const size_t part = number % of_v;
      if (job.solution->duals.empty()) return;
      for (size_t chunk = 0; chunk < block.chunks.size(); ++chunk)
        certifiers[number / of_v].add_to_v(*block.chunks[chunk], page_of(job, chunk), cuts[part], cuts[part + 1],
                                           buffer);
      return;
    }
    number -= of_v * jobs.size();
    // All pieces of a group, then those of the next: its weights stay in the cache.
    const WeightGroup& group = groups[number / pieces.size()];
    const RowPiece& piece = pieces[number % pieces.size()];
    const Chunk& chunk = *block.chunks[piece.chunk];
    std::array<std::span<const double>, kMostSideBySide> duals;
    for (size_t c = 0; c < group.width(); ++c) duals[c] = page_of(*jobs[group.first() + c], piece.chunk);
    const size_t begin = group.first() * pieces.size() + number % pieces.size() * group.width();
    Certifier::find_sums(std::span(certifiers).subspan(group.first(), group.width()), group, chunk, piece.first_row,
                         std::min(chunk.rows(), piece.first_row + kRowsPerPiece), duals, buffer,
                         std::span(sums).subspan(begin, group.width()));
  });
  auto sum = sums.begin();
  for (const WeightGroup& group : groups)
    for (size_t piece = 0; piece < pieces.size(); ++piece)
      for (size_t c = 0; c < group.width(); ++c) certifiers[group.first() + c].add(*sum++);
}

void Certify::add_block(std::vector<ClassCertifier>& certifiers, const Block& block) {
  const std::span<Job* const> jobs = batch();
  // Losses and v have nothing in common, and tasks have not either.
  setup_.context.team.for_each(2 * jobs.size(), [&](size_t number) {
    const bool losses = number % 2 == 0;
    if (losses && number_ > 0) return;
    const Job& job = *jobs[number / 2];
    ClassCertifier& certifier = certifiers[number / 2];
    for (size_t i = 0; i < block.chunks.size(); ++i) {
      const SparseDuals::Page page = job.solution->class_duals.page(block.numbers[i]);
      if (losses)
        certifier.add_losses(*block.chunks[i], page, job.solution->weights);
      else
        certifier.add_duals(*block.chunks[i], page);
    }
  });
}

void Certify::end_pass() {
  ++done_;
  std::visit(
      [&](auto& certifiers) {
        const std::span<Job* const> jobs = batch();
        for (size_t i = 0; i < jobs.size(); ++i)
          if constexpr (std::is_same_v<std::decay_t<decltype(certifiers.front())>, Certifier>)
            certifiers[i].end_pass();
          else
            certifiers[i].end_pass(jobs[i]->solution->weights);
        if (mending_) set_range(*jobs.front(), certifiers.front().range());
        if (++number_ < certifiers.front().passes()) return;
        number_ = 0;
        bool mend = false;
        for (size_t i = 0; i < jobs.size() && !mending_; ++i) mend = adopt(*jobs[i], certifiers[i]) || mend;
        mending_ = mend;
        if (!mending_) begin_ += jobs.size();
      },
      certifiers_);
}

// The certificate of the better of two weights. Weights are sums of floats; v is what they should be: if they will be
// gone on from, it takes their place. True: v must be read again for that, since it was made in ranges.
template <class AnyCertifier>
bool Certify::adopt(Job& job, const AnyCertifier& certifier) {
  constexpr bool kOneTask = std::is_same_v<AnyCertifier, Certifier>;
  std::vector<float>& weights = job.solution->weights;
  bool mean_is_better = false;
  if constexpr (kOneTask) {
    job.certificate = certifier.finish();
    if (!job.mean.empty()) {
      const Certificate of_mean = certifier.finish_mean();
      mean_is_better = of_mean.primal < job.certificate.primal;
      if (mean_is_better) job.certificate = of_mean;
    }
  } else {
    job.certificate = certifier.finish(weights);
  }
  if (!job.replace_above || job.certificate.gap() <= *job.replace_above) {
    if (!mean_is_better) return false;
    job.solution->weights_of_duals = std::move(weights);
    weights.assign(job.mean.begin(), job.mean.end());
    return false;
  }
  if (!makes_v()) return false;
  if constexpr (kOneTask) job.drift_bound = certifier.drift();
  const double square = kOneTask ? job.drift_bound * job.drift_bound : certifier.drift();
  if (certifier.passes() > 1)
    if (square <= kWorthMending * setup_.options.tolerance * std::abs(job.certificate.dual)) return false;
  if constexpr (kOneTask) job.drift_bound = certifier.drift_of_v();
  if (certifier.passes() > 1) return true;
  set_range(job, certifier.range());
  return false;
}

void Certify::set_range(Job& job, const Certifier::FeatureRange& range) const {
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
        for (size_t i = 0; i < std::min(certifiers.size(), tasks_of_v_.size()); ++i) {
          const Certifier::FeatureRange range = certifiers[i].range();
          parts.push_back({tasks_of_v_[i], range.begin, range.v});
        }
      },
      certifiers_);
  return parts;
}

}  // namespace linblock
