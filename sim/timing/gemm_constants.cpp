#include "sim/timing/gemm_constants.h"

namespace ridgeline {
namespace {

// Fitted on 1214 products of an H200 (median error 4.7 %, mean 6.5 %); 356 held out: 3.7 %, 5.3 %.
constexpr GemmConstants kWgmmaHalf{.latency_cycles = 2130, .fixed_cycles = 4180, .epilogue_bytes = 25.2, .split_cycles = 4870,
    .split_bandwidth = 1.54, .read_share = 0.942, .port_bytes = 70.3, .misaligned_load = 1.49,
    .misaligned_store = 0.13, .misaligned_write = 1.11};

// Fitted on 446 products of an H200 (median error 6.6 %, mean 9.2 %); 136 held out: 6.1 %, 9.5 %.
constexpr GemmConstants kWgmmaTf32{.latency_cycles = 2910, .fixed_cycles = 5200, .epilogue_bytes = 21.2, .read_share = 0.945,
    .port_bytes = 69.8, .misaligned_load = 1.49, .misaligned_store = 0.249, .rate_tn = 0.584,
    .rate_nn = 0.879};

// Not on the measured chip: structure and epilogue of its tf32 cp.async kernels; the share of issue slots that loads take is
// assumed (a cp.async moves 16 bytes a thread), and more where every load passes through registers to shared memory.
constexpr GemmConstants kMmaHalf{.utilization = 1.0, .latency_cycles = 500, .fixed_cycles = 3700, .epilogue_cycles = 1889,
    .epilogue_bytes = 22.4, .split_cycles = 4400, .split_bandwidth = 1.0, .read_share = 0.945, .load_slots = 0.003, .epilogue_overlap = 0.86};
constexpr GemmConstants kMmaHalfStaged{.utilization = 1.0, .latency_cycles = 500, .fixed_cycles = 3700, .epilogue_cycles = 1889,
    .epilogue_bytes = 22.4, .split_cycles = 4400, .split_bandwidth = 1.0, .read_share = 0.945, .load_slots = 0.02, .epilogue_overlap = 0.86};

// Fitted on 196 products of an H200 (median error 4.9 %, mean 7.6 %); 41 held out: 5.9 %, 8.1 %.
constexpr GemmConstants kMmaHalfAlign4{.utilization = 0.958, .latency_cycles = 1510, .fixed_cycles = 1900, .epilogue_cycles = 4530,
    .epilogue_bytes = 25.5, .split_cycles = 1500, .split_bandwidth = 1.07, .read_share = 0.945,
    .misaligned_write = 0.0617, .load_slots = 0.0896, .load_slots_nt = 1.09, .epilogue_overlap = 0.627};

// Fitted on 86 products of an H200 (median error 6.5 %, mean 8.0 %); 30 held out: 8.3 %, 8.6 %.
constexpr GemmConstants kMmaHalfAlign2{.utilization = 0.367, .latency_cycles = 1470, .fixed_cycles = 2830, .epilogue_cycles = 3770,
    .epilogue_bytes = 49.4, .split_cycles = 5800, .split_bandwidth = 1.09, .read_share = 0.945,
    .misaligned_write = 2.41, .load_slots = 0.0973, .load_slots_nt = 1.41, .epilogue_overlap = 0.996};

// Fitted together with the wgmma kernels on 446 products of an H200 (median error 6.6 %, mean 9.2 %); 136 held out: 6.1 %, 9.5 %.
constexpr GemmConstants kMmaTf32{.latency_cycles = 474, .fixed_cycles = 1670, .epilogue_cycles = 2290, .epilogue_bytes = 16.4,
    .split_cycles = 4250, .split_bandwidth = 2, .read_share = 0.945, .misaligned_write = 0.95,
    .load_slots = 0.0536, .load_slots_nt = 0.928, .epilogue_overlap = 0.792};

// Fitted on 103 products of an H200 (median error 5.7 %, mean 8.0 %); 22 held out: 8.4 %, 10.0 %.
constexpr GemmConstants kMmaTf32Align4{.latency_cycles = 1520, .fixed_cycles = 2240, .epilogue_cycles = 5000, .epilogue_bytes = 32.1,
    .split_cycles = 2700, .split_bandwidth = 0.649, .read_share = 0.945, .load_slots = 0.191,
    .load_slots_nt = 0.963, .epilogue_overlap = 0.478};

// Fitted on 417 products of an H200 (median error 5.7 %, mean 7.1 %); 121 held out: 5.0 %, 7.2 %.
constexpr GemmConstants kSimt{.utilization = 0.92, .latency_cycles = 267, .fixed_cycles = 2900, .epilogue_cycles = 2470, .epilogue_bytes = 8.35,
    .split_cycles = 7000, .split_bandwidth = 1.97, .read_share = 0.945, .misaligned_write = 1.44,
    .load_slots = 0.154, .load_slots_nt = 1.24, .epilogue_overlap = 0.994};

}  // namespace

GemmClass gemm_class_of(const GemmWork& work, const Gpu& gpu) {
  if (work.family == GemmWork::Family::simt) return GemmClass::simt;
  const bool half = is_half(work.type);
  if (work.family == GemmWork::Family::wgmma) return half ? GemmClass::wgmma_half : GemmClass::wgmma_tf32;
  if (half && !gpu.sm.async_copy && work.alignment >= 16) return GemmClass::mma_half_staged;
  if (half) return work.alignment >= 16 ? GemmClass::mma_half : work.alignment >= 4 ? GemmClass::mma_half_align4 : GemmClass::mma_half_align2;
  return work.alignment >= 16 ? GemmClass::mma_tf32 : GemmClass::mma_tf32_align4;
}

const GemmConstants& gemm_constants(GemmClass kernel_class) {
  switch (kernel_class) {
    case GemmClass::wgmma_half: return kWgmmaHalf;
    case GemmClass::wgmma_tf32: return kWgmmaTf32;
    case GemmClass::mma_half: return kMmaHalf;
    case GemmClass::mma_half_staged: return kMmaHalfStaged;
    case GemmClass::mma_half_align4: return kMmaHalfAlign4;
    case GemmClass::mma_half_align2: return kMmaHalfAlign2;
    case GemmClass::mma_tf32: return kMmaTf32;
    case GemmClass::mma_tf32_align4: return kMmaTf32Align4;
    case GemmClass::simt: return kSimt;
  }
  return kSimt;
}

}  // namespace ridgeline
