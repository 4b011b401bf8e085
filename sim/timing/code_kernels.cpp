#include "sim/timing/code_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// From reading the sources in hw/probe and counting the opcodes nvcc 13 made of them for sm_90. Set with the H200's
// measured curve in view, so that the curve is no independent check of them: 200 of gemm_shared's dependent cycles
// (addresses between its barriers), half a turn of gemm_tensor's stores (two were counted), arithmetic's loop of 64,
// dependent cycles of l1_sweep, copy_registers and copy_ahead.
constexpr std::array kCodes{
    // kernel, name, instructions, port, dependent, lines, order, apart, waits
    CodeConstants{CodeKernel::empty, "empty", 0, 0, 0, 0, Order::loose},
    // A 16-byte access of a warp is 512 bytes: four lines, four clocks of the port.
    CodeConstants{CodeKernel::stream_read, "stream_read", 14, 4, 0, 4, Order::loose},
    CodeConstants{CodeKernel::stream_write, "stream_write", 12, 4, 0, 0, Order::loose},
    CodeConstants{CodeKernel::stream_copy, "stream_copy", 14, 8, 0, 4, Order::loose},
    CodeConstants{CodeKernel::stream_triad, "stream_triad", 20, 12, 0, 8, Order::loose},
    CodeConstants{CodeKernel::reread, "reread", 26, 16, 0, 16, Order::loose},
    CodeConstants{CodeKernel::rewrite, "rewrite", 16, 16, 0, 0, Order::loose},
    CodeConstants{CodeKernel::sweep_1, "sweep_1", 14, 4, 0, 4, Order::loose},
    CodeConstants{CodeKernel::sweep_2, "sweep_2", 20, 8, 0, 8, Order::loose},
    CodeConstants{CodeKernel::sweep_3, "sweep_3", 26, 12, 0, 12, Order::loose},
    CodeConstants{CodeKernel::sweep_4, "sweep_4", 32, 16, 0, 16, Order::loose},
    // Four chains of multiply-adds, four clocks from one to the next; the loop's own three instructions every 64.
    CodeConstants{CodeKernel::arithmetic, "arithmetic", 4.05, 0, 4, 0, Order::loose},
    CodeConstants{CodeKernel::chase, "chase", 1, 1, 0, 1, Order::loose},
    CodeConstants{CodeKernel::shared_chase, "shared_chase", 1, 1, 0, 0, Order::loose, false, 1},
    CodeConstants{CodeKernel::shared_loads, "shared_loads", 1, 1, 0, 0, Order::loose},
    // A load of 16 bytes a lane and its sums, from the L1 and from shared memory. A sweep of them ends with the sums of
    // the last loads and the loop's own addresses and branches.
    CodeConstants{CodeKernel::l1_sweep, "l1_sweep", 7.75, 4, 75, 0, Order::in_step},
    CodeConstants{CodeKernel::shared_sweep, "shared_sweep", 3, 4, 0, 0, Order::loose},
    // Eight loads of 16 bytes a lane past the L1, with sums and addresses that wrap around; 16 stores.
    CodeConstants{CodeKernel::l2_sweep, "l2_sweep", 83, 32, 0, 32, Order::loose, true},
    CodeConstants{CodeKernel::l2_rewrite, "l2_rewrite", 34, 64, 0, 0, Order::loose, true},
    // 16 KiB by four warps: eight loads, eight stores to shared memory, eight loads of one word in four banks (four
    // turns); copied past the registers, the stores fall away, and the loads overlap with the next stage's way.
    CodeConstants{CodeKernel::copy_registers, "copy_registers", 36, 96, 370, 128, Order::staged},
    CodeConstants{CodeKernel::copy_ahead, "copy_ahead", 90, 32, 70, 128, Order::staged},
    CodeConstants{CodeKernel::atomic_add, "atomic_add", 4, 1, 0, 0, Order::loose},
    // A step of eight chains, and a sixteenth of the loop; packed halves keep their scheduler for two clocks.
    CodeConstants{CodeKernel::multiply_add, "multiply_add", 8.19, 0, 4, 0, Order::loose},
    CodeConstants{CodeKernel::multiply_add_halves, "multiply_add_halves", 16.05, 0, 4, 0, Order::loose},
    // Four products of 16 x 8 x 16 a warp; one of 64 x 256 x 16 a warpgroup.
    CodeConstants{CodeKernel::mma_sync, "mma_sync", 4.1, 0, 0, 0, Order::loose},
    CodeConstants{CodeKernel::wgmma, "wgmma", 2.3, 0, 0, 0, Order::loose},
    // A step of k: a column of A (lanes in two rows, so two lines), a row of B, a multiply-add, addresses every eighth.
    CodeConstants{CodeKernel::gemm_naive, "gemm_naive", 3.5, 3, 8, 0, Order::loose},
    // 16 steps of k: 32 loads of 512 bytes to registers from shared memory; eight loads from global memory (of A from
    // two lines each) and eight stores (of A in two turns); addresses, during which the port rests, and two barriers.
    CodeConstants{CodeKernel::gemm_shared, "gemm_shared", 404, 152, 229, 12, Order::in_step},
    // 32 steps of k: 12 matrix loads, 32 tensor-core instructions, four loads and four stores of 16 bytes a lane (of A
    // in one and a half turns).
    CodeConstants{CodeKernel::gemm_tensor, "gemm_tensor", 82, 84, 0, 16, Order::in_step},
};
static_assert(kCodes.size() == static_cast<std::size_t>(CodeKernel::end) - static_cast<std::size_t>(CodeKernel::empty));

}  // namespace

const CodeConstants& code_constants(CodeKernel kernel) {
  return kCodes[static_cast<std::size_t>(kernel) - static_cast<std::size_t>(CodeKernel::empty)];
}

}  // namespace ridgeline
