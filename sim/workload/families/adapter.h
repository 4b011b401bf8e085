// What is added to the result of a frozen linear layer: two trained matrices of low rank.
#pragma once

#include "sim/workload/eager/parameter.h"

namespace ridgeline::families {

/// Matrices of PEFT's lora.Linear, whose type may differ from the layer's.
struct Adapter {
  eager::Parameter* down = nullptr;  ///< lora_A: [rank, in]
  eager::Parameter* up = nullptr;    ///< lora_B: [out, rank]
  double dropout = 0.0;
  eager::Parameter* magnitude = nullptr;  ///< of DoRA: [out]
};

/// `result` of the layer for `x` + scaling · up(down(dropout(x))), in the type of `result`.
eager::Tensor adapted(eager::Eager& eager, const eager::Tensor& x, const eager::Tensor& result, const Adapter& adapter);
/// The same beside a quantized layer of bitsandbytes, whose `result` is copied first.
eager::Tensor adapted_copy(eager::Eager& eager, const eager::Tensor& x, eager::Tensor result, const Adapter& adapter);

/// DoRA beside a layer of `weight` [out, in] and, where it has one, `bias`.
eager::Tensor adapted_by_magnitude(eager::Eager& eager, const eager::Tensor& x, const eager::Tensor& result,
                                   const Adapter& adapter, const eager::Tensor& weight, const eager::Parameter* bias);

}  // namespace ridgeline::families
