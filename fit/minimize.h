// Least squares with outliers rounded off, bounds and priors: Levenberg and Marquardt's method.
//
// The loss of residuals r (in units of their scale) is sum 2(sqrt(1 + r^2) - 1), quadratic for small ones and linear
// for large ones; a prior adds ((u - centre) / spread)^2. Steps solve the normal equations of the reweighted squares;
// unknowns at a bound that the loss pushes outward stay there.
#pragma once

#include <Eigen/Dense>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace ridgeline::fit {

struct Unknown {
  std::string name;
  double from = 0, to = 0;
  double centre = 0, spread = std::numeric_limits<double>::infinity();
};

/// Fills in the residuals of unknowns `u`.
using Residuals = std::function<void(const Eigen::VectorXd& u, Eigen::VectorXd& residuals)>;

struct Minimum {
  Eigen::VectorXd u{};
  double loss = 0;                ///< without priors
  double objective = 0;           ///< with them
  Eigen::MatrixXd information{};  ///< of the data alone: the curvature of half the loss
  std::vector<bool> bound{};      ///< which unknowns lie at a bound
  int iterations = 0;
};

Minimum minimize(const Residuals& residuals, std::size_t count, const std::vector<Unknown>& unknowns,
                 Eigen::VectorXd start);

/// Standard deviations of the unknowns that lie at no bound (0 for the others), the noise taken from the residuals at
/// the minimum: of the data alone, and with the priors.
struct Deviations {
  Eigen::VectorXd data, posterior;
};
Deviations deviations(const Minimum& minimum, std::size_t count, const std::vector<Unknown>& unknowns);

}  // namespace ridgeline::fit
