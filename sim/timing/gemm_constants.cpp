#include "sim/timing/gemm_constants.h"

namespace ridgeline {
namespace {

// Fitted on 1214 products of an H200 (median error 4.7 %, mean 6.5 %); 356 held out: 3.7 %, 5.3 %.
constexpr GemmConstants kWgmmaHalf{.latency_cycles = 2130,
                                   .fixed_cycles = 4180,
                                   .epilogue_bytes = 25.2,
                                   .split_cycles = 4870,
                                   .split_bandwidth = 1.54,
                                   .read_share = 0.942,
                                   .port_bytes = 70.3,
                                   .misaligned_load = 1.49,
                                   .misaligned_store = 0.128,
                                   .misaligned_write = 1.11};

// Fitted on 446 products of an H200 (median error 6.7 %, mean 9.3 %); 136 held out: 6.2 %, 9.5 %.
constexpr GemmConstants kWgmmaTf32{.latency_cycles = 2910,
                                   .fixed_cycles = 5200,
                                   .epilogue_bytes = 21.2,
                                   .read_share = 0.945,
                                   .port_bytes = 70.2,
                                   .misaligned_load = 1.5,
                                   .misaligned_store = 0.256,
                                   .rate_tn = 0.585,
                                   .rate_nn = 0.879};

// Not on the measured chip: structure and epilogue of its tf32 cp.async kernels; the share of issue slots that loads
// take is assumed (a cp.async moves 16 bytes a thread), and more where every load passes through registers to shared
// memory.
constexpr GemmConstants kMmaHalf{.utilization = 1.0,
                                 .latency_cycles = 500,
                                 .fixed_cycles = 3700,
                                 .epilogue_cycles = 1889,
                                 .epilogue_bytes = 22.4,
                                 .split_cycles = 4400,
                                 .split_bandwidth = 1.0,
                                 .read_share = 0.945,
                                 .load_slots = 0.003,
                                 .epilogue_overlap = 0.86};
constexpr GemmConstants kMmaHalfStaged{.utilization = 1.0,
                                       .latency_cycles = 500,
                                       .fixed_cycles = 3700,
                                       .epilogue_cycles = 1889,
                                       .epilogue_bytes = 22.4,
                                       .split_cycles = 4400,
                                       .split_bandwidth = 1.0,
                                       .read_share = 0.945,
                                       .load_slots = 0.02,
                                       .epilogue_overlap = 0.86};

// Fitted on 196 products of an H200 (median error 4.9 %, mean 7.6 %); 41 held out: 6.0 %, 8.1 %.
constexpr GemmConstants kMmaHalfAlign4{.utilization = 0.958,
                                       .latency_cycles = 1510,
                                       .fixed_cycles = 1900,
                                       .epilogue_cycles = 4530,
                                       .epilogue_bytes = 25.5,
                                       .split_cycles = 1500,
                                       .split_bandwidth = 1.07,
                                       .read_share = 0.945,
                                       .misaligned_write = 0.0617,
                                       .load_slots = 0.0894,
                                       .load_slots_nt = 1.09,
                                       .epilogue_overlap = 0.627};

// Fitted on 86 products of an H200 (median error 6.6 %, mean 8.1 %); 30 held out: 8.3 %, 8.6 %.
constexpr GemmConstants kMmaHalfAlign2{.utilization = 0.367,
                                       .latency_cycles = 1470,
                                       .fixed_cycles = 2830,
                                       .epilogue_cycles = 3760,
                                       .epilogue_bytes = 50,
                                       .split_cycles = 5790,
                                       .split_bandwidth = 1.09,
                                       .read_share = 0.945,
                                       .misaligned_write = 2.41,
                                       .load_slots = 0.0974,
                                       .load_slots_nt = 1.41,
                                       .epilogue_overlap = 0.996};

// Fitted together with the wgmma kernels on 446 products of an H200 (median error 6.7 %, mean 9.3 %); 136 held out: 6.2
// %, 9.5 %.
constexpr GemmConstants kMmaTf32{.latency_cycles = 466,
                                 .fixed_cycles = 1650,
                                 .epilogue_cycles = 2350,
                                 .epilogue_bytes = 16.5,
                                 .split_cycles = 4320,
                                 .split_bandwidth = 2,
                                 .read_share = 0.945,
                                 .misaligned_write = 0.951,
                                 .load_slots = 0.0532,
                                 .load_slots_nt = 0.936,
                                 .epilogue_overlap = 0.798};

// Fitted on 103 products of an H200 (median error 5.7 %, mean 8.0 %); 22 held out: 8.4 %, 10.0 %.
constexpr GemmConstants kMmaTf32Align4{.latency_cycles = 1520,
                                       .fixed_cycles = 2240,
                                       .epilogue_cycles = 5000,
                                       .epilogue_bytes = 32.1,
                                       .split_cycles = 2700,
                                       .split_bandwidth = 0.649,
                                       .read_share = 0.945,
                                       .load_slots = 0.191,
                                       .load_slots_nt = 0.963,
                                       .epilogue_overlap = 0.478};

// Fitted on 417 products of an H200 (median error 5.5 %, mean 6.9 %); 121 held out: 5.0 %, 6.9 %.
// The utilization is assumed: it binds only where an SM's lanes are slower than its issue (Volta, Turing, A100), whose
// public fp32 squares reach 0.90 to 0.92 of the peak at their clock.
constexpr GemmConstants kSimt{.utilization = 0.92,
                              .latency_cycles = 255,
                              .fixed_cycles = 2850,
                              .epilogue_cycles = 2620,
                              .epilogue_bytes = 8.25,
                              .split_cycles = 7000,
                              .split_bandwidth = 2,
                              .read_share = 0.945,
                              .misaligned_write = 1.32,
                              .load_slots = 0.153,
                              .load_slots_nt = 1.2,
                              .epilogue_overlap = 0.995};

}  // namespace

GemmClass gemm_class_of(const GemmWork& work, const Gpu& gpu) {
  if (work.family == GemmWork::Family::simt) return GemmClass::simt;
  const bool half = is_half(work.type);
  if (work.family == GemmWork::Family::wgmma) return half ? GemmClass::wgmma_half : GemmClass::wgmma_tf32;
  if (half && !gpu.sm.async_copy && work.alignment >= 16) return GemmClass::mma_half_staged;
  if (half)
    return work.alignment >= 16  ? GemmClass::mma_half
           : work.alignment >= 4 ? GemmClass::mma_half_align4
                                 : GemmClass::mma_half_align2;
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
