// Linear layers whose frozen weights have four bits, as bitsandbytes runs them (Linear4bit, MatMul4Bit): the weight is
// expanded before each product, forward and backward, and never kept.
#pragma once

#include "sim/workload/eager/tensor.h"

namespace ridgeline::eager::aten {

/// [out, in] numbers in `codes`, two a byte, with the scales of blocks of 64.
struct FourBitWeight {
  Tensor codes, scales;
  Tensor outer_scales;  ///< of the scales, where those are quantized too
  std::int64_t out = 0, in = 0;
  [[nodiscard]] bool defined() const { return codes.defined(); }
};

/// Numbers that share a scale, and scales that share one.
inline constexpr std::int64_t kFourBitBlock = 64, kScaleBlock = 256;

/// Allocates one. `scales_too`: double quantization.
FourBitWeight four_bit_weight(Eager& eager, std::int64_t out, std::int64_t in, bool scales_too);
/// x·Wᵀ (+ bias) in the type of `x`; its gradient goes to `x` alone.
Tensor four_bit_linear(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias);

}  // namespace ridgeline::eager::aten
