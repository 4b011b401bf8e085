// What the kernels around fused attention have in common: rows of its sequences in whole tiles, and the small kernels
// before and after the one that multiplies.
#pragma once

#include <cstdint>
#include <string>

#include "sim/kernels/attention/attention_tiles.h"
#include "sim/launch/kernel_launch.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// Throws std::invalid_argument for shapes that no kernel takes.
void check_attention(const Attention& op);

/// Of the whole batch: one a row, or those that are packed into each.
std::int64_t sequences_of(const Attention& op);
/// Tiles of `rows` queries that the sequences of the whole batch begin, for one head.
std::int64_t tiles_of_rows(const Attention& op, std::int64_t rows);
/// Rows of FlashAttention's accumulators for one head. Packed sequences lie 128 rows apart (mha_varlen_bwd of
/// aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp).
std::int64_t rows_of_accumulator(const Attention& op);

/// Row sums of dO·O, which clear the accumulator of dQ, or its conversion: FlashAttention's take a tile's rows a block,
/// cuDNN's 1024 elements (rows padded to 32, 64 or 128 of them) and 2048 (whole rows).
KernelLaunch row_kernel(const Attention& op, MemoryBoundKernel kernel, std::string name, const AttentionTile& tile);
/// Adds up forwards of ranges of keys: 4, 8 or 16 rows a block, a range after the other.
KernelLaunch split_combine(const Attention& op, int head_dim, int splits);

}  // namespace ridgeline
