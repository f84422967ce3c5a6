// A start for losses that are not convex: the convex optimum of some random rows, which are gathered from a few chunks
// and solved in memory by dual coordinate descent.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "objective/problem.h"
#include "store/blocks/block_source.h"

namespace linblock {

class StartSample {
 public:
  // 2% of the rows, and 10,000 at most, as the paper has it; but a thousand of a small store, since a start that has
  // not seen both sides calls all rows of the other outliers for ever.
  static size_t usual_rows(const StoreInfo& info);

  // Reads so many rows, or all there are, or as many as fit `bytes`. They lie in a few random chunks.
  StartSample(const Problem& problem, size_t rows, uint64_t bytes, uint64_t seed);

  size_t size() const { return rows_.size(); }
  const ReadCosts& costs() const { return costs_; }

  // A row with a say in the start, and where it stands in the store.
  struct Support {
    RowCache::Origin origin = {};
    uint64_t id = 0;
    double alpha = 0;
  };
  struct StartPoint {
    std::vector<float> weights = {};    // the sum of alpha y x
    std::vector<Support> support = {};  // by origin
  };
  // Of the sampled rows that the task learns from, to about this relative gap; as far as it has come where it is told
  // to stop. May be called on several threads.
  StartPoint solve(const Task& task, double tolerance, const std::atomic<bool>* stop = nullptr) const;

 private:
  struct Sampled {
    RowCache::Origin origin = {};
    uint64_t id = 0;
    int32_t label = 0;
    float weight = 1;
    size_t begin = 0;  // of its nonzeros
    size_t end = 0;
  };
  Row row(size_t number) const;
  // So many rows of a chunk. False: there is no room for more.
  bool take(const Chunk& chunk, uint32_t number, size_t count, uint64_t bytes);
  template <Loss L>
  StartPoint solve_with(const L& loss, const Task& task, double tolerance, const std::atomic<bool>* stop) const;

  const Problem& problem_;
  const uint64_t seed_;
  ReadCosts costs_;
  std::vector<Sampled> rows_;
  std::vector<uint32_t> index_;
  std::vector<float> value_;
};

}  // namespace linblock
