// Point-wise calls: one kernel, one result element from one element of each operand.
#include <algorithm>

#include "sim/trace/aten/aten_rules.h"
#include "sim/workload/pointwise_functions.h"

namespace ridgeline::trace {

namespace {

using P = PointwiseFunction;

bool is_float(DType type) { return is_half(type) || type == DType::fp32 || type == DType::tf32 || type == DType::fp64; }

/// The type a binary operation gives: floats win over integers, wide over narrow, tensors over numbers.
DType promoted(const AtenTensor& a, const AtenTensor& b) {
  if (a.sizes.empty() != b.sizes.empty() && is_float(a.type) == is_float(b.type))
    return a.sizes.empty() ? b.type : a.type;
  if (is_float(a.type) != is_float(b.type)) return is_float(a.type) ? a.type : b.type;
  if (is_half(a.type) && is_half(b.type) && a.type != b.type) return DType::fp32;
  return bytes_of(a.type) >= bytes_of(b.type) ? a.type : b.type;
}

/// Nothing runs for a tensor without elements.
MappedOps unless_empty(const AtenTensor& output, MappedOp op) {
  return output.elements() > 0 ? one(std::move(op)) : nothing();
}

MappedOps unary(P function, bool in_place, const AtenCall& call) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  const AtenTensor y = in_place ? *x : result_of(call, 0, like(*x));
  return unless_empty(y, pointwise_op(function, {x}, y));
}

template <bool InPlace>
MappedOps gelu(const AtenCall& call, const MapContext&) {
  const AtenTensor* x = call.tensor(0);
  if (x == nullptr) return std::nullopt;
  const AtenTensor y = InPlace ? *x : result_of(call, 0, like(*x));
  return unless_empty(y, pointwise_op(call.word(1) == "tanh" ? P::gelu_tanh : P::gelu, {x}, y));
}

MappedOps gelu_backward(const AtenCall& call, const MapContext&) {
  const AtenTensor *gradient = call.tensor(0), *x = call.tensor(1);
  if (gradient == nullptr || x == nullptr) return std::nullopt;
  const P function = call.word(2) == "tanh" ? P::gelu_tanh_backward : P::gelu_backward;
  const AtenTensor y = result_of(call, 0, like(*gradient));
  return unless_empty(y, pointwise_op(function, {gradient, x}, y));
}

/// A Python number beside a tensor, as the dispatcher wraps it: without dimensions, in Python's own types.
bool is_wrapped_number(const AtenTensor* x, const AtenTensor* beside) {
  if (x == nullptr || beside == nullptr || !x->sizes.empty()) return false;
  const bool python = x->type == DType::fp64 || x->type == DType::int64;
  return python && (is_half(beside->type) || beside->type == DType::fp32);
}

enum class How : std::uint8_t { unary, binary, compared, several, backward, fill, draw };
/// Calls that run one kernel, by how they take and give tensors, with the function that costs what theirs do: of two
/// tensors, and of one beside a number. Names that end with "_" write into their first tensor.
struct Alike {
  How how;
  P function, with_number;
  std::string_view names;
};

/// Two operands, the second of which may be a number.
MappedOps binary(const Alike& of, bool in_place, const AtenCall& call) {
  const AtenTensor *a = call.tensor(0), *b = call.tensor(1);
  if (a == nullptr && b == nullptr) return std::nullopt;
  if (a == nullptr || (is_wrapped_number(a, b) && !in_place)) std::swap(a, b);
  if (is_wrapped_number(b, a)) b = nullptr;
  AtenTensor y = *a;
  if (!in_place) {
    y = like(*a, b != nullptr ? promoted(*a, *b) : a->type);
    if (b != nullptr) {
      y.sizes = broadcast_sizes(a->sizes, b->sizes);
      if (y.sizes != a->sizes) y.strides = y.sizes == b->sizes ? like(*b).strides : std::vector<std::int64_t>{};
    }
    if (of.how == How::compared) y.type = DType::boolean;
    y = result_of(call, 0, y);
  }
  // A tensor of one element on the device is read by strides, unless it has no dimension and stands for a number.
  const bool number = b == nullptr || (b->sizes.empty() && y.elements() > 1) || b->on_host;
  if (number) return unless_empty(y, pointwise_op(of.with_number, {a}, y));
  if (a->sizes.empty() && y.elements() > 1 && !in_place) return unless_empty(y, pointwise_op(of.with_number, {b}, y));
  return unless_empty(y, pointwise_op(of.function, {a, b}, y));
}

/// Tensors among the first three arguments, into the first (in place) or a fresh result like the largest.
MappedOps several(P function, bool in_place, const AtenCall& call) {
  std::vector<const AtenTensor*> x;
  for (std::size_t i = 0; i < 3; ++i)
    if (const AtenTensor* tensor = call.tensor(i); tensor != nullptr && !(tensor->sizes.empty() && i > 0))
      x.push_back(tensor);
  if (x.empty()) return std::nullopt;
  AtenTensor y = *x.front();
  if (!in_place) {
    y = like(*x.back());
    for (const AtenTensor* tensor : x) y.sizes = broadcast_sizes(y.sizes, tensor->sizes);
    if (y.sizes != x.back()->sizes) y.strides.clear();
    y = result_of(call, 0, y);
  }
  if (x.size() == 1) return unless_empty(y, pointwise_op(function, {x[0]}, y));
  if (x.size() == 2) return unless_empty(y, pointwise_op(function, {x[0], x[1]}, y));
  return unless_empty(y, pointwise_op(function, {x[0], x[1], x[2]}, y));
}

/// Gradient and what was saved: the result has the gradient's layout.
MappedOps backward_of(P function, const AtenCall& call) {
  const AtenTensor *gradient = call.tensor(0), *saved = call.tensor(1);
  if (gradient == nullptr || saved == nullptr) return std::nullopt;
  const AtenTensor y = result_of(call, 0, like(*gradient));
  return unless_empty(y, pointwise_op(function, {gradient, saved}, y));
}

template <bool InPlace>
MappedOps masked_fill(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *mask = call.tensor(1);
  if (x == nullptr || mask == nullptr) return std::nullopt;
  // In place there is no clone: a kernel like any other that reads a mask.
  if (InPlace) return unless_empty(*x, pointwise_op(P::other, {x, mask}, *x));
  const AtenTensor y = result_of(call, 0, like(*x));
  return unless_empty(y, pointwise_op(P::masked_fill, {x, mask}, y));
}

/// Zeros of a dense tensor that the driver wrote: nothing but its memset was measured.
bool set_by_the_driver(const AtenCall& call, const AtenTensor& x) {
  return x.dense() && x.elements() > 0 && call.kernels.size() == 1 && call.kernels.front().name.starts_with("Memset");
}

MappedOps filled(const AtenCall& call) {
  const AtenTensor* x = call.outputs.empty() ? call.tensor(0) : &call.outputs.front();
  if (x == nullptr) return std::nullopt;
  if (x->on_host) return nothing();
  if (set_by_the_driver(call, *x)) return one({Memset{x->elements() * bytes_of(x->type)}, {}, {*x}});
  return unless_empty(*x, pointwise_op(P::fill, {}, *x));
}

/// Random numbers into a new tensor, or into the first argument.
MappedOps drawn(bool in_place, const AtenCall& call) {
  const AtenTensor* x = call.outputs.empty() || in_place ? call.tensor(0) : &call.outputs.front();
  if (x == nullptr) return std::nullopt;
  if (x->on_host && !in_place) return nothing();
  return unless_empty(*x, pointwise_op(P::random, {}, *x));
}

MappedOps arange(const AtenCall& call, const MapContext&) {
  if (!call.outputs.empty() && call.outputs.front().on_host) return nothing();
  const double begin = call.number(1) ? call.number(0).value_or(0) : 0;
  const double end = call.number(1) ? *call.number(1) : call.number(0).value_or(0);
  const std::int64_t count = whole_number(end - begin, 0);
  if (count < 1) return std::nullopt;
  const AtenTensor y = result_of(call, 0, fresh(DType::int64, {count}));
  return one(pointwise_op(P::arange, {}, y));
}

/// Zeros, then ones along the diagonal.
MappedOps eye(const AtenCall& call, const MapContext&) {
  auto ops = filled(call);
  if (!ops || ops->empty() || call.outputs.empty()) return ops;
  const AtenTensor& y = call.outputs.front();
  const std::int64_t rows = y.sizes.empty() ? 1 : std::max<std::int64_t>(1, y.sizes.front());
  AtenTensor diagonal = fresh(y.type, {std::min(rows, std::max<std::int64_t>(1, y.last()))});
  diagonal.storage = y.storage;
  ops->push_back(pointwise_op(P::fill, {}, diagonal));
  return ops;
}
/// (first, last, steps).
MappedOps linspace(const AtenCall& call, const MapContext&) {
  const AtenTensor y = call.outputs.empty() ? fresh(DType::fp32, {call.whole(2, 0)}) : call.outputs.front();
  return unless_empty(y, pointwise_op(P::arange, {}, y));
}

MappedOps update_scale(const AtenCall& call, const MapContext&) {
  const AtenTensor *scale = call.tensor(0), *found = call.tensor(2);
  if (scale == nullptr || found == nullptr) return std::nullopt;
  return one(pointwise_op(P::other, {scale, found}, *scale));
}

/// (x, exponent), either of which may be a number: squares, roots and reciprocals are computed as such.
template <bool InPlace>
MappedOps power(const AtenCall& call, const MapContext&) {
  const std::optional<double> exponent = call.number(1);
  for (const double simple : {2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.0, 0.0})
    if (exponent == simple) return binary({How::binary, P::mul, P::pow2, {}}, InPlace, call);
  auto ops = binary({How::binary, P::power, P::power, {}}, InPlace, call);
  // A number to the power of a tensor is filled into a tensor first, and repeated.
  if (!ops || ops->empty() || call.tensor(0) != nullptr) return ops;
  const AtenTensor base = fresh(DType::fp32, {});
  std::get<Pointwise>(ops->front().op).walk = Walk::broadcast;
  ops->insert(ops->begin(), pointwise_op(P::fill, {}, base));
  return ops;
}

/// (x, smallest, largest): numbers, or tensors that are read beside it.
template <bool InPlace>
MappedOps clamp(const AtenCall& call, const MapContext&) {
  const AtenTensor *x = call.tensor(0), *least = call.tensor(1), *most = call.tensor(2);
  if (x == nullptr || (least == nullptr && most == nullptr)) return unary(P::clamp, InPlace, call);
  return several(P::other, InPlace, call);
}

// Overloads of a name are one call here (native_functions.yaml of PyTorch 2.11); functors are those of
// aten/src/ATen/native/cuda.
constexpr Alike kAlike[] = {
    {How::binary, P::add, P::scale, "aten::add aten::sub aten::rsub"},
    {How::binary, P::add_in_place, P::scale, "aten::add_ aten::sub_"},
    {How::binary, P::mul, P::divide, "aten::div aten::div_"},
    {How::binary, P::add, P::clamp, "aten::maximum aten::minimum"},
    {How::compared, P::equal, P::equal,
     "aten::eq aten::ne aten::lt aten::le aten::gt aten::ge aten::logical_and "
     "aten::logical_and_ aten::logical_or aten::logical_or_ aten::logical_xor aten::logical_xor_"},
    {How::binary, P::mul, P::scale,
     "aten::mul aten::mul_ aten::bitwise_and aten::bitwise_and_ aten::bitwise_or aten::bitwise_or_ aten::bitwise_xor "
     "aten::bitwise_xor_ aten::hypot aten::hypot_ aten::copysign aten::copysign_ aten::polar aten::fmin aten::fmax "
     "aten::xlogy"},
    {How::binary, P::modulo, P::modulo,
     "aten::remainder aten::remainder_ aten::fmod aten::fmod_ aten::floor_divide aten::floor_divide_"},
    {How::binary, P::arctangent, P::arctangent, "aten::atan2 aten::atan2_ aten::logaddexp"},
    {How::unary,
     P::equal,
     {},
     "aten::logical_not aten::logical_not_ aten::isfinite aten::isnan aten::isinf aten::isneginf aten::isposinf "
     "aten::signbit"},
    {How::unary, P::square_root, {}, "aten::rsqrt aten::rsqrt_"},
    {How::unary, P::scale, {}, "aten::neg aten::neg_"},
    {How::unary, P::relu, {}, "aten::clamp_min aten::clamp_min_"},
    {How::unary, P::clamp, {}, "aten::clamp_max aten::hardtanh aten::hardtanh_"},
    {How::unary,
     P::other,
     {},
     "aten::sigmoid aten::sigmoid_ aten::exp aten::exp_ aten::exp2 aten::exp2_ aten::log aten::log_ aten::log2 "
     "aten::log2_ aten::log10 aten::log10_ aten::abs aten::abs_ aten::erf aten::erf_ "
     "aten::floor aten::floor_ aten::ceil aten::ceil_ aten::round aten::round_ aten::sign aten::sign_ aten::sgn "
     "aten::square aten::square_ aten::frac aten::frac_ aten::trunc aten::trunc_ aten::leaky_relu aten::leaky_relu_ "
     "aten::hardswish aten::hardswish_ aten::hardsigmoid aten::log_sigmoid_forward aten::bitwise_not "
     "aten::nan_to_num aten::nan_to_num_ aten::logit"},
    // Functions whose arithmetic is as long as that of an error function or an exponential and a quotient.
    {How::unary, P::gelu, {}, "aten::elu aten::elu_ aten::celu aten::celu_"},
    {How::unary,
     P::tanh,
     {},
     "aten::sin aten::sin_ aten::cos aten::cos_ aten::tan aten::tan_ aten::asin aten::acos aten::atan aten::atan_ "
     "aten::sinh aten::cosh aten::erfc aten::expm1 aten::expm1_ aten::log1p aten::log1p_ aten::sinc"},
    {How::unary,
     P::special,
     {},
     "aten::digamma aten::digamma_ aten::erfinv aten::erfinv_ aten::lgamma_ aten::igamma aten::polygamma"},
    {How::unary, P::random, {}, "aten::bernoulli"},
    {How::several,
     P::other,
     {},
     "aten::where aten::lerp aten::lerp_ aten::addcmul aten::addcmul_ aten::addcdiv aten::addcdiv_"},
    {How::backward,
     P::other,
     {},
     "aten::sigmoid_backward aten::leaky_relu_backward aten::elu_backward aten::hardswish_backward "
     "aten::hardsigmoid_backward aten::hardtanh_backward "
     "aten::log_sigmoid_backward"},
    {How::fill,
     P::fill,
     {},
     "aten::fill aten::fill_ aten::zero_ aten::zeros aten::ones aten::full aten::zeros_like aten::ones_like "
     "aten::full_like aten::new_zeros aten::new_ones aten::new_full aten::scalar_tensor"},
    {How::draw,
     P::random,
     {},
     "aten::rand aten::randn aten::randint aten::rand_like aten::randn_like aten::randint_like aten::bernoulli_ "
     "aten::uniform_ aten::normal_ aten::random_ aten::exponential_ aten::log_normal_ aten::cauchy_ "
     "aten::geometric_"}};

MappedOps mapped_alike(const Alike& of, bool in_place, const AtenCall& call) {
  switch (of.how) {
    case How::unary: return unary(of.function, in_place, call);
    case How::binary:
    case How::compared: return binary(of, in_place, call);
    case How::several: return several(of.function, in_place, call);
    case How::backward: return backward_of(of.function, call);
    case How::fill: return filled(call);
    case How::draw: return drawn(in_place, call);
  }
  return std::nullopt;
}

void add_alike(RuleTable& table, const Alike& of) {
  add(table, of.names,
      [of](const AtenCall& call, const MapContext&) { return mapped_alike(of, call.name.ends_with('_'), call); });
}

}  // namespace

void add_rules_of_rows(RuleTable& table) {
  for (const PointwiseRow& row : pointwise_rows()) {
    if (row.tensors < 1) continue;
    const How how = row.key.ends_with("_backward") ? How::backward : row.tensors == 1 ? How::unary : How::binary;
    const P function = pointwise_function(row.key);
    add_alike(table, {how, function, function, row.call.names});
  }
}

void add_pointwise_rules(RuleTable& table) {
  table.insert({{"aten::gelu", gelu<false>},
                {"aten::gelu_", gelu<true>},
                {"aten::gelu_backward", gelu_backward},
                {"aten::masked_fill", masked_fill<false>},
                {"aten::masked_fill_", masked_fill<true>},
                {"aten::_amp_update_scale_", update_scale},
                {"aten::arange", arange},
                {"aten::eye", eye},
                {"aten::linspace", linspace},
                {"aten::clamp", clamp<false>},
                {"aten::clamp_", clamp<true>},
                {"aten::pow", power<false>},
                {"aten::pow_", power<true>}});
  for (const Alike& each : kAlike) add_alike(table, each);
}

}  // namespace ridgeline::trace
