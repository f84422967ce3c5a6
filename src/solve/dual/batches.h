// Steps of dual coordinate descent in batches, on all threads, with the same bits for any number of them.
//
// A batch of rows has its margins at the same weights. Then each row has its step, and all steps are added to the
// weights in the order of the rows. Features are cut into ranges, one for each thread that has a core. A range's owner
// adds the steps of the last batch to its part of the weights and makes its part of the next batch's margins, so
// weights stay in the cache of one core. Products are rounded to a grid (SumGrid): the parts of a margin add up to the
// same double wherever the cuts are.
//
// The most frequent features, which most rows share, would make steps of a batch get in each other's way. They are the
// head: one thread takes them along from row to row, so that they are never behind.
//
// While the steps are added, each row's margin is made once more, as it is in the sequence of steps. It tells exactly
// what the batch has added to the dual, and how much its steps interfere. If the dual has fallen, or nearly so, the
// steps are shortened to where it has risen.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dot.h"
#include "base/team.h"
#include "objective/problem.h"
#include "solve/dual/batch_size.h"
#include "store/blocks/row_cache.h"

namespace linblock {

class Batches {
 public:
  static constexpr size_t kMostRows = BatchSize::kMost;
  static constexpr size_t kMostNonzeros = 32768;  // of a batch, unless its first row has more

  struct Item {
    Row row = {};
    RowCache::Origin origin = {};
    double norm2 = 0;         // |x|^2, with the bias
    double head_product = 0;  // w.x of the head and the bias, as the rows before it in the batch left them
    double margin = 0;
    // What step() decides.
    double sign = 1;
    double cost = 0;
    double change = 0;  // of alpha
    double next = 0;    // alpha then
  };

  // What a batch did.
  struct Outcome {
    double gain = 0;          // of the dual
    double expected = 0;      // if every row had been alone
    double interference = 1;  // see batch_size.h
    bool moved = false;
  };

  // `rows_to_remember`: so many rows stay in memory, decoded, and what is found out about them is kept.
  Batches(const Problem& problem, std::vector<float>& weights, const Team& team, size_t head,
          size_t rows_to_remember = 0);

  // What it may hold, for as many threads as are planned for.
  static uint64_t memory_bytes();
  static constexpr uint64_t kBytesPerRow = sizeof(double) + sizeof(uint32_t) * (kMostOwners + 1);  // remembered

  // Goes through a list, which knows its rows and what their steps are:
  //   size(), nonzeros(i)                   of row i
  //   row(i, buffer), origin(i)             likewise, on several threads
  //   row_number(item)                      its number among all rows
  //   prefetch(item)                        what step() needs of it
  //   batch_rows()                          rows of the next batch
  //   step(i, item)                         in order, on one thread: sets sign, cost, change and next from the margin
  //   finish(item, margin)                  in order: the step is made; `margin` is y w.x just before it. The gain.
  //   value_change(item, share)             of the row's own part of the dual, if a share of the step is made
  //   shortened(item, share)                item.next for a share of the step that finish() has made
  //   norm_bound()                          |w| is below it, before the steps that finish() has not seen
  //   end_batch(outcome, rows)
  //   must_leave()                          false is returned then, with all steps made that were decided
  template <class List>
  bool run(List& list);

 private:
  struct Batch {
    size_t first = 0;  // its place in the list
    size_t size = 0;
    size_t nonzeros = 0;
    std::vector<Item> items;
    // What owners need of a row, apart: it travels to all of them.
    struct Place {
      const uint32_t* index = nullptr;
      const float* value = nullptr;
    };
    struct Step {
      float change = 0;  // of the weights for each unit of a value
      int exponent = 0;  // |x| is below 2^exponent
    };
    std::vector<Place> places;
    std::vector<Step> steps;
    std::vector<uint32_t> cuts;  // by owner and row: where its range begins in the row; behind the last, the rows' ends
    std::vector<uint32_t> offsets;   // of each row in the memory below
    std::vector<uint32_t> index;     // of rows that are held encoded
    std::vector<float> value;        // likewise
    std::vector<float> head_before;  // the head and the bias before its steps
  };

  static constexpr size_t kRowsPerPiece = 32;
  static constexpr size_t kNonzerosForThreads = 2048;  // a batch with fewer is not worth a second thread
  static constexpr size_t kPartsPerLine = 8;
  static constexpr size_t kAhead = 8;               // rows
  static constexpr size_t kSample = 32768;          // nonzeros
  static constexpr double kLeastShareOfGain = 0.1;  // of what was expected; else the steps are shortened

  template <class List>
  void form(List& list, size_t first, Batch& batch) const;
  template <class List>
  void prepare(const List& list, Batch& batch, size_t begin, size_t end);
  template <class List>
  void steps(List& list, Batch& batch);
  template <class List>
  Outcome finish(List& list, Batch& batch);
  template <class List>
  void shorten(List& list, Batch& batch, const Outcome& outcome);

