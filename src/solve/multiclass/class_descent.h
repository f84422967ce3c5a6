// The step of Crammer and Singer's method on one block of rows, for one task, and the sums that tell how far it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "objective/class_step.h"
#include "objective/drift.h"
#include "solve/core/solver.h"
#include "solve/dual/shrinking.h"

namespace linblock {

class ClassDescent {
 public:
  // Goes on from the solution's weights and duals, which must be there. Its duals may take so many bytes; `stop` ends
  // the rounds over a block that takes long.
  ClassDescent(const Problem& problem, const Task& task, uint64_t seed, Solution& solution, uint64_t duals_bytes,
               const std::atomic<bool>* stop);

  void begin_pass(int pass);
  // Rounds over the block in random order. False: stopped half-way.
  bool solve_block(const Block& block, size_t number, size_t rounds);

  // Of this pass: losses of the rows as they were found, before their own step; of resting ones, as they were then.
  double losses() const { return losses_; }
  // Kept up to date; after a warm start, once a pass is done.
  double dual_values() const { return dual_values_; }
  double squared_weights() const;
  // Its certificates make v.
  static double drift_bound() { return DriftBound::kUnknown; }
  void set_drift_bound(double) {}
  // No mean of weights is kept.
  static std::span<const float> mean() { return {}; }

  static void visit_fields(auto& self, auto&& field) {
    field("weights", std::span(self.solution_.weights));
    field("duals", self.solution_.class_duals);
    field("shrinking", self.shrinking_);
    field("pass", self.pass_);
    field("losses", self.losses_);
    field("dual_values", self.dual_values_);
    field("met_all", self.met_all_);
  }
  void save(FieldWriter& to) const { visit_fields(*this, to); }

 private:
  void collect(const Block& block);
  void prefetch(const Block& block, size_t at) const;
  void find_scores(const Row& row);
  void visit(const Block& block, uint32_t place, bool first);
  void step(const Row& row, size_t true_class, double score, double sum, double cost, RowCache::Origin origin);
  void make_room(double true_b, double norm2, double cost);
  void change_weights(const Row& row, size_t true_class);

  const Problem& problem_;
  const HeldOut held_out_;
  const RowCost costs_;
  const ClassNumbers numbers_;
  const size_t classes_;
  const uint64_t seed_;
  Solution& solution_;
  const uint64_t duals_bytes_;
  const size_t planned_;  // classes a row, in the mean, that there is memory for
  const std::atomic<bool>* stop_;
  size_t most_classes_ = 1;  // that a row may have after a visit
  size_t new_classes_ = 1;   // that a visit may bring in
  std::vector<uint32_t> places_;
  RowBuffer buffer_;
  std::vector<float> sums_;
  std::vector<double> scores_;
  std::vector<ClassCandidate> candidates_;
  std::vector<ClassCandidate> dropped_;
  std::vector<ClassDual> pairs_;
  std::vector<std::pair<size_t, float>> changes_;
  int pass_ = 0;
  Shrinking shrinking_;
  double losses_ = 0;
  double dual_values_ = 0;
  bool met_all_ = false;  // until then a row's duals are added when it is first met
};

}  // namespace linblock
