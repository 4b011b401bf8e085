#include "sim/kernels/products/gemm_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/timing/likely_time.h"

namespace ridgeline {
namespace {

/// Largest of 16, 8, 4, 2 bytes that all contiguous dimensions are multiples of.
int alignment_of(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t element) {
  for (const int unit : {16, 8, 4})
    if (a * element % unit == 0 && b * element % unit == 0 && c * element % unit == 0) return unit;
  return 2;
}

double tensor_rate(const MathRates& rates, DType type) {
  switch (type) {
    case DType::bf16: return rates.tensor_bf16;
    case DType::fp16: return rates.tensor_fp16;
    case DType::tf32: return rates.tensor_tf32;
    default: return 0.0;
  }
}

/// What cuSPARSELt asks of a structured operand: both sides multiples of 32 bytes (16 values of 16 bits, 8 of tf32).
void require_sparse_shape(const Matmul& op, const Gpu& gpu) {
  if (op.sparse == SparseOperand::none) return;
  if (tensor_rate(gpu.sm.rates, op.type) <= 0.0 || gpu.sm.rates.sparsity_factor <= 1.0)
    throw std::invalid_argument(
        fmt::format("{} has no sparse tensor cores for {}: 2:4 sparsity needs bf16, fp16 or tf32 and "
                    "sm.rates.sparsity_factor above 1",
                    gpu.name, name_of(op.type)));
  const std::int64_t side = op.sparse == SparseOperand::a ? op.m : op.n, unit = 32 / bytes_of(op.type);
  if (side % unit != 0 || op.k % unit != 0)
    throw std::invalid_argument(fmt::format("a 2:4 sparse operand of {} x {} in {}: both sides must be multiples of {}",
                                            side, op.k, name_of(op.type), unit));
}

}  // namespace

GemmWork gemm_problem(const Matmul& op, const Gpu& gpu) {
  GemmWork work{.type = op.type,
                .batch = op.batch,
                .m = op.m,
                .n = op.n,
                .k = op.k,
                .layout = static_cast<int>(op.layout),
                .bias = op.bias};
  const bool a_transposed = op.layout == Layout::tn || op.layout == Layout::tt,
             b_transposed = op.layout == Layout::nt || op.layout == Layout::tt;
  // A single column is contiguous along its rows, a single row along its columns.
  work.alignment = alignment_of(a_transposed && op.m > 1 ? op.m : op.k, b_transposed || op.n == 1 ? op.k : op.n,
                                op.n == 1 ? op.m : op.n, bytes_of(op.type));
  require_sparse_shape(op, gpu);
  work.sparse = op.sparse;
  if (tensor_rate(gpu.sm.rates, op.type) <= 0.0) {
    work.family = GemmWork::Family::simt;
  } else {
    const bool wgmma = gpu.sm.warpgroup_mma && gpu.sm.tensor_memory_accelerator && work.alignment >= 16;
    work.family = wgmma ? GemmWork::Family::wgmma : GemmWork::Family::mma_sync;
  }
  return work;
}

namespace {

/// Share of tf32 products like this one that keep to the kernels of the generation before: small ones, and those whose
/// operands are transposed.
double share_of_older_kernels(const GemmWork& problem) {
  constexpr double kAtWork = 29.6, kPerDoubling = 0.1, kNn = 0.483, kTn = 0.475;
  const double work = static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                      static_cast<double>(problem.n) * static_cast<double>(problem.k);
  double share = -0.091 + kPerDoubling * (kAtWork - std::log2(work));
  if (problem.layout == 0) share += kNn;
  if (problem.layout >= 2) share += kTn;
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace

GemmSelection select_gemm(const GemmWork& problem, const Gpu& gpu, const GpuMenus& menus, const GemmMisses& missed) {
  const auto from_class = [&](const GemmWork& work, double of_interest) {
    const GemmClass kernel_class = gemm_class_of(work, gpu);
    return select_gemm(work, gpu, gemm_constants(kernel_class), menus.of(kernel_class, work.batch > 1), of_interest,
                       missed);
  };
  constexpr double kAny = std::numeric_limits<double>::infinity();
  GemmSelection selection = from_class(problem, kAny);
  if (problem.family != GemmWork::Family::wgmma || problem.scaling != Scaling::none) return selection;
  GemmWork before = problem;
  before.family = GemmWork::Family::mma_sync;
  const double share = problem.type == DType::tf32 ? share_of_older_kernels(problem) : 0.0;
  // Where none keep to the older kernels only faster ones count: none that ranks behind their second does.
  const GemmSelection older = from_class(before, share > 0.0 ? kAny : kMostSlower * selection.expected);
  if (older.choice == nullptr) return selection;
  GemmSelection made = share >= 0.5 || selection.choice == nullptr ? older : selection;
  made.expected = of_generations(selection.expected, older.expected, share);
  return made;
}

}  // namespace ridgeline
