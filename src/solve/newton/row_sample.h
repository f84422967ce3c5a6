// Rows that stand for all of them in the model of a Newton step. Those that may change their alphas are kept; where
// they are too many, a sample of them, each counted as often as it is rare. Rows are drawn by their leverage (how much
// of the curvature along its features is a row's own): rare features and long rows are never left out, and a few
// thousand of many similar rows are enough.
//
// Facts used: sampling by leverage keeps the spectrum of a sum of x x' (Cohen, Lee, Musco and others, "Uniform sampling
// for matrix approximation", 2015); here leverage is bounded with the diagonal alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/fields.h"
#include "objective/problem.h"
#include "store/blocks/block_source.h"
#include "store/blocks/row_cache.h"

namespace linblock {

class RowSample {
 public:
  // Beside what RowCache says of itself: what is known of a row, and what the model of a step keeps of it.
  static constexpr uint64_t kBytesPerRow = 104;
  // Where all rows are in memory, and a kept one is only pointed to.
  static constexpr uint64_t kBytesPerListedRow = 160;

  static constexpr float kLeastWeight = 1.0F / 64;

  // What is known of a row when it is met.
  struct Known {
    double margin = 0;
    double alpha = 0;  // in the gradient of the reading
    double centre = 0;
    double centre_if_moved = 0;  // where the centres follow after this reading
    double cost = 0;
    float sign = 0;
    float rarity = 0;  // it is kept while this is below a bound
    float weight = 0;  // its chance to be kept, where the bound is 1

    static void visit_fields(auto& self, auto&& field) {
      field("margin", self.margin);
      field("cost", self.cost);
      field("sign", self.sign);
      field("alpha", self.alpha);
      field("centre", self.centre);
      field("centre_if_moved", self.centre_if_moved);
      field("rarity", self.rarity);
      field("weight", self.weight);
    }
  };

  // `bytes` for all of it; `enough`: nonzeros, more of which are not worth the work.
  RowSample(const Store& store, uint64_t bytes, uint64_t enough, const std::vector<Chunk>* resident);

  // Before a reading.
  void clear();
  // Whether a row with this number between 0 and 1 and this weight is in the sample as it is now.
  static double rarity(double draw, double weight) { return draw / weight; }
  double bound() const { return bound_; }
  bool takes(double rarity) const { return rarity < bound_; }
  // Rows come in one order, whoever met them. A row that does not fit makes the sample thinner.
  void add(const Chunk& chunk, uint32_t chunk_number, uint32_t row, const Known& known, RowBuffer& buffer);

  size_t size() const { return known_.size(); }
  uint64_t nonzeros() const { return nonzeros_; }
  uint32_t nonzeros(size_t number) const { return cache_.nonzeros(number); }
  const Known& known(size_t number) const { return known_[number]; }
  Row row(size_t number, RowBuffer& buffer) const { return cache_.row(number, buffer); }
  // For how many rows it stands.
  double scale(size_t number) const { return 1 / std::min(1.0, double{bound_} * double{known_[number].weight}); }
  // Every row that may move is here.
  bool complete() const { return complete_; }

  void save(FieldWriter& to) const;
  void restore(FieldReader& from);

 private:
  bool has_room_for(uint64_t bytes) const;
  void thin_out();

  RowCache cache_;
  const uint64_t bytes_;
  const uint64_t enough_;
  std::vector<Known> known_;
  uint64_t nonzeros_ = 0;
  float bound_ = 0;
  bool complete_ = true;
};

}  // namespace linblock
