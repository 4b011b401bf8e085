// Linear layers whose frozen weights have four or eight bits, as bitsandbytes (Linear4bit, Linear8bitLt), GPTQ, AWQ and
// HQQ run them: the weight is expanded before each product, forward and backward, and never kept. LLM.int8 multiplies
// in eight bits in the forward pass. Without gradients a few rows are multiplied by the codes themselves. Weight-only
// kinds of torchao (int8_only, int4_only, fp8) are of inference.
#pragma once

#include "sim/workload/eager/tensor.h"
#include "sim/workload/lora.h"

namespace ridgeline::eager::aten {

/// [out, in] numbers in `codes`, two a byte (int8: one), with the scales of blocks.
struct FourBitWeight {
  FrozenWeights kind = FrozenWeights::nf4;
  Tensor codes, scales;
  Tensor outer_scales;  ///< of the scales, where those are quantized too
  Tensor zeros;         ///< of blocks, and the order of columns (gptq)
  std::int64_t out = 0, in = 0;
  [[nodiscard]] bool defined() const { return codes.defined(); }
};

/// Numbers that share a scale, by bitsandbytes and HQQ, and by GPTQ and AWQ; scales that share one.
inline constexpr std::int64_t kFourBitBlock = 64, kFourBitGroup = 128, kScaleBlock = 256;

/// Allocates one. `type`: of the model, in which HQQ has its scales.
FourBitWeight four_bit_weight(Eager& eager, std::int64_t out, std::int64_t in, FrozenWeights kind, DType type);
/// x·Wᵀ (+ bias) in the type of `x`; its gradient goes to `x` alone.
Tensor four_bit_linear(Eager& eager, const Tensor& x, const FourBitWeight& weight, const Tensor* bias);

}  // namespace ridgeline::eager::aten
