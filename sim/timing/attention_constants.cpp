#include "sim/timing/attention_constants.h"

#include "sim/workload/op.h"

namespace ridgeline {
namespace {

// Fitted on 634 kernels of H200s (median error 3.1 %, mean 4.5 %); 103 that no fit saw: 4.4 %, 6.1 %.
constexpr AttentionConstants kFlashForward{
    .narrow = {.utilization = 0.95,
               .operand_loads = 0.379,
               .tile_cycles = 1.76e+03,
               .block_cycles = 5.8e+03,
               .padded = 1.35,
               .drift = 1.76},
    .wide = {.utilization = 0.95,
             .operand_loads = 0.0586,
             .tile_cycles = 1.37e+03,
             .block_cycles = 5.8e+03,
             .padded = 1.13,
             .drift = 0.6},
    .large = {.utilization = 0.95, .operand_loads = 0.427, .tile_cycles = 675, .block_cycles = 5.8e+03, .padded = 1.13},
    .softmax_operations = 1.75,
    .fixed_cycles = 1.5e+03,
    .first_masked = 0.106,
    .further_masked = 0.57,
    .spilled_masked = 0.817,
    .overlap = 2.11,
    .short_block = 0.922};
// The same kernel over a part of the keys, in smaller blocks: of that fit.
constexpr AttentionConstants kFlashForwardSplit{.narrow = {.utilization = 0.747,
                                                           .operand_loads = 0.483,
                                                           .tile_cycles = 878,
                                                           .block_cycles = 6.75e+03,
                                                           .padded = 1.35,
                                                           .drift = 1.76},
                                                .wide = {.utilization = 0.747,
                                                         .operand_loads = 0.0746,
                                                         .tile_cycles = 683,
                                                         .block_cycles = 6.75e+03,
                                                         .padded = 1.13,
                                                         .drift = 0.6},
                                                .large = {.utilization = 0.747,
                                                          .operand_loads = 0.543,
                                                          .tile_cycles = 337,
                                                          .block_cycles = 6.75e+03,
                                                          .padded = 1.13},
                                                .softmax_operations = 1.75,
                                                .fixed_cycles = 1.5e+03,
                                                .first_masked = 0.106,
                                                .further_masked = 0.57,
                                                .spilled_masked = 0.817,
                                                .overlap = 2.11,
                                                .short_block = 0.922};
// Fitted on 621 kernels of H200s (median error 2.1 %, mean 2.8 %); 107 that no fit saw: 1.9 %, 2.9 %.
constexpr AttentionConstants kFlashBackward{.narrow = {.utilization = 0.95,
                                                       .operand_loads = 0.409,
                                                       .tile_cycles = 2.9e+03,
                                                       .block_cycles = 5.86e+03,
                                                       .uneven_causal = 1.04,
                                                       .padded = 1.07},
                                            .wide = {.utilization = 0.95,
                                                     .operand_loads = 0.0435,
                                                     .tile_cycles = 3.04e+03,
                                                     .block_cycles = 5.86e+03,
                                                     .uneven_causal = 1.12,
                                                     .padded = 1.1},
                                            .large = {.utilization = 0.95,
                                                      .operand_loads = 0.0584,
                                                      .tile_cycles = 3.35e+03,
                                                      .block_cycles = 5.86e+03,
                                                      .uneven_causal = 1.12,
                                                      .padded = 1.1},
                                            .fixed_cycles = 1.37e+03,
                                            .first_masked = 0.0623,
                                            .further_masked = 0.0623,
                                            .uneven = 1.14,
                                            .overlap = 1.93};
// Fitted on 716 kernels of H200s (median error 1.8 %, mean 2.6 %); 105 that no fit saw: 2.0 %, 2.7 %.
constexpr AttentionConstants kCudnnForward{
    .narrow = {.utilization = 0.778, .tile_cycles = 90.3, .block_cycles = 1.61e+03, .uneven_causal = 1.07},
    .wide = {.tile_cycles = 63.9, .block_cycles = 2.02e+03, .uneven_causal = 1.04},
    .large = {.tile_cycles = 159, .block_cycles = 3.06e+03, .uneven_causal = 1.04},
    .exposed = 0.33,
    .fixed_cycles = 4.25e+03,
    .first_masked = 0.289,
    .further_masked = 0.289,
    .uneven = 1.17,
    .overlap = 6};
// Fitted on 733 kernels of H200s (median error 2.4 %, mean 3.2 %); 98 that no fit saw: 2.7 %, 3.5 %.
constexpr AttentionConstants kCudnnBackward{
    .narrow = {.utilization = 0.983, .tile_cycles = 1.12e+03, .block_cycles = 5.47e+03, .uneven_causal = 1.1},
    .wide = {.utilization = 0.804, .tile_cycles = 453, .block_cycles = 6.4e+03},
    .large = {.utilization = 0.467, .tile_cycles = 809, .block_cycles = 8.04e+03},
    .exposed = 0.05,
    .fixed_cycles = 3.5e+03,
    .first_masked = 0.246,
    .further_masked = 0.246,
    .uneven = 1.04,
    .overlap = 1.93,
    .short_block = 0.893};
// Fitted on 132 kernels of H200s (median error 2.4 %, mean 3.5 %); 19 that no fit saw: 3.7 %, 5.4 %.
constexpr AttentionConstants kEfficientForwardHalf{
    .narrow = {.utilization = 0.987, .tile_cycles = 3.55e+03, .block_cycles = 4.4e+03},
    .wide = {.utilization = 0.83, .tile_cycles = 4.77e+03, .block_cycles = 3.9e+03},
    .large = {.utilization = 0.318, .tile_cycles = 4.31e+03, .block_cycles = 3.9e+03},
    .exposed = 1.6,
    .fixed_cycles = 987,
    .first_masked = 0.03,
    .further_masked = 0.03,
    .overlap = 4.15};
// Fitted on 135 kernels of H200s (median error 2.2 %, mean 3.9 %); 16 that no fit saw: 3.1 %, 4.4 %.
constexpr AttentionConstants kEfficientBackwardHalf{
    .narrow = {.utilization = 0.691, .tile_cycles = 1.07e+04, .block_cycles = 5.47e+03, .uneven_causal = 1.1},
    .wide = {.utilization = 0.906, .tile_cycles = 2.49e+04, .block_cycles = 5.49e+03, .uneven_causal = 1.1},
    .large = {.utilization = 0.1, .tile_cycles = 5.27e+04, .block_cycles = 5.49e+03, .uneven_causal = 1.1},
    .exposed = 1.93,
    .fixed_cycles = 294,
    .first_masked = 0.04,
    .further_masked = 0.04,
    .uneven = 1.2,
    .overlap = 1.5};
// Fitted on 292 kernels of H200s (median error 2.9 %, mean 3.9 %); 37 that no fit saw: 2.5 %, 4.1 %.
constexpr AttentionConstants kEfficientForwardFp32{
    .narrow = {.utilization = 0.779, .tile_cycles = 8.71e+03, .block_cycles = 4.89e+03},
    .wide = {.utilization = 0.953, .tile_cycles = 8.52e+03, .block_cycles = 4.37e+03},
    .large = {.utilization = 0.775, .tile_cycles = 1.82e+04, .block_cycles = 4.37e+03},
    .exposed = 2.4,
    .fixed_cycles = 509,
    .first_masked = 0.0295,
    .further_masked = 0.0295,
    .overlap = 1.86};
// Fitted on 271 kernels of H200s (median error 2.8 %, mean 5.2 %); 36 that no fit saw: 2.6 %, 5.4 %.
constexpr AttentionConstants kEfficientBackwardFp32{
    .narrow = {.utilization = 0.89, .tile_cycles = 1.91e+04, .block_cycles = 3.79e+03},
    .wide = {.utilization = 0.656, .tile_cycles = 2.56e+04, .block_cycles = 7.76e+03},
    .large = {.utilization = 0.521, .tile_cycles = 2.74e+04, .block_cycles = 7.76e+03},
    .exposed = 1,
    .fixed_cycles = 3.56e+03,
    .first_masked = 0.03,
    .further_masked = 0.03,
    .overlap = 3.24};

}  // namespace

AttentionClass attention_class_of(const AttentionWork& work) {
  const bool backward = work.part == AttentionWork::Part::backward;
  switch (static_cast<AttentionBackend>(work.backend)) {
    case AttentionBackend::flash:
      return backward          ? AttentionClass::flash_backward
             : work.splits > 1 ? AttentionClass::flash_forward_split
                               : AttentionClass::flash_forward;
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
    case AttentionClass::flash_forward_split: return kFlashForwardSplit;
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

}  // namespace ridgeline
