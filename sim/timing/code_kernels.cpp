#include "sim/timing/code_kernels.h"

#include <array>

namespace ridgeline {
namespace {

// From reading the sources in hw/probe and counting the opcodes nvcc 13 made of them for sm_90. Set with the H200's
// measured curve in view, so that the curve is no independent check of them: 200 of gemm_shared's dependent cycles
// (addresses between its barriers), half a turn of gemm_tensor's stores (two were counted), arithmetic's loop of 64.
constexpr std::array kTable{
    // kernel, name, instructions, port, dependent, lines, in step
    CodeConstants{CodeKernel::empty, "empty", 0, 0, 0, 0, false},
    // A 16-byte access of a warp is 512 bytes: four lines, four clocks of the port.
    CodeConstants{CodeKernel::stream_read, "stream_read", 14, 4, 0, 4, false},
    CodeConstants{CodeKernel::stream_write, "stream_write", 12, 4, 0, 0, false},
    CodeConstants{CodeKernel::stream_copy, "stream_copy", 14, 8, 0, 4, false},
    CodeConstants{CodeKernel::stream_triad, "stream_triad", 20, 12, 0, 8, false},
    CodeConstants{CodeKernel::reread, "reread", 26, 16, 0, 16, false},
    CodeConstants{CodeKernel::rewrite, "rewrite", 16, 16, 0, 0, false},
    CodeConstants{CodeKernel::sweep_1, "sweep_1", 14, 4, 0, 4, false},
    CodeConstants{CodeKernel::sweep_2, "sweep_2", 20, 8, 0, 8, false},
    CodeConstants{CodeKernel::sweep_4, "sweep_4", 32, 16, 0, 16, false},
    // Four chains of multiply-adds, four clocks from one to the next; the loop's own three instructions every 64.
    CodeConstants{CodeKernel::arithmetic, "arithmetic", 4.05, 0, 4, 0, false},
    CodeConstants{CodeKernel::chase, "chase", 1, 1, 0, 1, false},
    CodeConstants{CodeKernel::shared_loads, "shared_loads", 1, 1, 0, 0, false},
    // A step of k: a column of A (lanes in two rows, so two lines), a row of B, a multiply-add, addresses every eighth.
    CodeConstants{CodeKernel::gemm_naive, "gemm_naive", 3.5, 3, 8, 0, false},
    // 16 steps of k: 32 loads of 512 bytes to registers from shared memory; eight loads from global memory (of A from
    // two lines each) and eight stores (of A in two turns); addresses, during which the port rests, and two barriers.
    CodeConstants{CodeKernel::gemm_shared, "gemm_shared", 404, 152, 229, 12, true},
    // 32 steps of k: 12 matrix loads, 32 tensor-core instructions, four loads and four stores of 16 bytes a lane (of A
    // in one and a half turns).
    CodeConstants{CodeKernel::gemm_tensor, "gemm_tensor", 82, 84, 0, 16, true},
};
static_assert(kTable.size() == static_cast<std::size_t>(CodeKernel::end) - static_cast<std::size_t>(CodeKernel::empty));

}  // namespace

const CodeConstants& code_constants(CodeKernel kernel) {
  return kTable[static_cast<std::size_t>(kernel) - static_cast<std::size_t>(CodeKernel::empty)];
}

}  // namespace ridgeline
