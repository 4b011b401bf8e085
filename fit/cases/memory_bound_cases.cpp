// Memory-bound kernels: the launches of a lowered op, each with the profiled kernel in its place. Ops whose profile has
// other kernels, or other grids, are left out.
#include <algorithm>
#include <set>
#include <stdexcept>

#include "fit/cases/call_cases.h"
#include "fit/cases/generated_cases.h"
#include "fit/cases/small_product_cases.h"
#include "fit/law_problem.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/l2_residency.h"
#include "sim/timing/laws.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/workload/op_operands.h"

namespace ridgeline::fit {
namespace {

const Law<MemoryBoundConstants> kLaw{
    {
#include "sim/timing/tables/memory_bound_fields.inc"
    },
    [](const TimedLaunch& timed, const Gpu& gpu, const MemoryBoundConstants& constants) {
      const auto seconds = [&](const KernelLaunch& launch) {
        return memory_bound_time(launch, std::get<MemoryBoundWork>(launch.work), gpu, timed.residency, constants)
            .time.value();
      };
      double least = seconds(timed.launch);
      for (const KernelLaunch& other : timed.others) least = std::min(least, seconds(other));
      return least;
    }};

/// A memory-bound kernel with constants of its own in this table.
const MemoryBoundWork* memory_bound(const KernelLaunch& launch) {
  const auto* work = std::get_if<MemoryBoundWork>(&launch.work);
  return work != nullptr && work->kernel_class < static_cast<int>(MemoryBoundKernel::count_) ? work : nullptr;
}

/// True where a launch fills memory that no operand of its operation is.
bool clears_counters(const KernelLaunch& launch) {
  const MemoryBoundWork* work = memory_bound(launch);
  return work != nullptr && work->kernel_class == static_cast<int>(MemoryBoundKernel::fill) && !launch.writes.empty() &&
         launch.writes.front().operand == Access::kTemporary;
}

/// A profiled kernel is that of a launch by its grid or, for convolutions without a recorded grid, by its name.
bool same_kernel(const KernelLaunch& launch, const ProfiledKernel& kernel) {
  if (kernel.grid[0] == 0)
    return launch.time_class != TimeClass::tensor_contraction || kernel.name.find(launch.name) != std::string::npos;
  return launch.blocks() == static_cast<double>(kernel.grid[0]) * static_cast<double>(kernel.grid[1]) *
                                static_cast<double>(kernel.grid[2]);
}

}  // namespace

std::vector<Problem> memory_bound_problems(const Measurements& measurements, const Laboratory& laboratory) {
  const Lowering lowering(laboratory.gpu, laboratory.software);
  Collected collected;
  for (const Measurement& row : measurements.rows) {
    if (std::holds_alternative<Matmul>(row.kernel.op)) continue;  // by the kernel that ran, below
    if (const auto* op = std::get_if<Convolution>(&row.kernel.op); op != nullptr && !op->depthwise()) continue;
    LoweredOp lowered;
    try {
      lowered = lowering.lower(row.kernel.op);
    } catch (const std::invalid_argument&) {
      continue;  // a shape that the laws do not have
    }
    // Profiles of batch norm alone left out what clears its counters.
    if (lowered.launches.size() != row.kernels.size()) std::erase_if(lowered.launches, clears_counters);
    if (lowered.launches.size() != row.kernels.size()) continue;
    const auto residency = repeated_residency(lowered.launches, rotating_operands(row.kernel.op), row.kernel.input_sets,
                                              laboratory.gpu.l2, partly_used_bytes(row.kernel.op));
    for (std::size_t i = 0; i < lowered.launches.size(); ++i) {
      const MemoryBoundWork* work = memory_bound(lowered.launches[i]);
      if (work == nullptr || !same_kernel(lowered.launches[i], row.kernels[i])) continue;
      auto& [cases, timed] = collected[std::string(name_of(static_cast<MemoryBoundKernel>(work->kernel_class)))];
      cases.push_back({row.kernels[i].seconds, row.machine, row.held_out, row.shape, row.row});
      timed.push_back({lowered.launches[i], residency.empty() ? std::vector<double>{} : residency[i]});
    }
  }
  add_small_products(measurements, laboratory, collected);
  add_calls(measurements, laboratory, collected);
  add_generated(measurements, laboratory, collected);
  return problems_of(std::move(collected), kLaw, laboratory.gpu);
}

}  // namespace ridgeline::fit
