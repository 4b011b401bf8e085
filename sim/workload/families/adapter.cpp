#include "sim/workload/families/adapter.h"

#include <utility>

#include "sim/workload/aten/written_out.h"
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

namespace {

/// Length of each row of weight + scaling · up · down, which autograd takes for a constant.
Tensor row_lengths(Eager& eager, const Adapter& adapter, const Tensor& weight) {
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, false);
  const DType type = adapter.down->value.type;
  const std::int64_t in = adapter.down->value.sizes[1], out = adapter.up->value.sizes[0];
  const Tensor identity = aten::full(eager, {in, in}, type);
  Tensor diagonal = identity;
  diagonal.sizes = {in};
  diagonal.strides = {in + 1};
  eager.recorder.host(HostClass::pointwise, 4);
  aten::pointwise(eager, PointwiseFunction::other, {}, diagonal);
  const Tensor product = linear(eager, linear(eager, identity, {adapter.down}), {adapter.up});
  const Tensor wide = in_type(eager, weight, type);
  const Tensor scaled = scale(eager, aten::t(eager, product));
  const Tensor sum = add(eager, wide, scaled);
  Tensor lengths = eager.empty({out}, type);
  eager.recorder.op(Reduction{ReductionKind::sum_cols, type, out, in}, {&sum}, {&lengths});
  eager.gradients_enabled = gradients_enabled;
  return lengths;
}

}  // namespace

// After DoraLinearLayer.forward of peft.tuners.lora.dora: without dropout the layer's own result is used again.
Tensor adapted_by_magnitude(Eager& eager, const Tensor& x, const Tensor& result, const Adapter& adapter,
                            const Tensor& weight, const Parameter* bias) {
  const ModuleScope module(eager.recorder, "lora");
  Tensor wide, lengths, magnitude, low_rank_result, total;
  wide = in_type(eager, x, adapter.down->value.type);
  lengths = row_lengths(eager, adapter, weight);
  eager.recorder.host(HostClass::pointwise);
  magnitude = view(eager, aten::divide_by(eager, adapter.magnitude->value, lengths), {1, lengths.sizes[0]});
  low_rank_result = linear(eager, linear(eager, dropout(eager, wide, adapter.dropout), {adapter.down}), {adapter.up});
  const Tensor base = bias != nullptr ? add(eager, result, bias->value) : result;
  eager.recorder.host(HostClass::pointwise);
  const Tensor first = mul(eager, aten::add_number(eager, magnitude), base);
  const Tensor second = scale(eager, mul(eager, magnitude, low_rank_result));
  total = add(eager, result, add(eager, first, second));
  return in_type(eager, total, result.type);
}

}  // namespace ridgeline::families
