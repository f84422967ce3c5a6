// Each loss against the definitions: its derivative, its conjugate, and the best step along one dual coordinate.
#include <gtest/gtest.h>

#include <vector>

#include "objective/losses/losses.h"
#include "support/errors.h"

namespace linblock {
namespace {

using test::fails_with;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename L>
class EachLoss : public testing::Test {
 protected:
  const L loss = {};

  // From 0 to the largest, or to many times what any margin here asks for.
  std::vector<double> alphas(double cost) const {
    const double most = std::min(loss.largest_alpha(cost), 100 * cost);
    std::vector<double> all;
    for (int i = 0; i <= 40; ++i) all.push_back(most * i / 40);
    return all;
  }
};

using AllLosses = testing::Types<Hinge, SquaredHinge, Logistic, HuberHinge>;
TYPED_TEST_SUITE(EachLoss, AllLosses);

std::vector<double> margins() {
  std::vector<double> all;
  for (double margin = -30; margin <= 30; margin += 0.37) all.push_back(margin);
  return all;
}

TYPED_TEST(EachLoss, DerivativeIsThatOfTheValue) {
  constexpr double kStep = 1e-5;
  for (const double margin : margins()) {
    if (std::abs(margin - 1) < 2 * kStep) continue;  // the corner
    const double slope = (this->loss.value(margin + kStep) - this->loss.value(margin - kStep)) / (2 * kStep);
    EXPECT_NEAR(this->loss.derivative(margin), slope, 1e-8 * (1 + std::abs(slope))) << "margin " << margin;
  }
}

// Fenchel and Young: what makes every dual value a bound.
TYPED_TEST(EachLoss, HasAValueAtTheMarginOfThatValue) {
  for (const double value : {0.01, 0.5, 1.0, 1.25, 2.0, 4.0, 1000.0})
    EXPECT_NEAR(this->loss.value(this->loss.margin_of(value)), value, 1e-12 * (1 + value));
}

TYPED_TEST(EachLoss, DualValueIsNeverAboveTheLossPlusAlphaTimesTheMargin) {
  for (const double cost : {1e-8, 0.3, 1.0, 70.0, 1e8})
    for (const double alpha : this->alphas(cost))
      for (const double margin : margins()) {
        const double above = cost * this->loss.value(margin) + alpha * margin;
        const double rounding = 1e-14 * (cost + alpha) * (1 + margin * margin);
        EXPECT_LE(this->loss.dual_value(alpha, cost), above + rounding)
            << "alpha " << alpha << ", margin " << margin << ", cost " << cost;
      }
}

TYPED_TEST(EachLoss, DualValueReachesItWhereAlphaIsMinusTheDerivative) {
  for (const double cost : {1e-8, 0.3, 1.0, 70.0, 1e8})
    for (const double margin : margins()) {
      const double alpha = -cost * this->loss.derivative(margin);
      EXPECT_LE(alpha, this->loss.largest_alpha(cost));
      EXPECT_NEAR(this->loss.dual_value(alpha, cost), cost * this->loss.value(margin) + alpha * margin,
                  1e-13 * (cost + alpha) * (1 + margin * margin))
          << "margin " << margin << ", cost " << cost;
    }
}

TYPED_TEST(EachLoss, FirstAlphaIsAllowedAndHasAFiniteDualValue) {
  for (const double cost : {1e-30, 1e-8, 1.0, 1e8, 1e30}) {
    const double alpha = this->loss.first_alpha(cost);
    EXPECT_GE(alpha, 0);
    EXPECT_LE(alpha, this->loss.largest_alpha(cost));
    EXPECT_TRUE(std::isfinite(this->loss.dual_value(alpha, cost))) << "cost " << cost;
  }
}

TYPED_TEST(EachLoss, DualGradientIsTheSlopeOfTheDualTurnedRound) {
  for (const double cost : {0.3, 1.0, 70.0})
    for (const double share : {0.1, 0.5, 0.9})
      for (const double margin : {-3.0, 0.0, 0.7, 4.0}) {
        const double alpha = share * cost;
        const double step = 1e-5 * cost;
        const auto turned = [&](double z) { return (z - alpha) * margin - this->loss.dual_value(z, cost); };
        EXPECT_NEAR(this->loss.dual_gradient(alpha, margin, cost),
                    (turned(alpha + step) - turned(alpha - step)) / (2 * step), 1e-7 * (1 + std::abs(margin)))
            << "alpha " << alpha << ", margin " << margin << ", cost " << cost;
      }
}

// The dual along one coordinate, from `alpha` on; |v|^2 / 2 changes by change * margin + change^2 / 2 * norm2.
template <typename L>
struct Coordinate {
  const L& loss;
  double alpha;
  double margin;
  double norm2;
  double cost;

