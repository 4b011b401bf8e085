// What is added to the result of a frozen linear layer: two trained matrices of low rank.
#pragma once

#include "sim/workload/eager/parameter.h"

namespace ridgeline::families {

/// As PEFT's lora.Linear keeps it, in fp32 whatever the layer's type is.
struct Adapter {
  eager::Parameter* down = nullptr;  ///< lora_A: [rank, in]
  eager::Parameter* up = nullptr;    ///< lora_B: [out, rank]
  double dropout = 0.0;
};

/// `result` of the layer for `x` + scaling · up(down(dropout(x))), in the type of `result`.
eager::Tensor adapted(eager::Eager& eager, const eager::Tensor& x, const eager::Tensor& result, const Adapter& adapter);

}  // namespace ridgeline::families
