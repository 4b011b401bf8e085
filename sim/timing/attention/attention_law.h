// The law of fused attention: blocks of unequal length (causal masks) scheduled onto the SMs' slots, each walking over
// tiles.
//
// A tile of the score matrix costs its matrix products at the pipe's rate, plus the part of its exponentials that those
// do not hide, plus a latency that the blocks resident on an SM share: cycles(n) = latency + n·(products + exposed
// softmax). Tiles that a mask cuts take longer. Packed sequences have as many blocks each as the longest, of which
// those beyond a sequence's end leave at once. T = start + fill + (schedule^p + memory^p)^(1/p).
#pragma once

#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/timing/attention/attention_constants.h"
#include "sim/timing/products/panel_traffic.h"

namespace ridgeline {

struct AttentionTime {
  double total = 0;
  double compute = 0, memory = 0, fill = 0, fixed = 0;
  double math = 0, softmax = 0, latency = 0;  ///< cycles of a tile
  double activity = 0;                        ///< busy share of the pipe
  double clock = 0;                           ///< hertz
  double clocked = 0;                         ///< of fixed + compute, what goes with the SMs' clock
  PanelFloor floor;                           ///< what the memory takes at least; `total` is no less
};

/// Time of a forward or backward kernel. `cold_bytes` of its reads come from DRAM, `written_bytes` go there. A chip
/// with more SMs, or SMs that hold more blocks, can do what one with fewer does: the time is the least over all that
/// are no more, and so never grows with either.
AttentionTime fused_attention_time(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants,
                                   double cold_bytes, double written_bytes);

/// Queries (or keys) of the longest sequence: of those packed into a row, or all.
std::int64_t longest_of(const AttentionWork& work, bool keys);

/// (a^p + b^p)^(1/p) of two times: their sum for an exponent of 1, nearly the longer for a large one.
double norm_of(double a, double b, double p);

/// Warps of a block of FlashAttention's forward kernel, which share its queries.
int flash_forward_warps(int tile_q, std::int64_t head_dim);

/// The thread blocks of a forward or backward kernel.
struct AttentionBlocks {
  static constexpr double kLeaves = -1;  ///< in the place of a length: a block beyond the end of its packed sequence
  /// Tiles that each block of a head walks over, in launch order, with what masks add to them in tiles; one number
  /// where all blocks are equal.
  std::vector<double> tiles;
  std::vector<double> units;  ///< the same as the schedule sees them, whatever the chip; with prologue and epilogue
  double products = 0;        ///< tiles of the grid without what masks add
  double repeats = 1;         ///< of that list in the grid
  double count = 1;           ///< blocks in all …
  double working = 1;         ///< … and those that do not leave at once
  int resident = 1;           ///< on an SM
  double math = 0, softmax = 0, latency = 0;  ///< cycles of a tile
  double busy = 0;                            ///< of a tile's products, and of exponentials that they do not hide …
  double waits = 0;                           ///< … and of loads from shared memory, with exposed exponentials
  double overlap = 1;                         ///< exponent of the norm of both
  double block = 0;                           ///< cycles of a block besides its tiles …
  double unclocked = 0;                       ///< … of which so many pass by another clock, the DRAM's
  double leaving = 0;                         ///< cycles of a block that leaves at once
  /// Cycles of a tile with `together` blocks on its SM.
  [[nodiscard]] double tile(double together) const {
    return norm_of(together * busy, latency + together * waits, overlap);
  }
  /// Cycles of a block of `length` tiles with `together` blocks on its SM.
  [[nodiscard]] double cycles(double length, double together) const {
    return length == kLeaves ? leaving : length * tile(together) + block;
  }
};
AttentionBlocks attention_blocks(const AttentionWork& work, const Gpu& gpu, const AttentionConstants& constants);

/// Multiply-adds a clock an SM of the pipe an attention kernel uses on this GPU; `products`: fp32 as three tf32
/// products where there are tf32 tensor cores.
double attention_rate(const AttentionWork& work, const Gpu& gpu);
Pipe attention_pipe(const AttentionWork& work, const Gpu& gpu);

}  // namespace ridgeline
