#include "sim/workload/families/adapter.h"

#include "sim/workload/families/functional.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// After Linear.forward of peft.tuners.lora.layer. Variables die in the reverse order of C++.
Tensor adapted(Eager& eager, const Tensor& x, const Tensor& result, const Adapter& adapter) {
  const ModuleScope module(eager.recorder, "lora");
  Tensor wide, low, delta;
  if (x.type != adapter.down->value.type) {
    eager.recorder.host(HostClass::pointwise);
    wide = aten::to(eager, x, adapter.down->value.type);
  } else {
    wide = x;
  }
  low = linear(eager, dropout(eager, wide, adapter.dropout), {adapter.down});
  delta = scale(eager, linear(eager, low, {adapter.up}));
  low = Tensor{};
  const Tensor sum = add(eager, result, delta);
  delta = Tensor{};
  if (sum.type == result.type) return sum;
  eager.recorder.host(HostClass::pointwise);
  return aten::to(eager, sum, result.type);
}

}  // namespace ridgeline::families
