// Certificates of weights, from readings of all rows: which readings it takes, and what becomes of each.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "objective/class_certificate.h"
#include "objective/drift.h"
#include "objective/side_by_side.h"
#include "solve/core/pass.h"

namespace linblock {

inline constexpr std::string_view kCertifying = "to certify how far from the best possible";

// Blocks of a few chunks, as the memory that v leaves allows.
BlockOrder certify_order(const Store& store, const Plan& plan);

// Throws where a bound is above what it bounds: a defect.
void check_certificates(const Summary& summary);

class Certify {
 public:
  // Weights to be certified. Those whose gap is above `replace_above` will be gone on from: they are set to v, unless
  // they have drifted from it by next to nothing. `mean`: other weights, which become the solution's where they are
  // better and nothing will be gone on from.
  struct Job {
    const Task* task = nullptr;
    Solution* solution = nullptr;
    std::optional<double> replace_above = {};
    std::span<const float> mean = {};
    // |v - w| is not above it. Where that is enough for the gap that is asked for, margins alone are the certificate.
    double drift_bound = DriftBound::kUnknown;
    bool needs_v = true;
    Certificate certificate = {};  // the answer; drift_bound then belongs to the weights as they are afterwards
  };

  explicit Certify(const Setup& setup) : setup_(setup) {}

  // One reading for all tasks that need no v. Then one for as many tasks as have room for their v, or several where not
  // even one has. `order`: of these rows alone, where they are all that is held.
  void begin(std::vector<Job> jobs, std::optional<BlockOrder> order = {});
  // Every task, as it is.
  void begin_all();

  bool in_work() const { return begin_ < jobs_.size(); }
  Pass next();
  void work(const Block& block);
  void end_pass();
  // Frees the memory of v, and of weights side by side.
  void clear() {
    certifiers_ = {};
    weights_ = {};
  }

  const std::vector<Job>& jobs() const { return jobs_; }
  std::vector<Certificate> certificates() const;
  // Of the last pass.
  std::vector<PartOfV> v() const;

 private:
  using Certifiers = std::variant<std::vector<Certifier>, std::vector<ClassCertifier>>;

  // The tasks that are certified together now.
  std::span<Job* const> batch() const {
    const size_t most = makes_v() ? at_once_ : without_v_;
    return std::span(sequence_).subspan(begin_, std::min(most, sequence_.size() - begin_));
  }
  bool makes_v() const { return begin_ >= without_v_; }
  void make_certifiers();
  void load_weights();
  size_t passes() const;
  void add_block(std::vector<Certifier>& certifiers, const Block& block);
  void add_block(std::vector<ClassCertifier>& certifiers, const Block& block);
  template <class AnyCertifier>
  bool adopt(Job& job, const AnyCertifier& certifier);
  void set_range(Job& job, const Certifier::FeatureRange& range) const;

  const Setup setup_;
  std::vector<Job> jobs_;
  BlockOrder order_;
  std::vector<Job*> sequence_;  // those without v come first
  size_t without_v_ = 0;        // so many
  size_t at_once_ = 1;          // of the others
  size_t begin_ = 0;            // in the sequence, of the tasks that are certified together now
  size_t number_ = 0;           // of the reading for them
  bool mending_ = false;
  double done_ = 0;  // readings
  Certifiers certifiers_;
  SideBySide weights_;  // of the tasks that are certified together now
  std::vector<size_t> tasks_of_v_;
};

}  // namespace linblock
