// What the law of fused attention needs to know about the kernels' code: the fitted constants of each kernel family.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

enum class AttentionClass : std::uint8_t {
  flash_forward, flash_backward,          ///< FlashAttention-2: mma.sync
  cudnn_forward, cudnn_backward,          ///< cuDNN on Hopper: wgmma, persistent
  efficient_forward_half, efficient_backward_half,    ///< CUTLASS fused attention of PyTorch
  efficient_forward_fp32, efficient_backward_fp32     ///< the same; fp32 as three tf32 products
};
AttentionClass attention_class_of(const AttentionWork& work);

struct AttentionConstants {
  double utilization = 1;        ///< of the tensor pipe's rate while it works
  double exposed_softmax = 0.5;  ///< share of a tile's exponentials and element-wise work that the products do not hide
  double tile_cycles = 0;        ///< latency of a tile's dependent steps, shared by the blocks resident on an SM
  double block_cycles = 0;       ///< prologue and epilogue of a block
  double fixed_cycles = 0;       ///< start of the grid, drain
  double diagonal_tiles = 0;     ///< extra tiles a block of causal attention spends on the masked diagonal
  double read_share = 1;         ///< achieved of the DRAM's streaming bandwidth
};
const AttentionConstants& attention_constants(AttentionClass kernel_class);

/// A helper kernel: fixed cycles, then bytes at a share of the DRAM's bandwidth.
struct AttentionHelperConstants {
  double fixed_cycles = 0, bandwidth_share = 1;
};
const AttentionHelperConstants& attention_helper_constants(AttentionWork::Part part);

}  // namespace ridgeline
