#include "sim/timing/products/gemm_constants.h"

#include "sim/timing/tables/products.inc"
#include "sim/timing/tables/split_reduction.inc"

namespace ridgeline {

namespace {

/// Chips whose SMs have 100 KB of shared memory for blocks, where the same kernels meet other limits.
bool is_narrow(const Gpu& gpu) {
  const bool ampere_or_ada = gpu.compute_major == 8 && (gpu.compute_minor == 6 || gpu.compute_minor == 9);
  return ampere_or_ada || gpu.compute_major >= 12;
}

}  // namespace

GemmClass gemm_class_of(const GemmWork& work, const Gpu& gpu) {
  if (work.family == GemmWork::Family::simt) return GemmClass::simt;
  const bool half = is_half(work.type);
  if (work.scaling == Scaling::tensor) return GemmClass::wgmma_promoted;
  if (work.scaling == Scaling::rows_fast) return GemmClass::wgmma_row_scaled;
  if (work.family == GemmWork::Family::wgmma && half && work.tensor_memory) return GemmClass::tcgen05_half;
  if (work.family == GemmWork::Family::wgmma) return half ? GemmClass::wgmma_half : GemmClass::wgmma_tf32;
  if (half && !gpu.sm.async_copy && work.alignment >= 16) return GemmClass::mma_half_staged;
  if (half && work.alignment >= 16 && is_narrow(gpu)) return GemmClass::mma_half_narrow;
  if (half)
    return work.alignment >= 16  ? GemmClass::mma_half
           : work.alignment >= 4 ? GemmClass::mma_half_align4
                                 : GemmClass::mma_half_align2;
  return work.alignment >= 16 ? GemmClass::mma_tf32 : GemmClass::mma_tf32_align4;
}

const SplitReduction& split_reduction_of(bool cuda_cores_own) {
  return cuda_cores_own ? split_reduction_table::own : split_reduction_table::common;
}

const GemmConstants& gemm_constants(GemmClass kernel_class) {
  switch (kernel_class) {
    case GemmClass::tcgen05_half: return products_table::tcgen05_half;
    case GemmClass::wgmma_half: return products_table::wgmma_half;
    case GemmClass::wgmma_tf32: return products_table::wgmma_tf32;
    case GemmClass::wgmma_promoted: return products_table::wgmma_promoted;
    case GemmClass::wgmma_row_scaled: return products_table::wgmma_row_scaled;
    case GemmClass::mma_half: return products_table::mma_half;
    case GemmClass::mma_half_narrow: return products_table::mma_half_narrow;
    case GemmClass::mma_half_staged: return products_table::mma_half_staged;
    case GemmClass::mma_half_align4: return products_table::mma_half_align4;
    case GemmClass::mma_half_align2: return products_table::mma_half_align2;
    case GemmClass::mma_tf32: return products_table::mma_tf32;
    case GemmClass::mma_tf32_align4: return products_table::mma_tf32_align4;
    case GemmClass::simt: return products_table::simt;
  }
  return products_table::simt;
}

}  // namespace ridgeline
