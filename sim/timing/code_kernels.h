// Kernels described by their code: what a warp does in one pass of the kernel's loop.
//
// The microkernels of hw/probe are written for one effect each, so their machine code is known: instructions, clocks of
// the port through which shared memory and L1 answer, loads in flight. A MemoryBoundWork whose kernel_class is a
// CodeKernel is timed from that and from the hardware file alone (code_law.cpp). What of a row was not counted but set
// with the measured curve in view is said in the table (code_kernels.cpp).
//
// Of its MemoryBoundWork such a kernel uses: iterations (passes of a block), elements (passes that share one wait,
// their loads being in flight together; 0 = one), reread_bytes (of its loads, what the L1 serves) and, where it adds
// atomically, tail_steps (lanes of a warp that meet on one address).
#pragma once

#include <string_view>

#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// In MemoryBoundWork::kernel_class, beyond the kernels of memory_bound_kernels.h.
enum class CodeKernel : int {
  empty = 1000,
  stream_read,
  stream_write,
  stream_copy,
  stream_triad,
  reread,
  rewrite,
  sweep_1,
  sweep_2,
  sweep_3,
  sweep_4,
  arithmetic,
  chase,
  shared_chase,
  shared_loads,
  l1_sweep,
  shared_sweep,
  l2_sweep,
  l2_rewrite,
  copy_registers,
  copy_ahead,
  atomic_add,
  multiply_add,
  multiply_add_halves,
  mma_sync,
  wgmma,
  gemm_naive,
  gemm_shared,
  gemm_tensor,
  end
};

/// How the warps of a block go from pass to pass.
enum class Order : unsigned char {
  loose,    ///< each on its own
  in_step,  ///< barriers: none goes on before all are there
  staged    ///< in step, what a pass works on having been fetched passes ahead
};

struct CodeConstants {
  CodeKernel kernel;
  std::string_view name;
  double instructions;  ///< a warp issues in a pass
  double port_clocks;   ///< a warp keeps the port of shared memory and L1: 128 bytes to registers, a line to look up
  double dependent_cycles;  ///< of instructions that wait for each other in a pass, memory aside
  /// Of 128 bytes a warp (of staged kernels: a block) waits for in a pass, all in flight together; 0 = waits for none.
  int lines;
  Order order;
  bool apart = false;    ///< blocks walk through the same data, each beginning elsewhere
  int shared_waits = 0;  ///< loads from shared memory a warp waits for in a pass, one after the other
};

inline bool is_code_kernel(const MemoryBoundWork& work) {
  return work.kernel_class >= static_cast<int>(CodeKernel::empty) &&
         work.kernel_class < static_cast<int>(CodeKernel::end);
}
const CodeConstants& code_constants(CodeKernel kernel);

/// `work.iterations` are passes of a block, `work.reread_bytes` what of its loads the L1 serves.
KernelTime code_time(const KernelLaunch& launch, const MemoryBoundWork& work, const Gpu& gpu, Residency residency);

}  // namespace ridgeline
