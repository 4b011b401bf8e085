// A GPU's description fitted to operations that its owner timed: a few factors on numbers of its file.
//
// The laws' constants belong to the kernels' code and stay as they are. What is fitted belongs to the board and the
// library on it: fixed costs, latencies, the DRAM, the L2, what each pipe reaches and the energy it takes. Each is one
// factor on numbers that go up and down together, held near 1 by a prior, so that the laws stay monotone and a few
// hundred rows are enough. With r = ln(predicted / measured) / kScale, the factors e^u have the least
//
//   sum over rows of 2 (sqrt(1 + r^2) - 1)  +  sum over factors of (u / spread)^2
//
// Errors on rows that were not fitted on come from five folds by shape.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/study/validation/error_statistics.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {

/// Numbers of a hardware file with one factor.
struct TiedNumbers {
  std::string_view name, what;
  std::vector<std::string_view> keys;
  double spread;    ///< of the prior, in the logarithm
  double from, to;  ///< bounds of the factor
};
const std::vector<TiedNumbers>& tied_numbers();

/// An operation that its owner timed.
struct TimedCase {
  KernelCase kernel;
  std::string family;
  Seconds measured;
  std::uint64_t shape = 0;  ///< equal shapes are in one fold
};

/// Rows of docs/kernel-cases.md with `us`, all of them of operations that this GPU can run. Throws UserError naming
/// every bad line, or for fewer rows than a fit needs.
std::vector<TimedCase> read_timed_cases(const std::string& file, const Gpu& gpu, const Software& software);

struct FittedNumber {
  const TiedNumbers* tied = nullptr;
  double factor = 1.0;
  double deviation = 0.0;  ///< one standard deviation in percent, with the prior
  bool settled = false;    ///< by the data; else it stays as it was
};

/// Errors of a family, or of all ("all"), in percent.
struct RefitErrors {
  std::string family;
  ErrorStatistics before, fitted, unseen;  ///< unseen: each fold with factors fitted on the four others
};

struct RefitResult {
  Gpu gpu;  ///< with the factors
  std::vector<FittedNumber> numbers;
  std::vector<RefitErrors> errors;  ///< "all" first
  /// Whether rows that a fit did not see are predicted better than before, by the mean error of all.
  [[nodiscard]] bool better() const { return errors.front().unseen.mean < errors.front().before.mean; }
};

RefitResult refit_gpu(const std::vector<TimedCase>& cases, const Gpu& gpu, const Software& software);

/// A hardware file that extends `base` (a name of hw/ or a path beside it) with the numbers that were settled.
/// `measured`: what was fitted on, for their sources.
std::string refit_yaml(const RefitResult& result, const Gpu& before, const std::string& base,
                       const std::string& measured);

}  // namespace ridgeline
