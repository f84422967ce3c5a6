// The dual problem of the active rows of indexed block descent, and its weights: w = sum of alpha y x, in double. A
// block of active rows at a time is solved by dual coordinate descent (section 3.3) or by Newton steps (section 3.4).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "objective/certificate.h"
#include "objective/double_weights.h"
#include "objective/problem.h"
#include "solve/indexed/active_rows.h"
#include "solve/indexed/block_newton.h"

namespace linblock {

class ActiveDescent {
 public:
  struct DescentSettings {
    bool newton = false;
    uint64_t seed = 1;
    uint64_t bytes = 0;      // of active rows in memory
    std::string files = {};  // for those that do not fit; empty: none
    // The user wants to stop, and has waited long enough: what is returned then is not looked at. It may throw.
    std::function<bool()> give_up = [] { return false; };
  };
  // Sums over the active rows at some weights.
  struct ActiveSums {
    LossSum losses = {};    // of those that are no outliers
    double all_losses = 0;  // of all, each no more than the largest that counts
    DualSum duals = {};
    double out_cost = 0;
  };

  ActiveDescent(const Problem& problem, const RowCost& costs, const Store& store, const DescentSettings& settings);

  ActiveRows& rows() { return rows_; }
  const ActiveRows& rows() const { return rows_; }
  bool give_up() const { return settings_.give_up(); }  // NOLINT(modernize-use-nodiscard)
  const std::vector<double>& weights() const { return w_; }
  double margin(const Row& row, std::span<const double> weights) const {
    return costs_.sign(row) * score_of(row, problem_.bias, weights);
  }
  // work(number, row), for all active rows.
  template <class Work>
  void for_each(const Work& work) {
    rows_.walk([&](const ActiveRows::Ranges& here) {
      for (const auto& [first, end] : here)
        for (size_t i = first; i < end; ++i) work(i, rows_.row(i, buffer_));
    });
  }

  // A block of the newest rows and of up to so many others, which take turns.
  void solve_newest(size_t newest, uint64_t old_rows, double tolerance);
  // Rounds over all active rows until their own problem is solved so far, or so often; how far it is.
  Certificate solve_to(double tolerance, int most_times = 50);
  // `most_loss`: that a row counts with.
  ActiveSums sums_at(std::span<const double> weights, double most_loss);
  // Makes w the sum of alpha y x again, after alphas were changed from outside.
  void refresh_weights();
  // Rows with a 0 in `keep` go for good.
  void keep(const std::vector<uint8_t>& keep);

  static void visit_fields(auto& self, auto&& field) {
    field("rows", self.rows_);
    field("w", std::span(self.w_));
    field("turn", self.turn_);
    field("blocks", self.blocks_);
  }

 private:
  void solve_block(std::vector<uint32_t>& block, double tolerance);
  template <class Loss>
  void descend(const Loss& loss, std::vector<uint32_t>& block, double tolerance);
  template <class Loss>
  double visit(const Loss& loss, size_t number);
  ActiveSums add_up(std::span<const double> weights, double most_loss, std::vector<double>* v);

  const Problem& problem_;
  const RowCost& costs_;
  const DescentSettings settings_;
  ActiveRows rows_;
  BlockNewton newton_;
  std::vector<double> w_;
  size_t turn_ = 0;      // the active row whose turn is next
  uint64_t blocks_ = 0;  // each has its own random numbers
  RowBuffer buffer_;
};

}  // namespace linblock
