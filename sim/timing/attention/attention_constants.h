// What the law of fused attention needs to know about the kernels' code: the fitted constants of each kernel family.
#pragma once

#include <cstdint>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

enum class AttentionClass : std::uint8_t {
  flash_forward,
  flash_forward_split,  ///< over a part of the keys
  flash_backward,       ///< FlashAttention-2: mma.sync
  flash_forward_packed,
  flash_backward_packed,  ///< of sequences that lie behind each other, by cumulative lengths
  cudnn_forward,
  cudnn_backward,  ///< cuDNN on Hopper: wgmma, persistent
  efficient_forward_half,
  efficient_backward_half,  ///< CUTLASS fused attention of PyTorch
  efficient_forward_fp32,
  efficient_backward_fp32  ///< the same; fp32 as three tf32 products
};
AttentionClass attention_class_of(const AttentionWork& work);

/// What differs between the kernels for head dimensions up to 64 (narrow), up to 128 (wide) and above (long): other
/// tiles and warps.
struct AttentionWidth {
  double utilization = 1;    ///< of the tensor pipe's rate while it works
  double operand_loads = 0;  ///< weight of reading mma.sync's operands from shared memory
  double tile_cycles = 0;    ///< latency of a tile's dependent steps, shared by the blocks of an SM; long: at 192
  double block_cycles = 0;   ///< prologue and epilogue of a block
  double uneven_causal = 1;  ///< factor on a causal tile where the sequence is no multiple of it
  double padded = 1;         ///< on a tile where the head dimension is not the kernel's and columns are checked
  double drift = 0;          ///< of spilled_masked: what it grows by as the blocks of an SM fall out of step
};

/// Utilization, exposure and latency of one kernel are not identified separately by timings on one chip: read them as a
/// fit, not as hardware. FlashAttention's forward utilization is assumed (1), so that its operand loads and the overlap
/// of a tile carry over to other chips.
struct AttentionConstants {
  AttentionWidth narrow, wide, large;
  double exposed = 0;  ///< of the shorter of a tile's products and its softmax, what the longer does not hide
  double softmax_operations = 2.8;  ///< thread operations of a score besides its exponential: scale, maximum, sum, type
  double fixed_cycles = 0;          ///< start of the grid, drain
  double first_masked = 0;          ///< more of a tile's time for the first tile of a block that is masked …
  double further_masked = 0;        ///< … for each further one …
  double spilled_masked = 0;        ///< … in kernels that spill registers (FlashAttention, causal, uneven)
  double unmasked_cycles = 0;       ///< of a packed block that spills and goes on to tiles without a mask
  double leaving_cycles = 0;        ///< of a block beyond the end of its packed sequence
  double uneven = 1;                ///< factor on a tile where the sequence is no multiple of it and edges are checked
  double overlap = 4;               ///< exponent of the norm of arithmetic and memory
  double tile_overlap = 1;   ///< the same of a tile's products and its loads; 1: one after the other
  double short_block = 1;    ///< of block_cycles, for up to 64 positions: fewer rows to load and store, idle warps
  double read_share = 0.92;  ///< achieved of the DRAM's streaming bandwidth
  [[nodiscard]] const AttentionWidth& width(double head_dim) const {
    return head_dim <= 64 ? narrow : head_dim <= 128 ? wide : large;
  }
};
const AttentionConstants& attention_constants(AttentionClass kernel_class);

}  // namespace ridgeline
