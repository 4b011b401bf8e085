#include "fit/minimize.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::fit {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Half the distance of the points that a slope is taken between, in what an unknown is expected to vary by.
constexpr double kDifference = 0.02;

double loss_of(const VectorXd& residuals) { return 2.0 * ((residuals.array().square() + 1.0).sqrt() - 1.0).sum(); }

/// Of the priors: their loss, and what they add to gradient and curvature.
double prior_loss(const std::vector<Unknown>& unknowns, const VectorXd& u) {
  double sum = 0.0;
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const double off = (u[static_cast<Eigen::Index>(i)] - unknowns[i].centre) / unknowns[i].spread;
    sum += off * off;
  }
  return sum;
}

/// The reweighted squares around one point.
struct Normal {
  MatrixXd information;  ///< of the data
  MatrixXd curvature;    ///< with priors
  VectorXd gradient;     ///< with priors
};

Normal normal_equations(const Residuals& residuals, const VectorXd& u, const VectorXd& here,
                        const std::vector<Unknown>& unknowns) {
  const auto p = static_cast<Eigen::Index>(unknowns.size());
  MatrixXd slopes(here.size(), p);
  VectorXd above(here.size()), below(here.size()), moved = u;
  for (Eigen::Index i = 0; i < p; ++i) {
    // Wide enough to see past the steps of rounds and schedules, inside the bounds.
    const Unknown& unknown = unknowns[static_cast<std::size_t>(i)];
    const double width = kDifference * std::min({unknown.to - unknown.from, unknown.spread, 1.0});
    const double high = std::min(u[i] + width, unknown.to), low = std::max(u[i] - width, unknown.from);
    moved[i] = high;
    residuals(moved, above);
    moved[i] = low;
    residuals(moved, below);
    moved[i] = u[i];
    slopes.col(i) = (above - below) / (high - low);
  }
  const VectorXd weights = (here.array().square() + 1.0).rsqrt();
  const MatrixXd weighted = weights.asDiagonal() * slopes;
  Normal result{slopes.transpose() * weighted, {}, weighted.transpose() * here};
  result.curvature = result.information;
  for (Eigen::Index i = 0; i < p; ++i) {
    const Unknown& unknown = unknowns[static_cast<std::size_t>(i)];
    result.curvature(i, i) += 1.0 / (unknown.spread * unknown.spread);
    result.gradient[i] += (u[i] - unknown.centre) / (unknown.spread * unknown.spread);
  }
  return result;
}

/// Unknowns that a step may move.
std::vector<Eigen::Index> free_ones(const VectorXd& u, const VectorXd& gradient, const std::vector<Unknown>& unknowns) {
  std::vector<Eigen::Index> result;
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const bool out =
        (u[at] <= unknowns[i].from && gradient[at] > 0.0) || (u[at] >= unknowns[i].to && gradient[at] < 0.0);
    if (!out) result.push_back(at);
  }
  return result;
}

MatrixXd part_of(const MatrixXd& whole, const std::vector<Eigen::Index>& rows) { return whole(rows, rows); }

}  // namespace

Minimum minimize(const Residuals& residuals, std::size_t count, const std::vector<Unknown>& unknowns, VectorXd start) {
  constexpr int kMostIterations = 100;
  constexpr double kEnough = 1e-5;  // of the objective, whose noise is about one an unknown
  const auto clamped = [&](VectorXd u) {
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      u[at] = std::clamp(u[at], unknowns[i].from, unknowns[i].to);
    }
    return u;
  };
  Minimum best{.u = clamped(std::move(start))};
  VectorXd here(static_cast<Eigen::Index>(count)), there(static_cast<Eigen::Index>(count));
  residuals(best.u, here);
  best.loss = loss_of(here);
  best.objective = best.loss + prior_loss(unknowns, best.u);
  double damping = 1e-3;
  Normal normal;
  int calm = 0;  // iterations in a row that gained next to nothing
  for (best.iterations = 0; best.iterations < kMostIterations && calm < 2; ++best.iterations) {
    normal = normal_equations(residuals, best.u, here, unknowns);
    const std::vector<Eigen::Index> free = free_ones(best.u, normal.gradient, unknowns);
    if (free.empty()) break;
    const MatrixXd curvature = part_of(normal.curvature, free);
    const VectorXd gradient = normal.gradient(free);
    bool better = false;
    for (; damping < 1e9; damping *= 6.0) {
      MatrixXd damped = curvature;
      damped.diagonal() += damping * curvature.diagonal() + VectorXd::Constant(gradient.size(), 1e-12);
      const VectorXd step = damped.ldlt().solve(-gradient);
      VectorXd moved = best.u;
      for (std::size_t i = 0; i < free.size(); ++i) moved[free[i]] += step[static_cast<Eigen::Index>(i)];
      moved = clamped(moved);
      residuals(moved, there);
      const double loss = loss_of(there), objective = loss + prior_loss(unknowns, moved);
      if (!(objective < best.objective)) continue;
      calm = best.objective - objective < kEnough * std::max(1.0, static_cast<double>(unknowns.size())) ? calm + 1 : 0;
      best.u = moved;
      best.loss = loss;
      best.objective = objective;
      here = there;
      damping = std::max(damping / 20.0, 1e-9);
      better = true;
      break;
    }
    if (!better) break;
  }
  best.information = normal_equations(residuals, best.u, here, unknowns).information;
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const double u = best.u[static_cast<Eigen::Index>(i)], close = 1e-6 * (unknowns[i].to - unknowns[i].from);
    best.bound.push_back(u <= unknowns[i].from + close || u >= unknowns[i].to - close);
  }
  return best;
}

Deviations deviations(const Minimum& minimum, std::size_t count, const std::vector<Unknown>& unknowns) {
  std::vector<Eigen::Index> free;
  for (std::size_t i = 0; i < unknowns.size(); ++i)
    if (!minimum.bound[i]) free.push_back(static_cast<Eigen::Index>(i));
  const double freedom = std::max(1.0, static_cast<double>(count) - static_cast<double>(free.size()));
  const double noise = minimum.loss / freedom;
  const auto p = static_cast<Eigen::Index>(unknowns.size());
  Deviations result{VectorXd::Zero(p), VectorXd::Zero(p)};
  if (free.empty()) return result;
  MatrixXd with_priors = part_of(minimum.information, free) / noise;
  const MatrixXd data = with_priors;
  for (std::size_t i = 0; i < free.size(); ++i) {
    const double spread = unknowns[static_cast<std::size_t>(free[i])].spread;
    with_priors(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(i)) += 1.0 / (spread * spread);
  }
  const auto spread_of = [&](const MatrixXd& information, VectorXd& out) {
    // Directions that nothing settles keep a very large, finite deviation.
    const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(information);
    const VectorXd inverse = solver.eigenvalues().cwiseMax(1e-8).cwiseInverse();
    const MatrixXd covariance = solver.eigenvectors() * inverse.asDiagonal() * solver.eigenvectors().transpose();
    for (std::size_t i = 0; i < free.size(); ++i)
      out[free[i]] = std::sqrt(std::max(0.0, covariance(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(i))));
  };
  spread_of(data, result.data);
  spread_of(with_priors, result.posterior);
  return result;
}

}  // namespace ridgeline::fit