  void take(const RowBuffer& buffer, size_t row_number, size_t number, Batch& batch);
  void find_cuts(const Row& row, std::array<uint32_t, kMostOwners + 1>& cuts) const;
  template <class List>
  void cut_features(const List& list);
  void set_bounds(std::vector<uint32_t> seen);
  // The two halves of an owner's work.
  void add_steps(const Batch& batch, size_t owner);
  void make_margins(const Batch& batch, size_t owner);
  void on_ranges(const Batch* steps, const Batch* margins);
  static void prefetch(const Batch::Place& row, size_t begin, size_t end) {
    constexpr size_t kPerLine = 16;  // numbers
    for (size_t k = begin; k < end; k += kPerLine) {
      __builtin_prefetch(row.index + k);
      __builtin_prefetch(row.value + k);
    }
  }
  void prefetch_parts(const std::vector<double>& parts, size_t number) const {
    if (number >= kMostRows) return;
    for (size_t owner = 0; owner < owners_; ++owner) __builtin_prefetch(&parts[owner * kMostRows + number]);
  }
  // A row's margin in the tail, of the parts that the owners made.
  double sum_of(const std::vector<double>& parts, size_t number) const;
  // A step too small for a float is none.
  static void set_step(Batch& batch, size_t number) {
    Item& item = batch.items[number];
    batch.steps[number].change = static_cast<float>(item.sign * item.change);
    if (batch.steps[number].change == 0) item.change = 0;
  }
  double head_product(const Batch& batch, size_t number) const;
  void move_head(const Batch& batch, size_t number);
  void set_exponent(double norm_bound) { exponent_ = exponent_above(norm_bound); }
  double squared_head_change(const Batch& batch) const;
  double squared_head(const Batch& batch, size_t number) const;
  template <class Work, class Lead>
  void share_out(bool parallel, size_t count, const Work& work, const Lead& lead) const {
    if (parallel) return team_.for_each(count, work, lead);
    lead();
    for (size_t i = 0; i < count; ++i) work(i);
  }

  const double bias_;  // below 0: none
  std::vector<float>& weights_;
  Team team_;
  const size_t head_;
  const size_t owners_;
  std::vector<uint32_t> bounds_;  // of the ranges, from the head on; empty until rows are known
  int exponent_ = 0;              // |w| is below 2^exponent_ in the phase in work
  Batch batches_[3];
  std::vector<double> norms_;       // |x|^2 of the rows that were in a batch, by their number; empty: not remembered
  std::vector<uint32_t> all_cuts_;  // likewise
  std::vector<double> margins_;     // by owner and row, of the batch whose margins are made
  std::vector<double> later_;       // likewise, of the batch whose steps are added
};

template <class List>
void Batches::form(List& list, size_t first, Batch& batch) const {
  batch.first = first;
  batch.size = batch.nonzeros = 0;
  const size_t most = std::min<size_t>(std::min<size_t>(list.batch_rows(), kMostRows), list.size() - first);
  while (batch.size < most) {
    const size_t nonzeros = list.nonzeros(first + batch.size);
    if (batch.size > 0 && batch.nonzeros + nonzeros > kMostNonzeros) break;
    batch.offsets[batch.size++] = static_cast<uint32_t>(batch.nonzeros);
    batch.nonzeros += nonzeros;
  }
  // For rows that are held encoded. A single long row may need more than is usual.
  if (batch.index.size() < batch.nonzeros) {
    batch.index.resize(std::max(kMostNonzeros, batch.nonzeros));
    batch.value.resize(batch.index.size());
  }
}

// By the features of some rows.
template <class List>
void Batches::cut_features(const List& list) {
  std::vector<uint32_t> seen;
  RowBuffer buffer;
  for (size_t i = 0; i < list.size() && seen.size() < kSample && owners_ > 1; ++i)
    for (const uint32_t index : list.row(i, buffer).index)
      if (index >= head_) seen.push_back(index);
  set_bounds(std::move(seen));
}

template <class List>
void Batches::prepare(const List& list, Batch& batch, size_t begin, size_t end) {
  RowBuffer buffer;
  for (size_t i = begin; i < end; ++i) {
    Item& item = batch.items[i];
    item = {.row = list.row(batch.first + i, buffer), .origin = list.origin(batch.first + i)};
    take(buffer, norms_.empty() ? 0 : list.row_number(item), i, batch);
  }
}

template <class List>
void Batches::steps(List& list, Batch& batch) {
  std::copy_n(weights_.begin(), head_, batch.head_before.begin());
  if (bias_ >= 0) batch.head_before[head_] = weights_.back();
  double lengths = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    if (i + kAhead < batch.size) {
      list.prefetch(batch.items[i + kAhead]);
      prefetch(batch.places[i + kAhead], 0, batch.cuts[i + kAhead]);
    }
    if (i % kPartsPerLine == 0) prefetch_parts(margins_, i + 2 * kPartsPerLine);
    Item& item = batch.items[i];
    item.head_product = head_product(batch, i);
    item.margin = sum_of(margins_, i) + item.head_product;  // without its sign
    list.step(batch.first + i, item);
    set_step(batch, i);
    if (item.change == 0) continue;
    move_head(batch, i);
    lengths += std::abs(item.change) * std::sqrt(item.norm2);
  }
  set_exponent(list.norm_bound() + 1.01 * lengths);
}

