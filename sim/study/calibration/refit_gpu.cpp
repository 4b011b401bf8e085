#include "sim/study/calibration/refit_gpu.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

#include "sim/hardware/keys.h"
#include "sim/kernels/lowering.h"
#include "sim/study/kernel_prediction.h"
#include "sim/study/validation/measured_ops.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kScale = 0.05;         ///< of an error, in the logarithm: larger ones count by their size
constexpr double kStep = 0.02;          ///< of a derivative, in the logarithm of a factor
constexpr double kSettled = 0.7;        ///< share of the prior's spread below which the data have said something
constexpr int kFolds = 5, kSteps = 20;  ///< kSteps: at most

Gpu with_factors(const Gpu& gpu, const VectorXd& u) {
  Gpu changed = gpu;
  for (std::size_t i = 0; i < tied_numbers().size(); ++i)
    for (const std::string_view name : tied_numbers()[i].keys) {
      const HardwareKey& key = *find_hardware_key(name);
      if (key.get(gpu) != 0.0) key.set(changed, key.get(gpu) * std::exp(u[static_cast<Eigen::Index>(i)]));
    }
  return changed;
}

/// The factor's bounds in the logarithm, within what its numbers may be.
std::array<double, 2> bounds(const TiedNumbers& tied, const Gpu& gpu) {
  double from = std::log(tied.from), to = std::log(tied.to);
  for (const std::string_view name : tied.keys) {
    const HardwareKey& key = *find_hardware_key(name);
    const double value = key.get(gpu);
    if (value <= 0.0) continue;
    if (key.range.low > 0.0) from = std::max(from, std::log(key.range.low / value));
    to = std::min(to, std::log(key.range.high / value));
  }
  return {std::min(from, 0.0), std::max(to, 0.0)};
}

/// Cases with the kernels that the library runs on the GPU as it is described: a fit moves their times, not the choice.
class Rows {
 public:
  Rows(const std::vector<TimedCase>& cases, const Gpu& gpu, const Software& software) : cases_(&cases), gpu_(&gpu) {
    const Lowering lowering(gpu, software);
    for (const TimedCase& one : cases) launches_.push_back(lowering.lower(one.kernel.op).launches);
  }
  /// ln(predicted / measured) of rows `which` with factors e^u.
  [[nodiscard]] VectorXd errors(const std::vector<std::size_t>& which, const VectorXd& u) const {
    const Gpu changed = with_factors(*gpu_, u);
    const auto engine = make_timing_engine("analytic", changed);
    VectorXd result(static_cast<Eigen::Index>(which.size()));
    for (std::size_t k = 0; k < which.size(); ++k) {
      const TimedCase& one = (*cases_)[which[k]];
      const Seconds time = time_launches(one.kernel, launches_[which[k]], changed, *engine).time;
      result[static_cast<Eigen::Index>(k)] = std::log(ratio(time, one.measured));
    }
    return result;
  }

 private:
  const std::vector<TimedCase>* cases_;
  const Gpu* gpu_;
  std::vector<std::vector<KernelLaunch>> launches_;
};

struct Solution {
  VectorXd u;
  VectorXd deviation;  ///< of u, with the prior
};

double objective(const VectorXd& errors, const VectorXd& u) {
  double sum = 0.0;
  for (const double e : errors) sum += 2.0 * (std::sqrt(1.0 + (e / kScale) * (e / kScale)) - 1.0);
  for (Eigen::Index i = 0; i < u.size(); ++i) {
    const double pull = u[i] / tied_numbers()[static_cast<std::size_t>(i)].spread;
    sum += pull * pull;
  }
  return sum;
}

/// Levenberg and Marquardt's method on the reweighted squares, from no change; only factors that are `free` move.
Solution solve(const Rows& rows, const std::vector<std::size_t>& which, const Gpu& gpu, const std::vector<bool>& free) {
  const auto n = static_cast<Eigen::Index>(tied_numbers().size());
  VectorXd u = VectorXd::Zero(n), errors = rows.errors(which, u);
  double value = objective(errors, u), damping = 1e-3;
  MatrixXd normal;
  for (int step = 0; step < kSteps; ++step) {
    MatrixXd jacobian = MatrixXd::Zero(errors.size(), n);
    for (Eigen::Index i = 0; i < n; ++i) {
      if (!free[static_cast<std::size_t>(i)]) continue;
      VectorXd more = u, less = u;
      more[i] += kStep;
      less[i] -= kStep;
      jacobian.col(i) = (rows.errors(which, more) - rows.errors(which, less)) / (2.0 * kStep * kScale);
    }
    const VectorXd scaled = errors / kScale;
    const VectorXd weights = (1.0 + scaled.array().square()).sqrt().inverse();
    normal = jacobian.transpose() * weights.asDiagonal() * jacobian;
    VectorXd gradient = jacobian.transpose() * weights.asDiagonal() * scaled;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double spread = tied_numbers()[static_cast<std::size_t>(i)].spread;
      normal(i, i) += 1.0 / (spread * spread);
      gradient[i] += u[i] / (spread * spread);
    }
    bool moved = false;
    for (int attempt = 0; attempt < 8 && !moved; ++attempt) {
      MatrixXd damped = normal;
      damped.diagonal() *= 1.0 + damping;
      VectorXd next = u - damped.ldlt().solve(gradient);
      for (Eigen::Index i = 0; i < n; ++i) {
        const auto [from, to] = bounds(tied_numbers()[static_cast<std::size_t>(i)], gpu);
        next[i] = free[static_cast<std::size_t>(i)] ? std::clamp(next[i], from, to) : 0.0;
      }
      const VectorXd tried = rows.errors(which, next);
      if (const double found = objective(tried, next); found < value) {
        moved = value - found > 1e-6 * value;
        u = next;
        errors = tried;
        value = found;
        damping = std::max(1e-9, 0.3 * damping);
        if (!moved) break;
      } else {
        damping *= 10.0;
      }
    }
    if (!moved) break;
  }
  return {u, normal.inverse().diagonal().cwiseSqrt()};
}

