// One task's rows at fixed weights where losses are cut at 1 + s: which of them are outliers, and what that makes of
// the objective.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "objective/certificate.h"
#include "objective/problem.h"
#include "objective/row_set.h"
#include "solve/core/solver.h"

namespace linblock {

class OutlierReading {
 public:
  // `known`: the outliers so far; `outliers_now`: they are set in it as rows come. Both outlive the reading.
  OutlierReading(const Problem& problem, const Task& task, const RowSet& known, RowSet& outliers_now);

  // At the solution's weights. Rows that are outliers now have their alpha y x taken out of `going_on`, which are the
  // weights that belong to the duals, and their alpha set to 0; nobody rests any longer. No duals: none are touched.
  void begin(Solution& solution, std::vector<float>& going_on);
  // The duals' pages are at hand.
  void add(const Chunk& chunk, uint32_t number);

  // Of all rows: the true objective, and those of two convex problems, without the outliers known before or now.
  double objective() const { return half_w2_ + truncated_; }
  double convex_before() const { return half_w2_ + losses_before_; }
  double convex_now() const { return now().primal; }
  // How far rounding may have taken convex_now() from the truth.
  double convex_rounding() const { return -now().dual; }
  uint64_t outliers() const { return outliers_; }
  bool changed() const { return changed_; }
  // That are left: rows with an alpha; where there are no duals, rows whose loss pulls at w.
  uint64_t support_vectors() const { return support_vectors_; }

 private:
  Certificate now() const { return certificate_of(w2_, losses_now_, {}, {}); }
  template <class L>
  void add_with(const L& loss, const Chunk& chunk, uint32_t number);

  const Problem& problem_;
  const RowCost costs_;
  const double most_loss_;
  const double margin_;  // outliers are below
  const RowSet& known_;
  RowSet& outliers_now_;
  Solution* solution_ = nullptr;
  std::vector<float>* going_on_ = nullptr;
  RowBuffer buffer_;
  SquaredNorm w2_;
  double half_w2_ = 0;
  double norm_ = 0;
  double truncated_ = 0;
  double losses_before_ = 0;
  LossSum losses_now_;
  uint64_t outliers_ = 0;
  uint64_t support_vectors_ = 0;
  bool changed_ = false;
};

}  // namespace linblock
