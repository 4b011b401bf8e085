// Multiply-adds a clock of an SM on the pipe of a kernel.
#pragma once

#include <algorithm>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {

struct MathRate {
  double multiply_adds = 0;  ///< a clock an SM; 0 without arithmetic
  double of_pipe = 1;        ///< share of its pipe's peak
};

/// Multiply-adds a clock of an SM that mma.sync reaches of a tensor-core rate for `type`. Its operands come from
/// registers: an instruction of 16 x 8 by 32 bytes of k takes a scheduler at least these many cycles, as on Hopper,
/// where mma.sync reaches 0.60 to 0.65 of wgmma (microbenchmarks published by others). Older chips' rates are below.
inline double mma_sync_rate(double rate, DType type, const Gpu& gpu) {
  constexpr double kCycles = 6.154, kMultiplyAdds = 16.0 * 8.0 * 32.0;
  const double most = gpu.sm.schedulers * kMultiplyAdds / static_cast<double>(bytes_of(type)) / kCycles;
  return rate < most ? rate : most;
}

inline MathRate math_rate(Pipe pipe, DType type, const Gpu& gpu) {
  const MathRates& rates = gpu.sm.rates;
  if (pipe == Pipe::fp32) return {rates.fp32, 1.0};
  if (pipe == Pipe::none) return {};
  const double rate = type == DType::bf16   ? rates.tensor_bf16
                      : type == DType::tf32 ? rates.tensor_tf32
                                            : rates.tensor_fp16;
  if (pipe != Pipe::tensor_mma || rate <= 0.0) return {rate, 1.0};
  const double reached = mma_sync_rate(rate, type, gpu);
  return {reached, reached / rate};
}

/// Cycles an SM needs to issue an instruction of 32 threads, as a multiple of a lane's share: SMs with 64 fp32 and 64
/// integer lanes (Volta, Turing, A100) take longer than their schedulers when one kind prevails.
inline double lanes_per_cycle(const SmSpec& sm) {
  constexpr double kFp32Share = 0.6;  // address arithmetic, comparisons and conversions are the rest
  double lanes = 32.0 * sm.schedulers * sm.issue_rate;
  if (sm.rates.fp32 > 0.0) lanes = std::min(lanes, sm.rates.fp32 / kFp32Share);
  if (sm.rates.int32 > 0.0) lanes = std::min(lanes, sm.rates.int32 / (1.0 - kFp32Share));
  return lanes;
}

}  // namespace ridgeline
