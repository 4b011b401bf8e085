// A grid of thread blocks as events: placed on SMs as slots come free, each block going through its phases over what
// the blocks of an SM share and over the DRAM queue that all share.
//
// A phase takes as long as its work at the number of blocks that share the SM when it begins, and as long as the DRAM
// takes for its bytes, whichever is longer, rounded off where they are close: loads run ahead of the arithmetic within
// a phase and not beyond it. SMs in the same state are simulated once: a class is a range of SMs that have held equal
// blocks at equal times; it splits when the blocks that are left do not go round. That is exact (a test runs every SM
// by itself and finds the same ticks), because requests of one moment are served together.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hierarchy/event_queue.h"

namespace ridgeline {

struct BlockPhase {
  double work = 0;                   ///< share of the block's own time
  std::int64_t read = 0, write = 0;  ///< bytes that it moves from and to the DRAM
};

struct GridPlan {
  int sms = 1, slots = 1;    ///< blocks that an SM holds
  std::int64_t blocks = 1;   ///< thread blocks, or tiles of a persistent kernel, which one slot takes one after another
  Ticks start = 0;           ///< to the first block's first phase
  Ticks dispatch = 0;        ///< to hand a block to every SM
  Ticks replacement = 0;     ///< from a block's exit to the first instruction of the next one in its place
  std::vector<Ticks> alone;  ///< a block's own time by the blocks that share its SM, one first
  std::vector<double> lengths;     ///< of blocks, over `alone`, in launch order and again from the first; empty: equal
  std::int64_t cohort_blocks = 1;  ///< blocks of one cohort, in launch order
  std::vector<std::vector<BlockPhase>> cohorts;  ///< their phases; the last row serves all further blocks
  double overlap = 4;                            ///< p of (own^p + DRAM^p)^(1/p)
  double stretch = 1;                            ///< of the DRAM queue
};

struct GridRun {
  /// A phase of as many blocks as SMs did the same.
  struct Ran {
    Ticks begin = 0, end = 0;
    std::int32_t sms = 0, cohort = 0, phase = 0;
  };
  /// SMs with at least one block.
  struct Active {
    Ticks begin = 0, end = 0;
    std::int32_t sms = 0;
  };
  Ticks end = 0;
  Ticks dram_busy = 0;
  std::int64_t most_on_an_sm = 0;  ///< blocks, over the whole grid
  std::vector<Ran> ran;
  std::vector<Active> active;
};

/// `each_sm`: without classes, every SM by itself.
GridRun run_grid(const GridPlan& plan, const DramSpec& dram, bool each_sm = false);

}  // namespace ridgeline
