// Probabilities for decision values: a sigmoid fitted to decisions of rows whose class is known (Platt scaling).
#pragma once

#include <cstdint>
#include <span>

namespace linblock {

// P(the row is of the class | its decision) = 1 / (1 + exp(slope * decision + offset)).
struct Sigmoid {
  double slope = 0;
  double offset = 0;

  static void visit_fields(auto& self, auto&& field) {
    field("slope", self.slope);
    field("offset", self.offset);
  }

  double probability(double decision) const;
  // Of what is next to nothing too, and never infinite.
  double log_probability(double decision) const;
};

// The sigmoid of the greatest likelihood, with Platt's targets: (n + 1) / (n + 2) for the n positive rows and
// 1 / (m + 2) for the m negative ones, so that it is finite whatever the rows are. Rows of one class only, or
// decisions that say nothing: the same probability everywhere. Decisions that are not finite are left out.
Sigmoid fit_sigmoid(std::span<const double> decisions, std::span<const uint8_t> positive);

}  // namespace linblock
