// Rotary positions of a stack: which numbers of a head are turned together, and in which type.
#include "sim/workload/aten/pieces.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/families/stack_network.h"

namespace ridgeline::families {

namespace aten = eager::aten;

namespace {

/// Neighbours are turned together: a stack of every second number, negated, and the others.
Tensor neighbours_turned(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 3);
  eager.recorder.host(HostClass::concatenate);
  const Tensor even = aten::every_second(eager, x, 0), odd = aten::every_second(eager, x, 1);
  const Tensor negative = aten::negate(eager, odd);
  const int last = even.sizes.rank();
  const Tensor left = aten::unsqueeze(eager, negative, last), right = aten::unsqueeze(eager, even, last);
  return aten::reshape(eager, aten::join(eager, {&left, &right}), x.sizes);
}

/// The second half, negated, before the first.
Tensor halves_turned(Eager& eager, const Tensor& x) {
  eager.recorder.host(HostClass::pointwise, 2);
  eager.recorder.host(HostClass::concatenate);
  const Tensor first = aten::half(eager, x), second = aten::half(eager, x);
  const Tensor negative = aten::negate(eager, second);
  return aten::join(eager, {&negative, &first});
}

/// Numbers of half a head, each twice.
Tensor each_twice(Eager& eager, const Tensor& x) {
  Dims sizes = x.sizes, twice = x.sizes;
  const int last = sizes.rank();
  sizes[last - 1] /= 2;
  Tensor half = x;
  half.sizes = sizes;
  twice = sizes;
  twice.push_back(2);
  const Tensor wide = aten::expand(eager, aten::unsqueeze(eager, half, last), twice);
  return aten::reshape(eager, wide, x.sizes);
}

}  // namespace

Rotation StackNetwork::counted_rotation(std::int64_t length, DType type) {
  const std::int64_t half = s_.turned() / 2;
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise, 12);
  const auto of = [&](F function, const Tensor& from, const Dims& sizes) {
    return aten::plain(eager_, function, sizes, DType::fp32, {&from});
  };
  Tensor both, angles, inverse;
  {
    const Tensor steps = aten::to(eager_, aten::arange(eager_, half, DType::int64), DType::fp32);
    const Tensor share = of(F::divide, steps, {half});
    const Tensor power = of(F::power, share, {half});
    inverse = of(F::reciprocal, power, {half});
    const Tensor positions = aten::to(eager_, aten::arange(eager_, length, DType::int64), DType::fp32);
    angles = aten::plain(eager_, F::mul, {1, length, half}, DType::fp32, {&positions, &inverse});
  }
  both = aten::join(eager_, {&angles, &angles});
  Rotation result;
  for (Tensor* part : {&result.cosine, &result.sine}) {
    const Tensor value = of(F::rope, both, {1, length, 2 * half});
    *part = aten::view(eager_, aten::to(eager_, value, type), {1, 1, length, 2 * half});
  }
  return result;
}

Tensor StackNetwork::turned_part(const Tensor& x, const Rotation& by) {
  if (s_.rotary_style == RotaryStyle::complex) {
    eager_.recorder.host(HostClass::pointwise, 3);
    const Tensor wide = aten::to(eager_, x, DType::fp32);
    return aten::to(eager_, aten::complex_mul(eager_, wide, by.cosine), x.type);
  }
  if (s_.rotary_style == RotaryStyle::halves && !s_.rotary_fp32)
    return s_.rotary_angles_fp32 ? aten::to(eager_, rotated(eager_, x, by), x.type) : rotated(eager_, x, by);
  const auto wide = [&] { return s_.rotary_fp32 ? aten::to(eager_, x, DType::fp32) : x; };
  eager_.recorder.host(HostClass::pointwise, 3);
  Tensor result;
  if (s_.rotary_style == RotaryStyle::halves) {
    // Each of both uses casts for itself.
    const Tensor straight = aten::mul(eager_, wide(), by.cosine);
    const Tensor turned = aten::mul(eager_, halves_turned(eager_, wide()), by.sine);
    result = aten::add(eager_, straight, turned);
  } else {
    const Tensor once = wide();
    const Tensor straight = aten::mul(eager_, once, by.cosine);
    const Tensor turned = aten::mul(eager_, neighbours_turned(eager_, once), by.sine);
    result = aten::add(eager_, straight, turned);
  }
  return s_.rotary_fp32 ? aten::to(eager_, result, x.type) : result;
}

Tensor StackNetwork::turned(const Tensor& x, const Rotation& by) {
  const std::int64_t width = x.sizes.last(), part = by.cosine.sizes.last();
  if (part >= width) return turned_part(x, by);
  eager_.recorder.host(HostClass::concatenate);
  const Tensor first = aten::slice_last(eager_, x, part), still = aten::slice_last(eager_, x, width - part);
  const Tensor moved = turned_part(first, by);
  const Tensor rest = aten::to(eager_, still, moved.type);  // autocast joins in the widest type
  return aten::join(eager_, {&moved, &rest});
}

// 1 + β log(1 + ⌊position / longest⌋) of each position, made in each layer.
Tensor StackNetwork::scaled_by_position(const Tensor& queries) {
  using F = PointwiseFunction;
  eager_.recorder.host(HostClass::pointwise, 8);
  const Dims sizes{1, 1, queries.sizes[2], 1};
  Tensor number = aten::plain(eager_, F::divide, sizes, DType::fp32, {});
  for (const F function : {F::other, F::add, F::other, F::scale, F::add})
    number = aten::plain(eager_, function, sizes, DType::fp32, {&number});
  return aten::mul(eager_, queries, aten::to(eager_, number, queries.type));
}

// Angles are the first half of a row of the table, picked once a layer and spread for keys and for queries.
void StackNetwork::turn_in_place(Tensor& q, Tensor& k) {
  const std::int64_t length = q.sizes[1];
  eager_.recorder.host(HostClass::pointwise, 2);
  const Tensor picked = aten::plain(eager_, PointwiseFunction::index, {1, length, 1, s_.turned()}, site_.type, {});
  const auto spread = [&] {
    eager_.recorder.host(HostClass::contiguous, 2);
    Rotation result;
    result.sine = each_twice(eager_, picked);
    result.cosine = each_twice(eager_, picked);
    return result;
  };
  Tensor moved_k = turned(k, spread()), moved_q = turned(q, spread());
  k = std::move(moved_k);
  q = std::move(moved_q);
}

// Neighbours share an angle: what was made for halves is spread once for queries and keys of a layer.
Rotation StackNetwork::rotation_of_layer(const Rotation& by) {
  if (s_.rotary_style != RotaryStyle::pairs) return by;
  eager_.recorder.host(HostClass::contiguous, 2);
  Rotation result;
  result.cosine = each_twice(eager_, by.cosine);
  result.sine = each_twice(eager_, by.sine);
  return result;
}

}  // namespace ridgeline::families
