#include "fit/minimize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ridgeline::fit {
namespace {

using Eigen::VectorXd;

/// 400 points of 3 exp(-x / 2) + 0.7 with noise of 0.05 of which every twentieth is far off, in scales of 0.05.
struct Decay {
  VectorXd x{400}, y{400};
  Decay() {
    std::mt19937_64 random(5);
    std::normal_distribution<double> noise(0.0, 0.05);
    for (int i = 0; i < 400; ++i) {
      x[i] = 0.02 * i;
      y[i] = 3.0 * std::exp(-0.5 * x[i]) + 0.7 + noise(random) + (i % 20 == 7 ? 4.0 : 0.0);
    }
  }
  void operator()(const VectorXd& u, VectorXd& out) const {
    out = (u[0] * (-u[1] * x.array()).exp() + u[2] - y.array()) / 0.05;
  }
};

TEST(Minimize, finds_constants_behind_noise_and_outliers) {
  const std::vector<Unknown> unknowns{{"a", 0.1, 10.0}, {"b", 0.01, 5.0}, {"c", 0.0, 5.0}};
  const Minimum found = minimize(Decay{}, 400, unknowns, VectorXd{{1.0, 2.0, 3.0}});
  const Deviations spread = deviations(found, 400, unknowns);
  const VectorXd truth{{3.0, 0.5, 0.7}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(found.u[i], truth[i], 4.0 * spread.data[i]);
    EXPECT_LT(spread.data[i], 0.05 * truth[i]);
    EXPECT_FALSE(found.bound[static_cast<std::size_t>(i)]);
  }
}

TEST(Minimize, stays_at_a_bound_that_the_loss_pushes_against) {
  const std::vector<Unknown> unknowns{{"a", 0.1, 10.0}, {"b", 0.01, 5.0}, {"c", 1.0, 5.0}};
  const Minimum found = minimize(Decay{}, 400, unknowns, VectorXd{{1.0, 2.0, 3.0}});
  EXPECT_DOUBLE_EQ(found.u[2], 1.0);
  EXPECT_TRUE(found.bound[2]);
  EXPECT_EQ(deviations(found, 400, unknowns).posterior[2], 0.0);
}

TEST(Minimize, tells_what_only_a_prior_settles) {
  // Only the sum of both is in the data.
  const auto sum = [](const VectorXd& u, VectorXd& out) {
    for (int i = 0; i < out.size(); ++i) out[i] = (u[0] + u[1] - 5.0) / 0.1 + (i % 2 == 0 ? 0.1 : -0.1);
  };
  const std::vector<Unknown> unknowns{{"a", -100.0, 100.0, 2.0, 0.5}, {"b", -100.0, 100.0, 2.0, 0.5}};
  const Minimum found = minimize(sum, 100, unknowns, VectorXd{{0.0, 1.0}});
  EXPECT_NEAR(found.u[0], 2.5, 0.01);
  EXPECT_NEAR(found.u[1], 2.5, 0.01);
  const Deviations spread = deviations(found, 100, unknowns);
  EXPECT_GT(spread.data[0], 100.0);
  EXPECT_LT(spread.posterior[0], 0.5);
}

}  // namespace
}  // namespace ridgeline::fit
