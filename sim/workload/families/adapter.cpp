#include "sim/workload/families/adapter.h"

#include "sim/workload/families/functional.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

Tensor in_type(Eager& eager, const Tensor& x, DType type) {
  if (x.type == type) return x;
  eager.recorder.host(HostClass::pointwise);
  return aten::to(eager, x, type);
}

/// scaling · up(down(dropout(x)))
Tensor low_rank(Eager& eager, const Tensor& x, const Adapter& adapter) {
  const Tensor low = linear(eager, dropout(eager, x, adapter.dropout), {adapter.down});
  return scale(eager, linear(eager, low, {adapter.up}));
}

}  // namespace

// After Linear.forward of peft.tuners.lora.layer. Variables die in the reverse order of C++.
Tensor adapted(Eager& eager, const Tensor& x, const Tensor& result, const Adapter& adapter) {
  const ModuleScope module(eager.recorder, "lora");
  Tensor wide, delta;
  wide = in_type(eager, x, adapter.down->value.type);
  delta = low_rank(eager, wide, adapter);
  const Tensor sum = add(eager, result, delta);
  delta = Tensor{};
  return in_type(eager, sum, result.type);
}

// After Linear4bit.forward of peft.tuners.lora.bnb: autocast casts by itself, and what is added has the layer's type.
Tensor adapted_copy(Eager& eager, const Tensor& x, Tensor result, const Adapter& adapter) {
  const ModuleScope module(eager.recorder, "lora");
  Tensor wide, delta;
  eager.recorder.host(HostClass::contiguous);
  result = aten::cloned(eager, result);
  wide = eager.autocast.on() ? x : in_type(eager, x, adapter.down->value.type);
  delta = low_rank(eager, wide, adapter);
  if (!eager.autocast.on()) delta = in_type(eager, delta, result.type);
  return add(eager, result, delta);
}

}  // namespace ridgeline::families
