// Matrix products: one kernel of the menu, with a memset of its tile counter or a split-K reduction where it needs one.
//
// Sequences as profiled with PyTorch 2.11 on an H200: a persistent kernel of more than two tiles an SM clears its
// counter first; split-K adds a reduction, launched so that it starts without a gap.
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "sim/kernels/families.h"
#include "sim/kernels/memory_bound/memory_bound_launch.h"
#include "sim/kernels/products/few_vectors.h"
#include "sim/kernels/products/gemm_selection.h"
#include "sim/kernels/products/grouped_product.h"
#include "sim/kernels/products/product_ways.h"
#include "sim/kernels/products/scaled_product.h"
#include "sim/kernels/products/small_tiles.h"
#include "sim/kernels/products/vector_product.h"
#include "sim/kernels/recorded_kernel.h"
#include "sim/workload/op_operands.h"

namespace ridgeline {
namespace {

void require_sizes(const Matmul& op) {
  if (op.batch < 1 || op.m < 1 || op.n < 1 || op.k < 1)
    throw std::invalid_argument(fmt::format("a matrix product of {} x [{} x {}] by [{} x {}] has an empty operand",
                                            op.batch, op.m, op.k, op.k, op.n));
}

/// Products of fp8 run the 16-bit kernels' tiles on pairs of operands: names of both agree in 45 products of an H100.
LoweredOp lower_scaled_mm(const Matmul& op, const Gpu& gpu, const std::shared_ptr<const GpuMenus>& menus) {
  if (!gpu.sm.warpgroup_mma || gpu.compute_major != 9)
    throw std::invalid_argument(
        fmt::format("products of fp8 are modelled on Hopper (compute capability 9.0); {} has {}.{}", gpu.name,
                    gpu.compute_major, gpu.compute_minor));
  if (op.batch != 1 || op.bias || op.layout != Layout::nt || op.sparse != SparseOperand::none || !is_half(op.type))
    throw std::invalid_argument(
        "a product of fp8 is one of [m, k] by [n, k] transposed into bf16 or fp16, without a bias");
  if (op.k % 16 != 0 || op.n % 16 != 0)
    throw std::invalid_argument(
        fmt::format("a product of fp8 needs n and k that are multiples of 16, not {} and {}", op.n, op.k));
  Matmul pairs = op;
  pairs.k /= 2;
  GemmWork problem = gemm_problem(pairs, gpu);
  problem.scaling = op.scaling;
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  LoweredOp lowered;
  append_fastest(lowered.launches, {problem, menus, {}}, gpu,
                 {{.operand = 0, .bytes = m * k}, {.operand = 1, .bytes = n * k}},
                 {{.operand = operand_counts(Op{op}).inputs, .bytes = m * n * static_cast<double>(bytes_of(op.type))}});
  return lowered;
}

/// The same kernels in the time that those of an older library for Hopper take.
LoweredOp of_library(LoweredOp lowered, const Software& software) {
  for (KernelLaunch& launch : lowered.launches)
    if (auto* const work = std::get_if<GemmWork>(&launch.work);
        work != nullptr && work->family == GemmWork::Family::wgmma)
      work->product_time = software.hopper_product_time;
  return lowered;
}

LoweredOp lower_plain_mm(const Matmul& op, const Gpu& gpu, const Software& software,
                         const std::shared_ptr<const GpuMenus>& menus) {
  LoweredOp lowered;
  const OperandCounts counts = operand_counts(Op{op});
  const double element = static_cast<double>(bytes_of(op.type)), batch = static_cast<double>(op.batch);
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const int output = counts.inputs;
  // PyTorch asks the library for a fused bias where B has more than one row and column.
  const bool fuses_bias = op.bias && software.addmm_fuses_bias && op.n > 1 && op.k > 1;
  if (op.bias && !fuses_bias && op.batch * op.m == 1) {
    lowered.launches.push_back(device_copy_launch(op.type, op.n, 2, output));
  } else if (op.bias && !fuses_bias) {
    // The older way: the bias is first copied into every row of the output, which the product then adds to.
    Pointwise spread{.function = PointwiseFunction::other,
                     .rows = op.batch * op.m,
                     .cols = op.n,
                     .input_count = 1,
                     .output = op.type,
                     .walk = Walk::broadcast_row};
    spread.inputs[0] = op.type;
    for (KernelLaunch& launch : lower_pointwise(spread, gpu, software).launches) {
      for (Access& access : launch.reads) access.operand = 2;
      for (Access& access : launch.writes) access.operand = output;
      lowered.launches.push_back(std::move(launch));
    }
  }
  std::vector<Access> reads{
      {.operand = 0, .bytes = batch * m * k * element * stored_share(op.sparse == SparseOperand::a)},
      {.operand = 1, .bytes = batch * n * k * element * stored_share(op.sparse == SparseOperand::b)}};
  if (fuses_bias) reads.push_back({.operand = 2, .bytes = n * element});
  if (op.bias && !fuses_bias) reads.push_back({.operand = output, .bytes = batch * m * n * element});
  const std::vector<Access> writes{{.operand = output, .bytes = batch * m * n * element}};
  if (op.ran.m > 0) {
    GemmWork recorded = gemm_problem(op, gpu);
    recorded.bias = fuses_bias;
    if (auto alone = menu_of_recorded(op.ran, recorded, gpu)) {
      append_fastest(lowered.launches, {recorded, std::move(alone), {}}, gpu, std::move(reads), writes);
      return lowered;
    }
  }
  if (is_vector_product(op, gpu)) {
    append_vector_product(lowered.launches, op, gpu, std::move(reads), writes);
    return lowered;
  }
  GemmWork problem = gemm_problem(op, gpu);
  problem.bias = fuses_bias;
  problem.always_summed = is_always_summed(problem);
  const bool few = is_few_vectors(op, gpu);
  // Where there is a bias to add, however long it takes.
  if (few && op.bias) {
    lowered.launches.push_back(few_vectors_launch(op, reads, writes));
    return lowered;
  }
  if (!few && is_scaled_first(op, gpu)) {
    append_scaled_first(lowered.launches, op, reads, writes);
    return lowered;
  }
  ProductWays ways;
  if (few) ways.others.push_back({few_vectors_launch(op, reads, writes)});
  else ways.others = small_tile_ways(problem, gpu, reads, writes);
  if (few || !is_few_summed(problem, gpu)) {
    ways.problem = problem;
    ways.menus = menus;
  }
  append_fastest(lowered.launches, std::move(ways), gpu, std::move(reads), writes);
  return lowered;
}

}  // namespace

LoweredOp lower_matmul(const Matmul& op, const Gpu& gpu, const Software& software,
                       const std::shared_ptr<const GpuMenus>& menus) {
  require_sizes(op);
  if (op.scaling != Scaling::none) return lower_scaled_mm(op, gpu, menus);
  if (op.grouped) return lower_grouped_mm(op, gpu, software, menus);
  if (op.ran.m > 0) return lower_plain_mm(op, gpu, software, menus);  // the recorded library's own kernel
  return of_library(lower_plain_mm(op, gpu, software, menus), software);
}

}  // namespace ridgeline