/// The factors that the data settle, and those factors fitted again without the others.
Solution solve_settled(const Rows& rows, const std::vector<std::size_t>& which, const Gpu& gpu,
                       std::vector<bool>& settled) {
  settled.assign(tied_numbers().size(), true);
  const Solution all = solve(rows, which, gpu, settled);
  for (std::size_t i = 0; i < settled.size(); ++i)
    settled[i] = all.deviation[static_cast<Eigen::Index>(i)] < kSettled * tied_numbers()[i].spread;
  return solve(rows, which, gpu, settled);
}

/// predicted / measured of rows `which` on a GPU, with the kernels that the library chooses there.
std::vector<double> ratios_on(const std::vector<TimedCase>& cases, const std::vector<std::size_t>& which,
                              const Gpu& gpu, const Software& software) {
  const Lowering lowering(gpu, software);
  const auto engine = make_timing_engine("analytic", gpu);
  std::vector<double> ratios;
  for (const std::size_t i : which)
    ratios.push_back(ratio(predict_kernel(cases[i].kernel, lowering, *engine).time, cases[i].measured));
  return ratios;
}

std::vector<RefitErrors> by_family(const std::vector<TimedCase>& cases, const std::vector<double>& before,
                                   const std::vector<double>& fitted, const std::vector<double>& unseen) {
  std::map<std::string, std::array<std::vector<double>, 3>> groups;
  std::array<std::vector<double>, 3> all{before, fitted, unseen};
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k) groups[cases[i].family][k].push_back(all[k][i]);
  std::vector<RefitErrors> errors{
      {"all", error_statistics(before), error_statistics(fitted), error_statistics(unseen)}};
  for (const auto& [family, ratios] : groups)
    errors.push_back({family, error_statistics(ratios[0]), error_statistics(ratios[1]), error_statistics(ratios[2])});
  return errors;
}

}  // namespace

const std::vector<TiedNumbers>& tied_numbers() {
  static const std::vector<TiedNumbers> all{
      {"fixed", "start and end of a kernel", {"launch.kernel_fixed"}, 0.3, 0.4, 2.5},
      {"latency", "latencies of the L2 and the DRAM", {"l2.latency", "dram.latency"}, 0.2, 0.6, 1.7},
      {"dram", "share of the DRAM's bandwidth", {"dram.read_efficiency", "dram.write_efficiency"}, 0.1, 0.6, 1.4},
      {"l2",
       "bandwidths of the L2",
       {"l2.read_bandwidth", "l2.write_bandwidth", "l2.shared_read_bandwidth"},
       0.2,
       0.5,
       2.0},
      {"fp32", "what products in fp32 reach", {"sm.rates.fp32"}, 0.1, 0.6, 1.2},
      {"tensor-16-bit",
       "what 16-bit tensor cores reach",
       {"sm.rates.tensor_fp16", "sm.rates.tensor_bf16"},
       0.1,
       0.6,
       1.2},
      {"tensor-tf32", "what tf32 tensor cores reach", {"sm.rates.tensor_tf32"}, 0.1, 0.6, 1.2},
      {"energy-fp32", "energy of a FLOP in fp32", {"power.fp32"}, 0.25, 0.5, 2.0},
      {"energy-tensor",
       "energies of a FLOP on tensor cores",
       {"power.tensor_fp16", "power.tensor_bf16", "power.tensor_tf32"},
       0.25,
       0.5,
       2.0}};
  return all;
}

RefitResult refit_gpu(const std::vector<TimedCase>& cases, const Gpu& gpu, const Software& software) {
  const Rows rows(cases, gpu, software);
  std::vector<std::size_t> every(cases.size());
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = i;
  std::vector<bool> settled;
  const Solution solution = solve_settled(rows, every, gpu, settled);
  RefitResult result{.gpu = with_factors(gpu, solution.u), .numbers = {}, .errors = {}};
  for (std::size_t i = 0; i < settled.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    result.numbers.push_back(
        {&tied_numbers()[i], std::exp(solution.u[at]), 100.0 * solution.deviation[at], settled[i]});
  }
  std::vector<double> unseen(cases.size());
  for (int fold = 0; fold < kFolds; ++fold) {
    std::vector<std::size_t> seen, left_out;
    for (std::size_t i = 0; i < cases.size(); ++i)
      ((cases[i].shape >> 17) % kFolds == static_cast<std::uint64_t>(fold) ? left_out : seen).push_back(i);
    std::vector<bool> of_fold;
    const Gpu fitted = with_factors(gpu, solve_settled(rows, seen, gpu, of_fold).u);
    const std::vector<double> ratios = ratios_on(cases, left_out, fitted, software);
    for (std::size_t k = 0; k < left_out.size(); ++k) unseen[left_out[k]] = ratios[k];
  }
  result.errors =
      by_family(cases, ratios_on(cases, every, gpu, software), ratios_on(cases, every, result.gpu, software), unseen);
  return result;
}

}  // namespace ridgeline
