// In which order the pages of an index are looked at for rows near the decision boundary. The order decides how soon
// such rows are found, and nothing else: what is found is checked row by row, and a thorough search passes every page.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "base/random.h"
#include "store/index/page_cache.h"

namespace linblock {

// What is searched for.
struct PageQuery {
  std::span<const double> weights = {};  // with the bias last, where there is one
  double bias = -1;
  uint64_t turn = 0;      // random choices depend on it
  bool thorough = false;  // every page that is due, not only those that promise something
  std::function<bool(uint32_t page)> is_due = {};
  // From what a node knows of a page below it: no row there can matter. `score`: of the pivot, w.x.
  std::function<bool(uint32_t page, const MetricForest::Child& child, double score)> can_be_left = {};
};

class PageSearch {
 public:
  PageSearch() = default;
  virtual ~PageSearch() = default;
  PageSearch(const PageSearch&) = delete;
  PageSearch& operator=(const PageSearch&) = delete;

  virtual void begin(const PageQuery& query) = 0;
  // The next page; none: the search is over.
  virtual std::optional<uint32_t> next() = 0;
  // What the last page had of rows that were searched for.
  virtual void saw(size_t rows) = 0;
};

// The trees in random order, each best bin first with a queue of its own (paper, section 4.1): a partition is ranked by
// its nearest boundary to the query, the hyperplane half-way between its pivot and the pivot that is closest.
class ForestSearch : public PageSearch {
 public:
  ForestSearch(const MetricForest& forest, PageCache& cache, uint64_t seed)
      : forest_(forest), cache_(cache), seed_(seed) {}

  void begin(const PageQuery& query) override;
  std::optional<uint32_t> next() override;
  void saw(size_t rows) override { barren_ = rows == 0 ? barren_ + 1 : 0; }

 private:
  struct Bin {
    double rank = 0;
    uint32_t number = 0;
    bool is_page = false;
    // The best first; equal ones by their numbers, so that the order is always the same.
    bool operator<(const Bin& other) const {
      return rank != other.rank ? rank > other.rank : is_page != other.is_page ? other.is_page : number > other.number;
    }
  };

  bool enter_next_tree();
  void open(uint32_t node, double rank);

  const MetricForest& forest_;
  PageCache& cache_;
  const uint64_t seed_;
  PageQuery query_;
  double weights2_ = 0;
  std::vector<uint32_t> trees_;  // still to be entered, the next one last
  const MetricForest::Tree* tree_ = nullptr;
  std::vector<uint8_t> due_nodes_;  // of this tree
  std::priority_queue<Bin> bins_;
  size_t barren_ = 0;    // pages without a find since the last one with
  size_t patience_ = 0;  // with so many
};

// Page after page as they lie, from where the last search ended: what is left where an index knows no better.
class ScanSearch : public PageSearch {
 public:
  explicit ScanSearch(size_t pages) : pages_(pages) {}

  void begin(const PageQuery& query) override;
  std::optional<uint32_t> next() override;
  void saw(size_t) override {}

  size_t position() const { return at_; }
  void set_position(size_t page) { at_ = page; }

 private:
  const size_t pages_;
  PageQuery query_;
  size_t at_ = 0;
  size_t left_ = 0;
};

// Pages drawn at random: what an index must be better than.
class RandomSearch : public PageSearch {
 public:
  RandomSearch(size_t pages, uint64_t seed) : pages_(pages), random_(seed) {}

  void begin(const PageQuery& query) override { query_ = query; }
  std::optional<uint32_t> next() override;
  void saw(size_t) override {}

 private:
  const size_t pages_;
  Random random_;
  PageQuery query_;
};

}  // namespace linblock
