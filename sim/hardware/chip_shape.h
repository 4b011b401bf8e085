// What decides which blocks a chip's kernels come in: its SMs, its L2 and the kernels of its matrix library.
//
// Nothing of a chip's clocks, its DRAM or its power. A rule that takes a ChipShape in the place of a Gpu cannot read
// them: so chips that differ in these alone share what it made.
#pragma once

#include "sim/hardware/gpu.h"

namespace ridgeline {

/// Part of a Gpu, which must outlive it.
struct ChipShape {
  ChipShape(const Gpu& gpu)  // NOLINT(google-explicit-constructor): every chip has one
      : architecture(gpu.architecture), sm(gpu.sm), l2(gpu.l2), gemm(gpu.gemm) {}

  Architecture architecture;
  const SmSpec& sm;
  const L2Spec& l2;
  const GemmMenuChange& gemm;
  bool operator==(const ChipShape& other) const {
    return architecture == other.architecture && sm == other.sm && l2 == other.l2 && gemm == other.gemm;
  }
};

}  // namespace ridgeline
