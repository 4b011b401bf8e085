// A made-up chip with round numbers, and the comparison of an op's kernels on it with a listing worked out by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "tests/support/launch_text.h"

namespace ridgeline::testing_support {

/// Ten SMs of Hopper with 100,000 bytes of L1 each, and an L2 of 1,000,000 bytes.
inline Gpu made_up_chip() {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  gpu.sm.count = 10;
  gpu.sm.l1_and_shared = Bytes{100000.0};
  gpu.l2.capacity = Bytes{1e6};
  gpu.l2.resident_full = 0.5;
  gpu.l2.resident_none = 1.0;
  return gpu;
}

/// `listing` has a line each kernel, after a first empty one.
inline void expect_kernels(const Op& op, std::string_view listing, const Software& software = {},
                           const Gpu& gpu = made_up_chip()) {
  const LoweredOp made = is_lowered_by_shape(op) ? lower_by_shape(op, gpu, software) : lower(op, gpu, software);
  EXPECT_EQ(text_of(made), listing) << name_of(op) << ' ' << shape_of(op);
}

}  // namespace ridgeline::testing_support
