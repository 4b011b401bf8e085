#include "sim/timing/attention_constants.h"

#include "sim/workload/op.h"

namespace ridgeline {
namespace {

constexpr AttentionConstants kFlashForward{.utilization = 0.72, .exposed_softmax = 0.47, .tile_cycles = 1397, .block_cycles = 3992, .fixed_cycles = 1800, .diagonal_tiles = 0.31, .read_share = 0.92};
constexpr AttentionConstants kFlashBackward{.utilization = 0.577, .exposed_softmax = 0.72, .tile_cycles = 0, .block_cycles = 7067, .fixed_cycles = 1800, .diagonal_tiles = 0.02, .read_share = 0.92};
constexpr AttentionConstants kCudnnForward{.utilization = 0.9, .exposed_softmax = 0.6, .tile_cycles = 0, .block_cycles = 1360, .fixed_cycles = 5200, .diagonal_tiles = 0.24, .read_share = 0.92};
constexpr AttentionConstants kCudnnBackward{.utilization = 0.7, .exposed_softmax = 0.6, .tile_cycles = 0, .block_cycles = 3000, .fixed_cycles = 5200, .diagonal_tiles = 0.24, .read_share = 0.92};
constexpr AttentionConstants kEfficientForwardHalf{.utilization = 0.5, .exposed_softmax = 1.0, .tile_cycles = 1400, .block_cycles = 4000, .fixed_cycles = 1800, .diagonal_tiles = 0, .read_share = 0.92};
constexpr AttentionConstants kEfficientBackwardHalf{.utilization = 0.5, .exposed_softmax = 1.0, .tile_cycles = 1400, .block_cycles = 7000, .fixed_cycles = 1800, .diagonal_tiles = 0, .read_share = 0.92};
constexpr AttentionConstants kEfficientForwardFp32{.utilization = 0.4, .exposed_softmax = 1.0, .tile_cycles = 7331, .block_cycles = 7009, .fixed_cycles = 1800, .diagonal_tiles = 0, .read_share = 0.92};
constexpr AttentionConstants kEfficientBackwardFp32{.utilization = 0.4, .exposed_softmax = 1.0, .tile_cycles = 7331, .block_cycles = 7009, .fixed_cycles = 1800, .diagonal_tiles = 0, .read_share = 0.92};

constexpr AttentionHelperConstants kSplitCombine{.fixed_cycles = 6700, .bandwidth_share = 0.61};
constexpr AttentionHelperConstants kDelta{.fixed_cycles = 3960, .bandwidth_share = 0.77};
constexpr AttentionHelperConstants kConvert{.fixed_cycles = 4750, .bandwidth_share = 0.73};

}  // namespace

AttentionClass attention_class_of(const AttentionWork& work) {
  const bool backward = work.part == AttentionWork::Part::backward;
  switch (static_cast<AttentionBackend>(work.backend)) {
    case AttentionBackend::flash: return backward ? AttentionClass::flash_backward : AttentionClass::flash_forward;
    case AttentionBackend::cudnn: return backward ? AttentionClass::cudnn_backward : AttentionClass::cudnn_forward;
    case AttentionBackend::efficient: break;
  }
  if (is_half(work.type)) return backward ? AttentionClass::efficient_backward_half : AttentionClass::efficient_forward_half;
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
    default: return kSplitCombine;
  }
}

}  // namespace ridgeline
