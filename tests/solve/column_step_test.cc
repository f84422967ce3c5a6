#include "solve/columns/column_step.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "solve/columns/column_losses.h"

namespace linblock {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A column against rows of three classes, some of which a task does not see.
struct Rows {
  explicit Rows(uint32_t seed, double largest = 2) : random(seed) {
    std::uniform_real_distribution<double> products(-largest, largest);
    std::normal_distribution<float> normal;
    for (uint32_t place = 0; place < 60; ++place) {
      classes.push_back(static_cast<uint16_t>(random() % 3));
      weights.push_back(0.25F * static_cast<float>(1 + random() % 8));
      states.push_back(random() % 5 == 0 ? sides[classes.back()].sign * kInfinity : products(random));
      if (random() % 3 == 0) continue;
      index.push_back(place);
      values.push_back(normal(random));
    }
  }

  TaskRows view() { return {states.data(), classes.data(), sides.data(), weights.data(), states.size()}; }
  MixedPiece piece() const { return {index.data(), values.data(), index.size()}; }
  EqualPiece equal_piece() const { return {index.data(), 0.7, index.size()}; }
  BiasPiece bias() const { return {1.5, states.size()}; }

  std::mt19937 random;
  std::vector<Side> sides = {{1, 0.5}, {-1, 2}, {-1, 0.1}};
  std::vector<uint16_t> classes;
  std::vector<float> weights;
  std::vector<double> states;  // products; as_stored() makes exponentials of them
  std::vector<uint32_t> index;
  std::vector<float> values;
};

template <class Columns>
void keep_as(const Columns& columns, Rows& rows) {
  for (double& state : rows.states) state = columns.state_of(state);
}

// Slow and plain: the losses of all rows for a step of t along the column.
template <class Loss, class Piece>
double losses_at(const Loss& loss, const Rows& rows, const Piece& piece, double step) {
  double sum = 0;
  for (size_t k = 0; k < piece.count; ++k) {
    const size_t place = piece.place(k);
    const Side& side = rows.sides[rows.classes[place]];
    if (std::isinf(rows.states[place])) continue;
    sum +=
        side.cost * double{rows.weights[place]} * loss.value(side.sign * (rows.states[place] + step * piece.value(k)));
  }
  return sum;
}

template <class Columns>
class AnyColumnsTest : public testing::Test {};
using AllColumns = testing::Types<PlainColumns<SquaredHinge>, PlainColumns<Logistic>, FastColumns, StoredColumns>;
TYPED_TEST_SUITE(AnyColumnsTest, AllColumns);

template <class Columns, class Piece>
void expect_true_derivatives(uint32_t seed, Piece (Rows::*piece_of)() const) {
  const Columns columns{};
  const Rows plain(seed);
  Rows rows(seed);
  keep_as(columns, rows);
  const auto piece = (plain.*piece_of)();
  ColumnDerivatives sums;
  columns.add_derivatives(piece, rows.view(), sums);
  const double h = 1e-5;
  const auto at = [&](double step) { return losses_at(columns.loss, plain, piece, step); };
  EXPECT_NEAR(sums.gradient, (at(h) - at(-h)) / (2 * h), 1e-5 * (1 + std::abs(sums.gradient)));
  // No row is so near the corner of the squared hinge that h would reach it.
  EXPECT_NEAR(sums.curvature, (at(h) - 2 * at(0) + at(-h)) / (h * h), 2e-4 * (1 + sums.curvature));
  double bound = 0;
  for (size_t k = 0; k < piece.count; ++k) {
    const size_t place = piece.place(k);
    if (!std::isinf(plain.states[place]))
      bound += plain.sides[plain.classes[place]].cost * double{plain.weights[place]} * piece.value(k) * piece.value(k);
  }
  EXPECT_NEAR(sums.bound, bound, 1e-12 * (1 + bound));
  for (const double step : {0.3, -1.7}) {
    EXPECT_NEAR(columns.loss_change(piece, rows.view(), step).change, at(step) - at(0), 1e-10 * (at(step) + at(0)));
  }
}

TYPED_TEST(AnyColumnsTest, SlopesAndChangesAreThoseOfTheLosses) {
  for (uint32_t seed = 1; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    expect_true_derivatives<TypeParam>(seed, &Rows::piece);
    expect_true_derivatives<TypeParam>(seed, &Rows::equal_piece);
    expect_true_derivatives<TypeParam>(seed, &Rows::bias);
  }
}

TYPED_TEST(AnyColumnsTest, SharesAreTheDerivative) {
  const TypeParam columns{};
  for (const double product : {-30.0, -2.0, 0.0, 0.5, 3.0, 40.0})
    for (const double sign : {1.0, -1.0}) {
      const double share = columns.share(columns.state_of(product), sign);
      EXPECT_NEAR(share, -columns.loss.derivative(sign * product), 1e-7 * (1e-3 + share)) << sign << " " << product;
    }
}

// Whatever is accepted without a look passes the full test of equation 12, and so does what is accepted with one.
TYPED_TEST(AnyColumnsTest, EveryStepDecreasesEnough) {
  const TypeParam columns{};
  int vouched = 0;
  int looked = 0;
  int shortened = 0;
  for (uint32_t seed = 1; seed < 3000; ++seed) {
    const double largest = seed % 3 == 0 ? 30 : 3;
    const Rows plain(seed, largest);
    Rows rows(seed, largest);
    // Columns of a few rows far from the margin are where Newton's method goes too far.
    if (seed % 2 == 0)
      for (auto* some : {&rows, const_cast<Rows*>(&plain)})
        some->index.resize(1 + seed % 3), some->values.resize(1 + seed % 3);
    keep_as(columns, rows);
    std::uniform_real_distribution<double> weights(-10, 10);
    const double weight = seed % 5 == 0 ? 20 * weights(rows.random) : weights(rows.random);
    const MixedPiece piece = plain.piece();
    ColumnDerivatives sums;
    columns.add_derivatives(piece, rows.view(), sums);
    const auto change_of = [&](double step) { return columns.loss_change(piece, rows.view(), step); };
    const ColumnStep found = newton_step(weight, sums, columns.bound(), change_of);
    const auto objective = [&](double step) {
      return 0.5 * (weight + step) * (weight + step) + losses_at(columns.loss, plain, piece, step);
    };
    const double before = objective(0);
    EXPECT_LE(objective(found.step) - before, -kSufficientDecrease * found.step * found.step + 1e-9 * before) << seed;
    EXPECT_EQ(found.full, found.step == -(weight + sums.gradient) / (1 + sums.curvature)) << seed;
    vouched += found.saved > 0 ? 1 : 0;
    looked += found.evaluations > 0 ? 1 : 0;
    shortened += found.full ? 0 : 1;
  }
  // All of it happens.
  EXPECT_GT(vouched, 100);
  EXPECT_GT(looked, 10);
  EXPECT_GT(shortened, 3);
}

TYPED_TEST(AnyColumnsTest, MovedRowsAreWhereTheStepLed) {
  const TypeParam columns{};
  Rows rows(7);
  const Rows plain(7);
  keep_as(columns, rows);
  const auto move = [&](const auto& piece, double step) {
    if constexpr (std::is_same_v<TypeParam, StoredColumns>)
      EXPECT_EQ(columns.move_from(0, piece, rows.view(), step), piece.count);
    else
      columns.move(piece, rows.view(), step);
  };
  std::vector<double> expected = plain.states;
  const auto expect = [&](const auto& piece, double step) {
    move(piece, step);
    for (size_t k = 0; k < piece.count; ++k) expected[piece.place(k)] += step * piece.value(k);
  };
  expect(plain.piece(), 0.4);
  expect(plain.equal_piece(), -2.5);
  expect(plain.bias(), 1.25);
  for (size_t place = 0; place < expected.size(); ++place) {
    const double found = columns.product_of(rows.states[place]);
    if (std::isinf(expected[place]))
      EXPECT_EQ(found, expected[place]);
    else
      EXPECT_NEAR(found, expected[place], 1e-13 * (1 + std::abs(expected[place])));
  }
}

TEST(StoredColumns, StopBeforeAnExponentialIsTooLarge) {
  const StoredColumns columns;
  Rows rows(3);
  rows.states.assign(rows.states.size(), 0);
  rows.states[rows.index[4]] = 630;
  rows.states[rows.index[5]] = rows.sides[rows.classes[rows.index[5]]].sign * kInfinity;
  keep_as(columns, rows);
  EXPECT_EQ(columns.move_from(0, rows.equal_piece(), rows.view(), 30 / 0.7), 4U);
  // The entries before it are moved, it is not.
  EXPECT_NEAR(columns.product_of(rows.states[rows.index[3]]), 30, 1e-12);
  EXPECT_NEAR(columns.product_of(rows.states[rows.index[4]]), 630, 1e-10);
  // A row that is not seen stands in nobody's way, and stays unseen.
  const double unseen = rows.states[rows.index[5]];
  EXPECT_EQ(columns.move_from(5, rows.equal_piece(), rows.view(), -1), rows.index.size());
  EXPECT_EQ(rows.states[rows.index[5]], unseen);
  // A single step of more than an exponential should bear moves nothing.
  EXPECT_EQ(columns.move_from(0, rows.equal_piece(), rows.view(), 60 / 0.7), 0U);
}

// What e^a integrated twice makes, and never less.
TEST(NewtonStep, GrowthIsABound) {
  for (double a = 1e-9; a < 30; a *= 1.1) {
    double exact = 0;
    double term = 0.5;
    for (int n = 3; n < 200; ++n) {
      exact += term;
      term *= a / n;
    }
    EXPECT_GE(growth(a), exact * (1 - 1e-12)) << a;
    EXPECT_LE(growth(a), exact * 1.001) << a;
  }
  EXPECT_EQ(growth(0), 0.5);
  EXPECT_EQ(growth(1e6), kInfinity);
}

TEST(NewtonStep, StaysWhereTheSlopeIsZeroOrNoNumber) {
  const auto none = [](double) { return LossChange{}; };
  EXPECT_EQ(newton_step(0, {}, {}, none).step, 0);
  EXPECT_EQ(newton_step(1, {.gradient = -1}, {}, none).step, 0);
  EXPECT_EQ(newton_step(1, {.gradient = std::nan("")}, {}, none).step, 0);
  EXPECT_EQ(newton_step(1, {.gradient = 1, .curvature = kInfinity, .bound = kInfinity}, {}, none).step, 0);
}

}  // namespace
}  // namespace linblock
