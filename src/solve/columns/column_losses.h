// How a loss is seen along a column: its slopes, its changes, and how rows are moved. What is kept of a row is its
// `state`, 8 bytes for each task: w.x, or, for the logistic loss with stored exponentials, e^(w.x).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/exponential.h"
#include "objective/losses/losses.h"
#include "solve/columns/column_rows.h"

namespace linblock {

// Of `count` entries, add_one(k, sums) each. Two sums of everything, so that an addition need not wait for the last
// one.
template <class AddOne>
[[gnu::always_inline]] inline ColumnDerivatives add_up(size_t count, const AddOne& add_one) {
  ColumnDerivatives even;
  ColumnDerivatives odd;
  size_t k = 0;
  for (; k + 2 <= count; k += 2) {
    add_one(k, even);
    add_one(k + 1, odd);
  }
  if (k < count) add_one(k, even);
  return {even.gradient + odd.gradient, even.curvature + odd.curvature, even.bound + odd.bound,
          std::max(even.largest, odd.largest)};
}

// The state is w.x.
template <SmoothLoss L>
struct PlainColumns {
  static constexpr const char* kName = "plain";
  L loss = {};

  template <class Piece>
  void add_derivatives(const Piece& piece, const TaskRows& rows, ColumnDerivatives& sums) const {
    with_weights(rows, [&](auto weighted) {
      const ColumnDerivatives piece_sums = add_up(piece.count, [&](size_t k, ColumnDerivatives& partial_sums) {
        add_one<decltype(weighted)::value>(piece, k, rows, partial_sums);
      });
      sums.gradient += piece_sums.gradient;
      sums.curvature += piece_sums.curvature;
      sums.bound += piece_sums.bound;
      sums.largest = std::max(sums.largest, piece_sums.largest);
    });
  }

  template <class Piece>
  LossChange loss_change(const Piece& piece, const TaskRows& rows, double step) const {
    LossChange sum;
    for (size_t k = 0; k < piece.count; ++k) {
      const size_t place = piece.place(k);
      const double before = rows.state[place];
      add_change(rows, place, before, before + step * piece.value(k), sum);
    }
    return sum;
  }

  template <class Piece>
  void move(const Piece& piece, const TaskRows& rows, double step) const {
    for (size_t k = 0; k < piece.count; ++k) rows.state[piece.place(k)] += step * piece.value(k);
  }

  CurvatureBound bound() const { return {loss.most_curvature(), L::kCurvatureIsTame}; }

  // -derivative, as add_derivatives sees it: the share of the row's cost that is its dual.
  double share(double state, double sign) const { return -loss.derivatives(sign * state).first; }
  static double state_of(double product) { return product; }
  static double product_of(double state) { return state; }

 protected:
  template <bool kWeighted, class Piece>
  [[gnu::always_inline]] void add_one(const Piece& piece, size_t k, const TaskRows& rows,
                                      ColumnDerivatives& sums) const {
    const size_t place = piece.place(k);
    const Side& side = rows.side(place);
    const double x = piece.value(k);
    const double margin = side.sign * rows.state[place];
    const double pull = rows.template cost<kWeighted>(side, place) * x;
    const auto [derivative, curvature] = loss.derivatives(margin);
    sums.gradient += pull * side.sign * derivative;
    sums.curvature += pull * x * curvature;
    sums.bound += is_seen(margin) ? pull * x : 0;
    if constexpr (L::kCurvatureIsTame) sums.largest = std::max(sums.largest, std::abs(x));
  }

  void add_change(const TaskRows& rows, size_t place, double before, double after, LossChange& sum) const {
    const double sign = rows.side(place).sign;
    if (!is_seen(sign * before)) return;
    const double cost = rows.cost_at(place);
    const double from = cost * loss.value(sign * before);
    const double to = cost * loss.value(sign * after);
    sum.change += to - from;
    sum.size += to + from;
  }
};

// The logistic loss with the fast exponential, many at a time.
struct FastColumns : PlainColumns<Logistic> {
  static constexpr const char* kName = "fast";
  static constexpr size_t kAtOnce = 64;

