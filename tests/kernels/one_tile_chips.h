// Chips that one kernel of a kind fits, so that a library has nothing to choose.
#pragma once

#include "tests/kernels/worked_launches.h"

namespace ridgeline::testing_support {

/// Of Ampere, with so little shared memory that a block of 41 KiB and one of 48 fit: a tile of 16 bits, one of tf32.
/// Products of single pixels have one tile each.
inline Gpu chip_of_one_tile() {
  Gpu gpu = made_up_chip();
  gpu.architecture = Architecture::ampere;
  gpu.compute_major = 8;
  gpu.sm.warpgroup_mma = gpu.sm.tensor_memory_accelerator = false;
  gpu.sm.shared_per_sm = Bytes{50.0 * 1024};
  gpu.sm.shared_per_block = Bytes{49.0 * 1024};
  gpu.gemm.replace = true;
  gpu.gemm.tiles = {{GemmClass::mma_half, 64, 32, 32, 3, 4, 90, 20000},
                    {GemmClass::mma_tf32, 64, 32, 16, 3, 4, 90, 20000}};
  return gpu;
}
/// Without tensor cores, whose registers hold the narrowest tile and those that scatter.
inline Gpu chip_of_cores() {
  Gpu gpu = chip_of_one_tile();
  gpu.sm.rates.tensor_fp16 = gpu.sm.rates.tensor_bf16 = gpu.sm.rates.tensor_tf32 = 0.0;
  gpu.sm.registers = 4 * 32 * 120;
  return gpu;
}

}  // namespace ridgeline::testing_support
