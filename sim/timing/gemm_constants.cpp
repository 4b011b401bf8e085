#include "sim/timing/gemm_constants.h"

namespace ridgeline {
namespace {

constexpr GemmConstants kWgmmaHalf{.utilization = 0.956, .latency_cycles = 1493, .fixed_cycles = 3800, .epilogue_bytes = 18.8,
    .split_cycles = 4225, .split_bandwidth = 0.365, .read_share = 0.945, .shared_write = 0.675, .misaligned_load = 0.57,
    .misaligned_store = 0.56, .exposed_epilogue = 0.67};

constexpr GemmConstants kWgmmaTf32{.utilization = 1.0, .latency_cycles = 1477, .fixed_cycles = 4940, .epilogue_cycles = 179,
    .epilogue_bytes = 16, .split_cycles = 1880, .split_bandwidth = 0.22, .read_share = 0.945, .shared_write = 0.49,
    .misaligned_load = 0.85, .misaligned_store = 1.18, .exposed_epilogue = 0.43, .rate_tn = 0.607, .rate_nn = 0.935};

constexpr GemmConstants kMmaHalf{.utilization = 0.95, .latency_cycles = 500, .fixed_cycles = 3700, .epilogue_cycles = 1889,
    .epilogue_bytes = 22.4, .split_cycles = 4400, .split_bandwidth = 1.0, .read_share = 0.945, .epilogue_overlap = 0.86};

constexpr GemmConstants kMmaHalfAlign4{.utilization = 0.322, .latency_cycles = 870, .fixed_cycles = 3700, .epilogue_cycles = 3779,
    .epilogue_bytes = 22.4, .split_cycles = 4400, .split_bandwidth = 1.66, .read_share = 0.945, .load_slots = 0.0221, .epilogue_overlap = 0.86};

constexpr GemmConstants kMmaHalfAlign2{.utilization = 0.198, .latency_cycles = 2021, .fixed_cycles = 3700, .epilogue_cycles = 3779,
    .epilogue_bytes = 22.4, .split_cycles = 4400, .split_bandwidth = 1.66, .read_share = 0.945, .load_slots = 0.0522, .load_slots_nt = 1.84,
    .epilogue_overlap = 0.86};

constexpr GemmConstants kMmaTf32{.utilization = 0.95, .latency_cycles = 500, .fixed_cycles = 3700, .epilogue_cycles = 1889,
    .epilogue_bytes = 22.4, .split_cycles = 4400, .split_bandwidth = 1.0, .read_share = 0.945, .epilogue_overlap = 0.86};

constexpr GemmConstants kMmaTf32Align4{.utilization = 1.0, .latency_cycles = 2280, .fixed_cycles = 3700, .epilogue_cycles = 5000,
    .epilogue_bytes = 76.5, .split_cycles = 4400, .split_bandwidth = 1.66, .read_share = 0.945, .load_slots = 0.2335, .load_slots_nt = 0.84,
    .epilogue_overlap = 0.86};

constexpr GemmConstants kSimt{.utilization = 1.0, .latency_cycles = 213, .fixed_cycles = 2620, .epilogue_cycles = 3315,
    .epilogue_bytes = 8.6, .split_cycles = 3670, .split_bandwidth = 1.06, .read_share = 0.945, .load_slots = 0.149, .load_slots_nt = 1.21,
    .epilogue_overlap = 1.0};

}  // namespace

GemmClass gemm_class_of(const GemmWork& work, const Gpu&) {
  if (work.family == GemmWork::Family::simt) return GemmClass::simt;
  const bool half = is_half(work.type);
  if (work.family == GemmWork::Family::wgmma) return half ? GemmClass::wgmma_half : GemmClass::wgmma_tf32;
  if (half) return work.alignment >= 16 ? GemmClass::mma_half : work.alignment >= 4 ? GemmClass::mma_half_align4 : GemmClass::mma_half_align2;
  return work.alignment >= 16 ? GemmClass::mma_tf32 : GemmClass::mma_tf32_align4;
}

const GemmConstants& gemm_constants(GemmClass kernel_class) {
  switch (kernel_class) {
    case GemmClass::wgmma_half: return kWgmmaHalf;
    case GemmClass::wgmma_tf32: return kWgmmaTf32;
    case GemmClass::mma_half: return kMmaHalf;
    case GemmClass::mma_half_align4: return kMmaHalfAlign4;
    case GemmClass::mma_half_align2: return kMmaHalfAlign2;
    case GemmClass::mma_tf32: return kMmaTf32;
    case GemmClass::mma_tf32_align4: return kMmaTf32Align4;
    case GemmClass::simt: return kSimt;
  }
  return kSimt;
}

}  // namespace ridgeline