  template <class Piece>
  void add_derivatives(const Piece& piece, const TaskRows& rows, ColumnDerivatives& sums) const {
    with_weights(rows, [&](auto weighted) {
      std::array<double, kAtOnce> exponential;
      std::array<double, kAtOnce> pull;  // cost * x
      std::array<double, kAtOnce> signed_pull;
      for (size_t begin = 0; begin < piece.count; begin += kAtOnce) {
        const size_t count = std::min(kAtOnce, piece.count - begin);
        for (size_t i = 0; i < count; ++i) {
          const size_t place = piece.place(begin + i);
          const Side& side = rows.side(place);
          exponential[i] = side.sign * rows.state[place];
          pull[i] = rows.template cost<decltype(weighted)::value>(side, place) * piece.value(begin + i);
          if (!is_seen(exponential[i])) pull[i] = 0;
          signed_pull[i] = side.sign * pull[i];
        }
        fast_exponentials(exponential.data(), count);
        for (size_t i = 0; i < count; ++i) exponential[i] = 1 / (1 + exponential[i]);
        for (size_t i = 0; i < count; ++i) {
          const double share = exponential[i];
          const double weight = pull[i] * piece.value(begin + i);
          sums.largest = std::max(sums.largest, std::abs(piece.value(begin + i)));
          sums.gradient -= signed_pull[i] * share;
          sums.curvature += weight * (share * (1 - share));
          sums.bound += weight;
        }
      }
    });
  }

  double share(double state, double sign) const { return 1 / (1 + fast_exponential(sign * state)); }
};

// The logistic loss, the state e^(w.x): of a column of equal values one exponential moves all rows (section 6.2 of the
// paper). Nothing is kept beside it, since w.x is its logarithm: 8 bytes a row as before, and one place in memory to
// visit, not two. A product of factors is as exact as the sum of their logarithms, so it drifts no faster than w.x
// does.
struct StoredColumns {
  static constexpr const char* kName = "stored";
  // Within these no step of up to kLongestStep can reach infinity or zero unseen.
  static constexpr double kMost = 1e280;
  static constexpr double kLeast = 1e-280;
  static constexpr double kLongestStep = 40;
  Logistic loss = {};

  CurvatureBound bound() const { return {loss.most_curvature(), Logistic::kCurvatureIsTame}; }

  template <class Piece>
  void add_derivatives(const Piece& piece, const TaskRows& rows, ColumnDerivatives& sums) const {
    with_weights(rows, [&](auto weighted) {
      const ColumnDerivatives piece_sums = add_up(piece.count, [&](size_t k, ColumnDerivatives& partial_sums) {
        add_one<decltype(weighted)::value>(piece, k, rows, partial_sums);
      });
      // Of equal values x comes in once, at the end.
      const double x = Piece::kEqual && piece.count > 0 ? piece.value(0) : 1;
      sums.gradient += x * piece_sums.gradient;
      sums.curvature += x * x * piece_sums.curvature;
      sums.bound += x * x * piece_sums.bound;
      sums.largest = std::max({sums.largest, Piece::kEqual ? std::abs(x) : 0, piece_sums.largest});
    });
  }

  template <class Piece>
  LossChange loss_change(const Piece& piece, const TaskRows& rows, double step) const {
    LossChange sum;
    for (size_t k = 0; k < piece.count; ++k) {
      const size_t place = piece.place(k);
      const double sign = rows.side(place).sign;
      const double before = sign * std::log(rows.state[place]);
      if (!is_seen(before)) continue;
      const double cost = rows.cost_at(place);
      const double from = cost * loss.value(before);
      const double to = cost * loss.value(before + sign * step * piece.value(k));
      sum.change += to - from;
      sum.size += to + from;
    }
    return sum;
  }

