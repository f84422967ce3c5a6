#include "objective/certificate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace linblock {
namespace {

TEST(Certificate, GapIsRelativeToTheDual) {
  EXPECT_DOUBLE_EQ((Certificate{.primal = 1.5, .dual = 1.0}.gap()), 0.5);
  EXPECT_EQ((Certificate{.primal = 3, .dual = 3}.gap()), 0);
  EXPECT_EQ((Certificate{.primal = 1, .dual = 0}.gap()), std::numeric_limits<double>::infinity());
  EXPECT_EQ((Certificate{.primal = 1, .dual = -5}.gap()), std::numeric_limits<double>::infinity());
  EXPECT_EQ((Certificate{.primal = 0, .dual = 0}.gap()), 0);
}

TEST(Certificate, WithADualAboveThePrimalCertifiesNothing) {
  const Certificate wrong{.primal = 1, .dual = std::nextafter(1.0, 2.0)};
  EXPECT_TRUE(wrong.contradicts_itself());
  EXPECT_EQ(wrong.gap(), std::numeric_limits<double>::infinity());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ((Certificate{.primal = 1, .dual = nan}.gap()), std::numeric_limits<double>::infinity());
  EXPECT_FALSE((Certificate{.primal = nan, .dual = 1}.gap()) <= 1);
}

}  // namespace
}  // namespace linblock
