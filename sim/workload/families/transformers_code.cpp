#include "sim/workload/families/transformers_code.h"

namespace ridgeline::families {

namespace aten = eager::aten;

// Variables are declared so that they die in the order in which Python clears a function's: the C++ order is reversed.

Tensor position_ids(Eager& eager, std::int64_t length) {
  eager.recorder.host(HostClass::pointwise, 2);
  const Tensor counted = aten::arange(eager, length, DType::int64);
  return aten::add_number(eager, counted);
}

// Positions that do not rise by one would mean several documents in a row: the host asks and waits.
void look_for_packed_sequences(Eager& eager, const Tensor& positions, std::int64_t rows, std::int64_t length) {
  using F = PointwiseFunction;
  eager.recorder.host(HostClass::pointwise, 8);
  Tensor running, steps, before;
  const auto make = [&](const Dims& sizes, DType type, F function, const Tensor& from) {
    Tensor result = eager.empty(sizes, type);
    aten::pointwise(eager, function, {&from}, result);
    return result;
  };
  before = make({rows, 1}, DType::int64, F::add, positions);
  {
    const Tensor joined = eager.empty({rows, length + 1}, DType::int64);
    eager.recorder.op(Copy{CopyKind::concatenate, DType::int64, rows, (length + 1) / 2, 2}, {&before, &positions},
                      {&joined});
    steps = make({rows, length}, DType::int64, F::add, joined);
  }
  {
    const Tensor odd = make({rows, length}, DType::boolean, F::equal, steps);
    running = eager.empty({rows, length}, DType::int64);
    const Tensor counts = make({rows, length}, DType::int64, F::cast, odd);
    aten::pointwise(eager, F::other, {&counts}, running);
  }
  Tensor all;
  {
    const Tensor none = make({rows}, DType::boolean, F::equal, running);
    all = eager.empty({}, DType::boolean);
    eager.recorder.op(Reduction{ReductionKind::sum_all, DType::boolean, 1, rows}, {&none}, {&all});
  }
  eager.recorder.op(Copy{CopyKind::device_to_host, DType::boolean, 1, 1, 1}, {&all}, {});
  eager.recorder.wait_for_gpu();
  all = Tensor{};
}

Tensor causal_mask(Eager& eager, DType type, std::int64_t rows, std::int64_t length, std::int64_t keys_seen) {
  eager.recorder.host(HostClass::pointwise, 10);
  Tensor visible;
  {
    Tensor keys, queries, heads, sequences;
    sequences = aten::arange(eager, rows, DType::int64);
    heads = aten::arange(eager, 1, DType::int64);
    queries = aten::add_number(eager, aten::arange(eager, length, DType::int64));
    keys = aten::add_number(eager, aten::arange(eager, keys_seen, DType::int64));
    visible = eager.empty({length, keys_seen}, DType::boolean);
    aten::pointwise(eager, PointwiseFunction::other, {&queries, &keys}, visible);
  }
  const Tensor zero = aten::full(eager, {}, type);
  const Tensor lowest = eager.empty({}, type);
  eager.recorder.op(Copy{CopyKind::host_to_device, type, 1, 1, 1}, {}, {&lowest});
  Tensor mask = eager.empty({rows, 1, length, keys_seen}, type);
  aten::pointwise(eager, PointwiseFunction::other, {&visible}, mask);
  return mask;
}

Tensor rms_norm(Eager& eager, const Tensor& x, const Affine& weights) {
  eager.recorder.host(HostClass::pointwise, 6);
  Tensor variance, wide;
  wide = aten::to(eager, x, DType::fp32);
  {
    const Tensor squares = aten::square(eager, wide);
    variance = aten::mean_last(eager, squares);
  }
  {
    Tensor factor = aten::add_number(eager, variance);
    factor = aten::rsqrt(eager, factor);
    wide = aten::mul(eager, wide, factor);
  }
  Tensor normed = aten::to(eager, wide, x.type);
  Tensor result = aten::mul(eager, weights.weight->value, normed);
  normed = Tensor{};
  return result;
}

Rotation rotation(Eager& eager, const Tensor& positions, const Tensor& buffer, std::int64_t length, std::int64_t width,
                  DType type) {
  // Positions of one sequence for all, or of each.
  const std::int64_t half = width / 2, rows = positions.sizes.rank() > 1 ? positions.sizes[0] : 1;
  eager.recorder.host(HostClass::pointwise, 8);
  const Dims sizes{rows, 1, length, 2 * half};
  Tensor sine, cosine, both, angles, wide, frequencies;
  frequencies = buffer;
  if (rows > 1) frequencies = aten::expand(eager, frequencies, {rows, half, 1});
  frequencies = aten::to(eager, frequencies, DType::fp32);
  wide = aten::view(eager, aten::to(eager, positions, DType::fp32), {rows, 1, length});
  angles = aten::transpose(eager, aten::bmm(eager, aten::view(eager, frequencies, {rows, half, 1}), wide), 1, 2);
  both = aten::join(eager, {&angles, &angles});
  for (Tensor* part : {&cosine, &sine}) {
    const Tensor value = eager.empty(both.sizes, DType::fp32);
    aten::pointwise(eager, PointwiseFunction::rope, {&both}, value);
    *part = aten::scale(eager, value);
  }
  Rotation result;
  result.cosine = aten::view(eager, aten::to(eager, cosine, type), sizes);
  result.sine = aten::view(eager, aten::to(eager, sine, type), sizes);
  return result;
}

Tensor rotated(Eager& eager, const Tensor& x, const Rotation& by) {
  eager.recorder.host(HostClass::pointwise, 4);
  eager.recorder.host(HostClass::concatenate);
  Tensor turned, straight;
  straight = aten::mul(eager, x, by.cosine);
  {
    const Tensor first = aten::half(eager, x), second = aten::half(eager, x);
    const Tensor negative = aten::negate(eager, second);
    turned = aten::join(eager, {&negative, &first});
  }
  turned = aten::mul(eager, turned, by.sine);
  return aten::add(eager, straight, turned);
}

Tensor repeated(Eager& eager, const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  eager.recorder.host(HostClass::contiguous);
  const Tensor wide =
      aten::expand(eager, aten::unsqueeze(eager, x, 2), {x.sizes[0], x.sizes[1], times, x.sizes[2], x.sizes[3]});
  return aten::reshape(eager, wide, {x.sizes[0], x.sizes[1] * times, x.sizes[2], x.sizes[3]});
}

}  // namespace ridgeline::families
