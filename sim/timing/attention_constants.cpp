#include "sim/timing/attention_constants.h"

#include "sim/workload/op.h"

namespace ridgeline {
namespace {

// Fitted on 267 kernels of an H200 (median error 3.2 %, mean 5.2 %); 91 held out: 4.9 %, 6.8 %.
constexpr AttentionConstants kFlashForward{.utilization_narrow = 0.95,
                                           .utilization_wide = 0.95,
                                           .operand_loads_narrow = 0.471,
                                           .operand_loads_wide = 0.32,
                                           .exposed = 0,
                                           .tile_cycles_narrow = 1500,
                                           .tile_cycles_wide = 1010,
                                           .block_cycles = 6520,
                                           .fixed_cycles = 1020,
                                           .diagonal_tiles = 0.0685,
                                           .uneven = 1.04,
                                           .uneven_causal_narrow = 1.62,
                                           .uneven_causal_wide = 1.33,
                                           .read_share = 0.92};
// Fitted on 255 kernels of an H200 (median error 2.2 %, mean 3.3 %); 90 held out: 2.4 %, 3.6 %.
constexpr AttentionConstants kFlashBackward{.utilization_narrow = 0.95,
                                            .utilization_wide = 0.95,
                                            .operand_loads_narrow = 0.504,
                                            .exposed = 0,
                                            .tile_cycles_narrow = 2610,
                                            .tile_cycles_wide = 3300,
                                            .block_cycles = 6810,
                                            .fixed_cycles = 500,
                                            .diagonal_tiles = 0.0343,
                                            .uneven = 1.14,
                                            .uneven_causal_narrow = 1.03,
                                            .uneven_causal_wide = 1.1,
                                            .read_share = 0.92};
// Fitted on 333 kernels of an H200 (median error 1.8 %, mean 2.4 %); 114 held out: 2.1 %, 2.7 %.
constexpr AttentionConstants kCudnnForward{.utilization_narrow = 0.758,
                                           .utilization_wide = 0.999,
                                           .exposed = 0.333,
                                           .tile_cycles_narrow = 67.8,
                                           .tile_cycles_wide = 92.7,
                                           .block_cycles = 1490,
                                           .fixed_cycles = 4320,
                                           .diagonal_tiles = 0.31,
                                           .uneven = 1.2,
                                           .uneven_causal_narrow = 1.07,
                                           .uneven_causal_wide = 1.09,
                                           .read_share = 0.92};
// Fitted on 337 kernels of an H200 (median error 2.8 %, mean 3.7 %); 118 held out: 3.1 %, 4.0 %.
constexpr AttentionConstants kCudnnBackward{.utilization_wide = 0.682,
                                            .exposed = 0,
                                            .tile_cycles_narrow = 1110,
                                            .block_cycles = 6820,
                                            .fixed_cycles = 2340,
                                            .diagonal_tiles = 0.276,
                                            .uneven = 1.03,
                                            .read_share = 0.92};
// Fitted on 65 kernels of an H200 (median error 2.6 %, mean 4.1 %); 23 held out: 2.9 %, 4.4 %.
constexpr AttentionConstants kEfficientForwardHalf{.utilization_wide = 0.929,
                                                   .exposed = 1.6,
                                                   .tile_cycles_narrow = 3530,
                                                   .tile_cycles_wide = 5240,
                                                   .block_cycles = 4130,
                                                   .fixed_cycles = 1130,
                                                   .uneven_causal_narrow = 1.19,
                                                   .read_share = 0.92};
// Fitted on 63 kernels of an H200 (median error 2.9 %, mean 3.5 %); 26 held out: 2.0 %, 3.0 %.
constexpr AttentionConstants kEfficientBackwardHalf{.utilization_narrow = 0.702,
                                                    .utilization_wide = 0.95,
                                                    .exposed = 2.01,
                                                    .tile_cycles_narrow = 10600,
                                                    .tile_cycles_wide = 25000,
                                                    .block_cycles = 5840,
                                                    .fixed_cycles = 500,
                                                    .uneven = 1.3,
                                                    .uneven_causal_wide = 1.14,
                                                    .read_share = 0.92};
// Fitted on 160 kernels of an H200 (median error 2.5 %, mean 3.5 %); 48 held out: 3.3 %, 3.6 %.
constexpr AttentionConstants kEfficientForwardFp32{.utilization_narrow = 0.792,
                                                   .exposed = 3,
                                                   .tile_cycles_narrow = 8460,
                                                   .tile_cycles_wide = 8960,
                                                   .block_cycles = 5300,
                                                   .fixed_cycles = 684,
                                                   .read_share = 0.92};
// Fitted on 133 kernels of an H200 (median error 3.2 %, mean 4.8 %); 43 held out: 2.7 %, 3.4 %.
constexpr AttentionConstants kEfficientBackwardFp32{.utilization_wide = 0.622,
                                                    .exposed = 3,
                                                    .tile_cycles_narrow = 19600,
                                                    .tile_cycles_wide = 25000,
                                                    .block_cycles = 8730,
                                                    .fixed_cycles = 2880,
                                                    .uneven = 1.05,
                                                    .read_share = 0.92};

constexpr AttentionHelperConstants kSplitCombine{.fixed_cycles = 6700, .bandwidth_share = 0.61};
constexpr AttentionHelperConstants kDelta{.fixed_cycles = 3490, .bandwidth_share = 0.80};
constexpr AttentionHelperConstants kConvert{.fixed_cycles = 2894, .bandwidth_share = 0.71};

// Eager copies of 16-bit views: 142 of them, median error 3 %.
constexpr AttentionHelperConstants kLayoutCopy{.fixed_cycles = 3290, .bandwidth_share = 0.30};

}  // namespace

AttentionClass attention_class_of(const AttentionWork& work) {
  const bool backward = work.part == AttentionWork::Part::backward;
  switch (static_cast<AttentionBackend>(work.backend)) {
    case AttentionBackend::flash: return backward ? AttentionClass::flash_backward : AttentionClass::flash_forward;
    case AttentionBackend::cudnn: return backward ? AttentionClass::cudnn_backward : AttentionClass::cudnn_forward;
    case AttentionBackend::efficient: break;
  }
  if (is_half(work.type))
    return backward ? AttentionClass::efficient_backward_half : AttentionClass::efficient_forward_half;
  return backward ? AttentionClass::efficient_backward_fp32 : AttentionClass::efficient_forward_fp32;
}

const AttentionConstants& attention_constants(AttentionClass kernel_class) {
  switch (kernel_class) {
    case AttentionClass::flash_forward: return kFlashForward;
    case AttentionClass::flash_backward: return kFlashBackward;
    case AttentionClass::cudnn_forward: return kCudnnForward;
    case AttentionClass::cudnn_backward: return kCudnnBackward;
    case AttentionClass::efficient_forward_half: return kEfficientForwardHalf;
    case AttentionClass::efficient_backward_half: return kEfficientBackwardHalf;
    case AttentionClass::efficient_forward_fp32: return kEfficientForwardFp32;
    case AttentionClass::efficient_backward_fp32: return kEfficientBackwardFp32;
  }
  return kFlashForward;
}

const AttentionHelperConstants& attention_helper_constants(AttentionWork::Part part) {
  switch (part) {
    case AttentionWork::Part::delta: return kDelta;
    case AttentionWork::Part::convert: return kConvert;
    case AttentionWork::Part::layout_copy: return kLayoutCopy;
    default: return kSplitCombine;
  }
}

}  // namespace ridgeline