  // How many entries were moved, from `first` on: less than all where the next one would go too far for an exponential.
  template <class Piece>
  size_t move_from(size_t first, const Piece& piece, const TaskRows& rows, double step) const {
    const auto move_one = [&](size_t k, double factor) {
      double& state = rows.state[piece.place(k)];
      const double next = state * factor;
      if ((next > kMost && next < std::numeric_limits<double>::infinity()) || (next < kLeast && next > 0)) return false;
      state = next;
      return true;
    };
    if constexpr (Piece::kEqual) {
      if (std::abs(step * piece.value(0)) > kLongestStep) return first;
      const double factor = std::exp(step * piece.value(0));
      size_t k = first;
      for (; k + 4 <= piece.count; k += 4)
        if (!move_four(k, factor, piece, rows)) break;
      for (; k < piece.count; ++k)
        if (!move_one(k, factor)) return k;
    } else {
      for (size_t k = first; k < piece.count; ++k) {
        const double by = step * piece.value(k);
        if (std::abs(by) > kLongestStep || !move_one(k, std::exp(by))) return k;
      }
    }
    return piece.count;
  }

  double share(double state, double sign) const {
    const double positive_share = 1 / (1 + state);
    return sign > 0 ? positive_share : 1 - positive_share;
  }
  static double state_of(double product) { return std::exp(product); }
  static double product_of(double state) { return std::log(state); }

 private:
  // All of them, or none where one would go too far or is not seen.
  template <class Piece>
  [[gnu::always_inline]] static bool move_four(size_t k, double factor, const Piece& piece, const TaskRows& rows) {
    std::array<double, 4> next;
    bool good = true;
    for (size_t i = 0; i < 4; ++i) {
      next[i] = rows.state[piece.place(k + i)] * factor;
      good &= next[i] < kMost && next[i] > kLeast;
    }
    if (!good) return false;
    for (size_t i = 0; i < 4; ++i) rows.state[piece.place(k + i)] = next[i];
    return true;
  }

  template <bool kWeighted, class Piece>
  [[gnu::always_inline]] void add_one(const Piece& piece, size_t k, const TaskRows& rows,
                                      ColumnDerivatives& sums) const {
    const size_t place = piece.place(k);
    const Side& side = rows.side(place);
    const double x = Piece::kEqual ? 1 : piece.value(k);
    const double pull = rows.template cost<kWeighted>(side, place) * x;
    const double state = rows.state[place];
    const double share = 1 / (1 + state);                     // the dual's, where y = 1; else what is left
    sums.gradient += pull * (0.5 - 0.5 * side.sign - share);  // without a branch that cannot be foretold
    sums.curvature += pull * x * (share * (1 - share));
    sums.bound += state > 0 && state < std::numeric_limits<double>::infinity() ? pull * x : 0;
    if constexpr (!Piece::kEqual) sums.largest = std::max(sums.largest, std::abs(x));
  }
};

// How the states of a loss can be kept: its products w.x first, which every smooth loss has.
template <class L>
struct ColumnKinds {
  using Kinds = std::tuple<>;
};
template <SmoothLoss L>
struct ColumnKinds<L> {
  using Kinds = std::tuple<PlainColumns<L>>;
};
template <>
struct ColumnKinds<Logistic> {
  using Kinds = std::tuple<PlainColumns<Logistic>, FastColumns, StoredColumns>;
};

// All kinds of all losses, as one variant.
template <class>
struct JoinKinds;
template <class... L>
struct JoinKinds<std::variant<L...>> {
  template <class... Kind>
  static std::variant<Kind...> as_variant(std::type_identity<std::tuple<Kind...>>);
  using All = decltype(std::tuple_cat(std::declval<typename ColumnKinds<L>::Kinds>()...));
  using Any = decltype(as_variant(std::type_identity<All>{}));
};
using AnyColumns = JoinKinds<AnyLoss>::Any;

}  // namespace linblock
