// What the law of matrix products needs to know about the kernels' code: the fitted constants of each class of kernels.
//
// Constants are cycles, shares and bytes a cycle of one SM; chips enter through Gpu alone.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

GemmClass gemm_class_of(const GemmWork& work, const Gpu& gpu);

struct GemmConstants {
  double utilization = 1;       ///< most of the pipe's rate the main loop reaches
  double latency_cycles = 0;    ///< persistent: of a stage beside L2 and DRAM; tiled: least of a k-step of a block
  double few_blocks = 0;        ///< less of everything but traffic with one block; blocks count by their logarithm
  double fixed_cycles = 0;      ///< start of the grid to first load, drain of the last store
  double cold_cycles = 0;       ///< more of them where operands come from the DRAM and not the L2
  double stage_cycles = 0;      ///< start of one stage of the first tile's pipeline
  double first_loads = 1;       ///< share of the first wave's loads that nothing hides
  double bias_cycles = 0;       ///< a fused bias: fetched before the first store
  double epilogue_cycles = 0;   ///< a tile, besides its stores
  double epilogue_bytes = 16;   ///< stored a cycle by an SM
  double epilogue_overlap = 0;  ///< share of an epilogue hidden by the next tile or by other blocks of the SM
  double handoff_cycles = 0;    ///< a split of kernels that add up partial sums in place, one block after another
  double handoff_bytes = 0;     ///< of it, bytes of partial sums a cycle (0: no more than the cycles above)
  double read_share = 1;        ///< achieved of the DRAM's streaming read bandwidth
  double write_share = 1;       ///< and of its write bandwidth
  double partial_writes = 0;    ///< share of the partial sums for a second kernel that is written at this bandwidth
  double misaligned_write = 0;  ///< extra DRAM time of outputs whose rows do not begin at multiples of 64 bytes
  double misaligned_load = 0;   ///< extra time of loads of operand rows whose pitch is not a multiple of 128 bytes
  double misaligned_store = 0;  ///< extra epilogue where the output's pitch is not a multiple of 64 bytes
  double requests =
      0.9;  ///< of what blocks ask for (a cluster once), what reaches the L2: SMs' requests for a line meet
  // Persistent (wgmma) kernels
  double port_bytes = 128;    ///< a clock that an SM's shared memory receives
  double droop_cycles = 0;    ///< after which half of the clock's droop under load has come
  double transpose_both = 0;  ///< cycles an element of both panels costs where both are transposed on their way (tn)
  double transpose_b = 0;     ///< where only B is (nn; wgmma takes tf32 K-major), times k over the tile's width: wide
                              ///< panels are turned behind the math
  double fix_up = 0;          ///< shared k-steps: passes over a tile of partial sums, in stores
  // Tiled kernels
  double grouped = 0;         ///< 1: CUTLASS kernels: grids of whole groups of columns, splits added up in place
  double issue_share = 1;     ///< CUDA cores: share of the issue slots that multiply-adds reach
  double exposed_cycles = 0;  ///< an element of k of all blocks of an SM: barriers and latency that nothing hides
  double copy_bytes = 0;      ///< a clock that an SM's asynchronous copies bring in (0: no bound of their own)
  double load_slots = 0;      ///< issue cycles an element of an operand panel and k costs beside the math
  double load_slots_nt = 1;   ///< factor on it where B is K-contiguous
  double load_slots_tn = 1;   ///< factor on it where A is M-contiguous
  double own_load_slots = 1;  ///< factor on it for kernels that are not CUTLASS's (grouped)
  // What the library's choice weighs beside time: kernels rank by time · (1 + the sum of what applies)
  double rank_split = 0;      ///< a product split along k
  double rank_log_split = 0;  ///< of it, times the logarithm of the number of splits
  double rank_in_place = 0;   ///< splits added up in place
  double rank_aspect = 0;     ///< times the logarithm of a tile's longer side over its shorter one
  double rank_wide = 0;       ///< a side of 256 or more
  double rank_area = 0;       ///< times the logarithm of its area over that of 128 x 128
  double rank_deep = 0;       ///< times the logarithm of its k-step over 32
  double rank_stream = 0;     ///< shared k-steps
};

const GemmConstants& gemm_constants(GemmClass kernel_class);

/// The kernel that adds up the partial sums of a split product: an element of the result a thread, which reads its
/// partial sums one after another.
struct SplitReduction {
  double start_cycles = 0;
  double split_cycles = 0;    ///< a partial sum: a dependent load
  double element_cycles = 0;  ///< an element of the result, of one SM
  double l2_share = 1;        ///< achieved of the L2's read bandwidth, where the partial sums are
};
/// `cuda_cores_own`: of an fp32 product whose kernel is not CUTLASS's.
const SplitReduction& split_reduction_of(bool cuda_cores_own);

}  // namespace ridgeline
