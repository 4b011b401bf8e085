// What the law of fused attention needs to know about the kernels' code: the fitted constants of each kernel family.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

enum class AttentionClass : std::uint8_t {
  flash_forward,
  flash_backward,  ///< FlashAttention-2: mma.sync
  cudnn_forward,
  cudnn_backward,  ///< cuDNN on Hopper: wgmma, persistent
  efficient_forward_half,
  efficient_backward_half,  ///< CUTLASS fused attention of PyTorch
  efficient_forward_fp32,
  efficient_backward_fp32  ///< the same; fp32 as three tf32 products
};
AttentionClass attention_class_of(const AttentionWork& work);

/// Utilization, exposure and latency of one kernel are not identified separately by timings on one chip: read them as a
/// fit, not as hardware. FlashAttention's utilization is assumed (0.95), so that its operand loads carry over to other
/// chips. Kernels for head dimensions up to 64 (`narrow`) and above (`wide`) differ in tile and warps.
struct AttentionConstants {
  double utilization_narrow = 1, utilization_wide = 1;  ///< of the tensor pipe's rate while it works
  double operand_loads_narrow = 0,
         operand_loads_wide = 0;  ///< weight of reading mma.sync's operands from shared memory
  double exposed =
      0.5;  ///< of the shorter of a tile's products and its softmax, the share that the longer does not hide
  double tile_cycles_narrow = 0,
         tile_cycles_wide = 0;  ///< latency of a tile's dependent steps, shared by the blocks of an SM
  double block_cycles = 0;      ///< prologue and epilogue of a block
  double fixed_cycles = 0;      ///< start of the grid, drain
  double diagonal_tiles = 0;    ///< extra tiles a block of causal attention spends on the masked diagonal
  double uneven = 1;            ///< factor on a tile where the sequence is no multiple of it and edges are checked …
  double uneven_causal_narrow = 1,
         uneven_causal_wide = 1;  ///< … and under a causal mask (FlashAttention's variant spills registers)
  double read_share = 1;          ///< achieved of the DRAM's streaming bandwidth
};
const AttentionConstants& attention_constants(AttentionClass kernel_class);

/// A helper kernel: fixed cycles, then bytes at a share of the DRAM's bandwidth.
struct AttentionHelperConstants {
  double fixed_cycles = 0, bandwidth_share = 1;
};
const AttentionHelperConstants& attention_helper_constants(AttentionWork::Part part);

}  // namespace ridgeline