  double operator()(double z) const {
    const double change = z - alpha;
    return loss.dual_value(z, cost) - change * margin - 0.5 * change * change * norm2;
  }
  // The highest value, by golden-section search: it knows nothing but that there is one peak.
  double highest() const {
    constexpr double kGolden = 0.6180339887498949;
    double low = 0;
    double high = std::min(loss.largest_alpha(cost), alpha + 2 * cost * (2 + std::abs(margin)));
    for (int i = 0; i < 300; ++i) {
      const double left = high - kGolden * (high - low);
      const double right = low + kGolden * (high - low);
      ((*this)(left) < (*this)(right) ? low : high) = (*this)(left) < (*this)(right) ? left : right;
    }
    return std::max({(*this)(low), (*this)(high), (*this)(0)});
  }
};

TYPED_TEST(EachLoss, DualStepReachesTheHighestPointAlongItsCoordinate) {
  for (const double cost : {1e-8, 0.01, 1.0, 300.0, 1e8})
    for (const double norm2 : {1e-12, 1e-3, 1.0, 50.0, 1e6})
      for (const double margin : {-1000.0, -20.0, -1.0, 0.0, 0.5, 0.999, 1.0, 3.0, 40.0, 1000.0})
        for (const double share : {0.0, 1e-6, 0.2, 0.5, 0.9, 1.0}) {
          double alpha = share * cost;
          if constexpr (std::is_same_v<TypeParam, Logistic>)  // never at a bound
            alpha = std::clamp(alpha, this->loss.first_alpha(cost), cost * (1 - 1e-12));
          const Coordinate<TypeParam> dual{this->loss, alpha, margin, norm2, cost};
          const double next = this->loss.dual_step(alpha, margin, norm2, cost);
          ASSERT_GE(next, 0);
          ASSERT_LE(next, this->loss.largest_alpha(cost));
          const double change = std::abs(next - alpha);
          const double size =
              std::abs(dual.highest()) + cost + alpha + change * std::abs(margin) + change * change * norm2;
          ASSERT_GE(dual(next), dual.highest() - 1e-11 * size) << "from " << alpha << " to " << next << ", margin "
                                                               << margin << ", norm2 " << norm2 << ", cost " << cost;
        }
}

TYPED_TEST(EachLoss, StaysANumberAtTheExtremes) {
  const std::vector<double> sizes = {0, 1e-300, 1e-60, 1e-30, 1e-8, 1, 1e8, 1e30, 1e60, 1e76};
  for (const double cost : {1e-30, 1e-8, 1.0, 1e8, 1e30})
    for (const double size : sizes)
      for (const double margin : {-size, size}) {
        EXPECT_FALSE(std::isnan(this->loss.value(margin))) << margin;
        EXPECT_GE(this->loss.value(margin), 0) << margin;
        EXPECT_FALSE(std::isnan(this->loss.derivative(margin))) << margin;
        EXPECT_LE(this->loss.derivative(margin), 0) << margin;
        for (const double norm2 : sizes)
          for (const double share : {1e-15, 0.5, 1 - 1e-15}) {
            const double alpha = share * cost;
            const double next = this->loss.dual_step(alpha, margin, std::max(norm2, 1e-300), cost);
            const auto where = [&] {
              return testing::Message() << "alpha " << alpha << ", margin " << margin << ", norm2 " << norm2
                                        << ", cost " << cost << " gave " << next;
            };
            ASSERT_TRUE(next >= 0 && next <= this->loss.largest_alpha(cost) && next < kInfinity) << where();
            ASSERT_FALSE(std::isnan(this->loss.dual_value(next, cost))) << where();
            ASSERT_FALSE(std::isnan(this->loss.dual_gradient(next, margin, cost))) << where();
          }
      }
}

template <SmoothLoss L>
void expect_true_curvature(const L& loss) {
  constexpr double kStep = 1e-5;
  for (const double margin : margins()) {
    if (std::abs(margin - 1) < 2 * kStep || std::abs(std::abs(margin - 1) - 0.5) < 2 * kStep) continue;  // corners
    const double bend = (loss.derivative(margin + kStep) - loss.derivative(margin - kStep)) / (2 * kStep);
    EXPECT_NEAR(loss.curvature(margin), bend, 1e-8 * (1 + std::abs(bend))) << L::kName << ", margin " << margin;
  }
}

TEST(Loss, CurvatureIsTheSlopeOfTheDerivative) {
  expect_true_curvature(SquaredHinge{});
  expect_true_curvature(Logistic{});
  expect_true_curvature(HuberHinge{});
}

TEST(Loss, IsKnownByItsName) {
  for (const char* name : {"hinge", "squared-hinge", "logistic", "huber-hinge"})
    EXPECT_EQ(name_of(loss_of(name)), name);
  for (const char* name : {"", "Hinge", "huber", "hinge "})
    EXPECT_THAT([&] { loss_of(name); }, fails_with(ErrorKind::usage, "'" + std::string(name) + "' is not a loss"));
}

TYPED_TEST(EachLoss, IsFlatFromWhereItSaysAndNotBefore) {
  const double flat = this->loss.flat_from();
  EXPECT_EQ(TypeParam::kSparseDuals, std::isfinite(flat));
  for (const double margin : margins()) EXPECT_EQ(this->loss.value(margin) == 0, margin >= flat) << margin;
}

template <SmoothLoss L>
void expect_one_call_for_both(const L& loss) {
  for (const double margin : margins()) {
    const auto [derivative, curvature] = loss.derivatives(margin);
    EXPECT_NEAR(derivative, loss.derivative(margin), 1e-15 * (1 + std::abs(derivative)));
    EXPECT_NEAR(curvature, loss.curvature(margin), 1e-15);
    EXPECT_LE(curvature, loss.most_curvature());
  }
}

TEST(Loss, GivesBothDerivativesAtOnce) {
  expect_one_call_for_both(SquaredHinge{});
  expect_one_call_for_both(Logistic{});
  expect_one_call_for_both(HuberHinge{.huber = 0.2});
}

template <QuadraticDual L>
void expect_quadratic_dual(const L& loss) {
  for (const double cost : {0.1, 1.0, 40.0})
    for (const double alpha : {0.0, 0.3 * cost, cost})
      for (const double scale : {0.0, 0.5, 1.0})
        EXPECT_NEAR(loss.dual_value(scale * alpha, cost),
                    scale * loss.dual_linear(alpha, cost) - 0.5 * scale * scale * loss.dual_square(alpha, cost),
                    1e-13 * (1 + alpha));
}

TEST(Loss, QuadraticDualsAreWhatTheirPartsSay) {
  expect_quadratic_dual(SquaredHinge{});
  expect_quadratic_dual(HuberHinge{.huber = 0.3});
}

TEST(HuberHinge, TendsToTheHinge) {
  const Hinge hinge;
  for (const double width : {0.1, 1e-3, 1e-6}) {
    const HuberHinge loss{.huber = width};
    for (const double margin : margins()) EXPECT_NEAR(loss.value(margin), hinge.value(margin), width) << margin;
    for (double margin = 1 - 3 * width; margin < 1 + 3 * width; margin += width / 7)
      EXPECT_NEAR(loss.value(margin), hinge.value(margin), width / 4 * (1 + 1e-6)) << margin;
  }
}

// log(1 - a / cost) loses all digits of a where the cost is large; the dual value must not.
TEST(Logistic, DualValueKeepsItsDigitsAtEveryCost) {
  const Logistic loss;
  for (int power = -10; power <= 16; ++power)
    for (const double share : {1e-300, 1e-24, 1e-16, 1e-9, 0.3, 0.5, 0.7, 1 - 1e-9, 1 - 1e-15}) {
      const double cost = std::pow(10.0, power);
      const double alpha = share * cost;
      const long double small = std::min<long double>(alpha, static_cast<long double>(cost) - alpha);
      const long double exact =
          small <= 0 ? 0.0L : -small * std::log(small / cost) - (cost - small) * std::log1p(-small / cost);
      EXPECT_NEAR(loss.dual_value(alpha, cost), static_cast<double>(exact), 1e-14 * static_cast<double>(exact))
          << "cost 1e" << power << ", share " << share;
    }
}

}  // namespace
}  // namespace linblock