template <class List>
Batches::Outcome Batches::finish(List& list, Batch& batch) {
  Outcome outcome;
  double squares = 0;
  double together = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    if (i % kPartsPerLine == 0) prefetch_parts(later_, i + 2 * kPartsPerLine);
    Item& item = batch.items[i];
    if (item.change == 0) continue;
    const double margin = item.sign * (sum_of(later_, i) + item.head_product);
    together += item.change * (margin - item.margin);
    squares += item.change * item.change * item.norm2;
    outcome.gain += list.finish(item, margin);
    outcome.moved = true;
  }
  outcome.expected = outcome.gain + together;
  if (squares > 0) outcome.interference = 1 + 2 * together / squares;
  return outcome;
}

// The dual along the batch's steps, D(t) = sum of the rows' own parts - t u.w - t^2 / 2 |u|^2, is known for every t.
// The best of some shares is taken, and what is too much is taken back as a batch of its own.
template <class List>
void Batches::shorten(List& list, Batch& batch, const Outcome& outcome) {
  double values = 0;
  double products = 0;
  double head_squares = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    const Item& item = batch.items[i];
    if (item.change == 0) continue;
    values += list.value_change(item, 1);
    products += item.change * item.margin;
    head_squares += item.change * item.change * squared_head(batch, i);
  }
  // Margins know of the head's steps before them; u.w is of the weights before the batch.
  const double slope = products - 0.5 * squared_head_change(batch) + 0.5 * head_squares;
  const double square = std::max(0.0, 2 * (values - outcome.gain - slope));
  double best_share = 0;
  double best = 0;
  double share = 1;
  for (int halvings = 0; halvings < 10; ++halvings) {
    share /= 2;
    double dual = -share * slope - 0.5 * share * share * square;
    for (size_t i = 0; i < batch.size; ++i)
      if (batch.items[i].change != 0) dual += list.value_change(batch.items[i], share);
    if (!(dual > best)) {
      if (best > 0) break;
      continue;
    }
    best = dual;
    best_share = share;
  }
  double lengths = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    Item& item = batch.items[i];
    if (item.change == 0) continue;
    const double made = item.next;
    item.next = list.shortened(item, best_share);
    item.change = item.next - made;
    set_step(batch, i);
    lengths += std::abs(item.change) * std::sqrt(item.norm2);
    item.head_product = head_product(batch, i);
    move_head(batch, i);
  }
  set_exponent(list.norm_bound() + 1.01 * lengths);
  on_ranges(&batch, nullptr);
  finish(list, batch);
}

template <class List>
bool Batches::run(List& list) {
  Batch* earlier = nullptr;  // its steps are decided
  Batch* now = &batches_[0];
  Batch* coming = &batches_[1];
  Batch* unused = &batches_[2];
  const auto pieces_of = [](const Batch& batch) { return (batch.size + kRowsPerPiece - 1) / kRowsPerPiece; };
  const auto prepare_piece = [&](Batch& batch, size_t piece) {
    prepare(list, batch, piece * kRowsPerPiece, std::min(batch.size, (piece + 1) * kRowsPerPiece));
  };
  if (list.size() == 0) return true;
  if (bounds_.empty()) cut_features(list);
  form(list, 0, *now);
  share_out(
      now->nonzeros >= kNonzerosForThreads, pieces_of(*now), [&](size_t piece) { prepare_piece(*now, piece); }, [] {});
  set_exponent(list.norm_bound());
  bool leaves = false;
  while (now->size > 0 || earlier != nullptr) {
    on_ranges(earlier, now->size > 0 ? now : nullptr);
    coming->size = coming->nonzeros = 0;
    if (now->size > 0 && !leaves) form(list, now->first + now->size, *coming);
    Outcome outcome;
    bool too_far = false;
    const auto lead = [&] {
      if (earlier != nullptr) {
        outcome = finish(list, *earlier);
        too_far = outcome.moved && !(outcome.gain >= kLeastShareOfGain * outcome.expected);
        list.end_batch(outcome, earlier->size);
      }
      if (!too_far && now->size > 0) steps(list, *now);
    };
    share_out(
        coming->nonzeros >= kNonzerosForThreads, pieces_of(*coming),
        [&](size_t piece) { prepare_piece(*coming, piece); }, lead);
    if (too_far) {
      shorten(list, *earlier, outcome);
      if (now->size > 0) {
        set_exponent(list.norm_bound());
        on_ranges(nullptr, now);
        steps(list, *now);
      }
    }
    leaves = leaves || list.must_leave();
    Batch* const done = earlier == nullptr ? unused : earlier;
    earlier = now->size > 0 ? now : nullptr;
    now = coming;
    coming = done;
  }
  return !leaves;
}

}  // namespace linblock
