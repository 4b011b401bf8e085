// Negative log-likelihood: one block gathers the log-probability of every row's target; backward clears the whole
// gradient, then one block scatters into it. PyTorch 2.11.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"

namespace ridgeline {
namespace {

/// A thread for 16 rows, as the nearest power of two.
std::int64_t threads_of(std::int64_t rows) {
  const double power = std::round(std::log2(static_cast<double>(rows) / 16.0));
  return std::clamp<std::int64_t>(std::int64_t{1} << static_cast<int>(std::max(0.0, power)), 32, 1024);
}

}  // namespace

LoweredOp lower_nll_loss(const NllLoss& op, const ChipShape& /*chip*/, const Software& /*software*/) {
  if (op.rows < 1 || op.classes < 1) throw std::invalid_argument("a loss needs at least one row and one class");
  constexpr double kSector = 32.0;
  const auto rows = static_cast<double>(op.rows);
  const std::int64_t threads = threads_of(op.rows);
  const double touched = rows * std::min(kSector, static_cast<double>(op.classes * bytes_of(op.type)));
  LoweredOp result;
  if (op.backward) {
    const double elements = rows * static_cast<double>(op.classes),
                 bytes = elements * static_cast<double>(bytes_of(op.type));
    const int splits = index_splits(bytes);
    for (int split = 0; split < splits; ++split) {
      KernelLaunch fill = memory_bound_launch(MemoryBoundKernel::fill, "fill", TimeClass::elementwise, op.type,
                                              {ceil_div(op.rows * op.classes / splits, 1024), 1, 128, 16},
                                              {.elements = elements / splits});
      fill.writes = {{2, bytes / splits}};
      result.launches.push_back(std::move(fill));
    }
  }
  KernelLaunch launch = memory_bound_launch(
      MemoryBoundKernel::nll_loss, op.backward ? "nll_loss_backward" : "nll_loss_forward", TimeClass::elementwise,
      op.type, {1, 1, static_cast<int>(threads), 32, op.backward ? 0 : 8 * threads},
      {.elements = rows, .iterations = static_cast<double>(ceil_div(op.rows, threads))});
  const Access target{1, 8.0 * rows};
  if (op.backward) {
    launch.reads = {target};
    launch.writes = {{2, touched}};
  } else {
    launch.reads = {{0, touched}, target};
    launch.writes = {{2, 4.0}};
  }
  result.launches.push_back(std::move(launch));
  return result;
}

}  // namespace ridgeline
