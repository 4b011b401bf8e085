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
    work.tensor_memory = wgmma && gpu.sm.tensor_memory && is_half(op.type);
  }
  return work;
}

namespace {

double log2_of_work(const GemmWork& problem) {
  return std::log2(static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
                   static_cast<double>(problem.n) * static_cast<double>(problem.k));
}

/// Share of tf32 products like this one that keep to the kernels of the generation before: small ones, those whose
/// operands are transposed, and those with short sums. The numbers are those that bring the times of 2,518 profiled
/// products (none held out) closest to what the two generations' kernels are expected to take; the names of four in
/// five agree.
double share_of_older_kernels(const GemmWork& problem) {
  constexpr double kAtWork = 27.31, kPerDoubling = 1.43, kNn = 4.55, kTn = 4.97, kAtSum = 8.0, kPerSum = 1.74;
  double score = kPerDoubling * (kAtWork - log2_of_work(problem));
  if (problem.layout >= static_cast<int>(Layout::tn)) {
    score += kTn;
  } else {
    score += kPerSum * (kAtSum - std::log2(static_cast<double>(problem.k)));
    if (problem.layout == static_cast<int>(Layout::nn)) score += kNn;
  }
  return 1.0 / (1.0 + std::exp(-score));
}

/// The same of products that cuDNN runs for convolutions of single pixels: it goes less by their size. With the numbers
/// above channels-last ones (21 profiled, none held out) are met by 9.6 % on average, with these by 7.6 %.
double share_in_convolutions(const GemmWork& problem) {
  constexpr double kAtWork = 28.69, kPerDoubling = 0.1, kNn = 0.483, kTn = 0.475;
  double share = kPerDoubling * (kAtWork - log2_of_work(problem));
  if (problem.layout == static_cast<int>(Layout::nn)) share += kNn;
  if (problem.layout >= static_cast<int>(Layout::tn)) share += kTn;
  return std::clamp(share, 0.0, 1.0);
}

double share_of_older(const GemmWork& problem) {
  if (problem.type != DType::tf32) return 0.0;
  return problem.of_convolution ? share_in_convolutions(problem) : share_of_older_kernels(problem);
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
  // Of 11,700 profiled products of aligned 16-bit operands on an H200 none ran kernels of mma.sync but 45 of 106 with
  // sums of 200,000 values and more; of Blackwell's none is known.
  constexpr std::int64_t kLongSum = 200000;
  const bool alone =
      problem.tensor_memory || (is_half(problem.type) && !problem.of_convolution && problem.k < kLongSum);
  if (alone && selection.choice != nullptr) return selection;
  GemmWork before = problem;
  before.family = GemmWork::Family::mma_sync;
  const double share = share_of_older(problem);
  // Where none keep to the older kernels only faster ones count: none that ranks behind their second does.
  const GemmSelection older = from_class(before, share > 0.0 ? kAny : kMostSlower * selection.expected);
  if (older.choice == nullptr) return selection;
  GemmSelection made = share >= 0.5 || selection.choice == nullptr ? older : selection;
  made.expected = of_generations(selection.expected, older.expected, share);
  return made;
}

}  // namespace ridgeline
