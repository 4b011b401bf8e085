// Matrix products in small tiles: blocks of one to four warps that walk through k step by step, what the libraries run
// where a product has few tiles, or rows that cp.async and TMA cannot fetch.
//
// Such blocks wait more than they compute: time is that of a stream (memory_bound_law.cpp) whose passes are k-steps,
// with the panels that the blocks ask of the L2 and the multiply-adds as issue slots.
#pragma once

#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/kernels/products/product_ways.h"

namespace ridgeline {

/// A tile in a number of splits.
struct SmallTileRun {
  int m = 0, n = 0, k = 0, splits = 1;
};

/// The product in small tiles, each with the kernel that adds up its splits; none where the libraries have no such
/// kernels for it. `problem` is gemm_problem(op), `reads` are A, B and what else is read. With `only`: in that tile and
/// as many splits, whether or not they would be taken.
std::vector<ProductWay> small_tile_ways(const GemmWork& problem, const Gpu& gpu, const std::vector<Access>& reads,
                                        const std::vector<Access>& writes, const SmallTileRun* only = nullptr);

/// Whether only small tiles are taken.
bool is_few_summed(const GemmWork& problem, const Gpu& gpu);

/// Whether a tiled kernel leaves fp32 results to a second one that brings them to the output's type, k being in one
/// piece: bf16 products whose rows begin at odd values, narrow ones (15 of 15 profiled ones) and with neither operand
/// transposed those of very short sums (4 of 5), and tf32 ones of few results and a short sum whose rows are aligned
/// (25 of 25).
bool is_always_summed(const GemmWork& problem);

}  // namespace ridgeline
