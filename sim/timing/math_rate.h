// Multiply-adds a clock of an SM on the pipe of a kernel.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/timing/gemm_constants.h"

namespace ridgeline {

struct MathRate {
  double multiply_adds = 0;  ///< a clock an SM; 0 without arithmetic
  double of_pipe = 1;        ///< share of its pipe's peak
};

inline MathRate math_rate(Pipe pipe, DType type, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  if (pipe == Pipe::fp32) return {rates.fp32, 1.0};
  if (pipe == Pipe::none) return {};
  const double share = pipe == Pipe::tensor_mma && gpu.sm.warpgroup_mma ? kMmaSyncShareOfWgmma : 1.0;
  const double rate = type == DType::bf16   ? rates.tensor_bf16
                      : type == DType::tf32 ? rates.tensor_tf32
                                            : rates.tensor_fp16;
  return {rate * share, share};
}

}  // namespace ridgeline
