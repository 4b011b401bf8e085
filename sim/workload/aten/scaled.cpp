#include "sim/workload/aten/scaled.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"
#include "sim/workload/aten/written_out.h"
#include "sim/workload/eager/eager.h"

namespace ridgeline::eager::aten {
namespace {

using F = PointwiseFunction;

/// Which dimension a scale is found over: all of a matrix, its columns (a scale a row), its rows.
enum class Over : std::uint8_t { all, columns, rows };

struct Scaled {
  Tensor values, scale;
};

/// The largest absolute value, of the matrix or of each of its rows or columns.
Tensor largest(Eager& eager, const Tensor& x, Over over) {
  Tensor absolute = plain(eager, F::other, x.sizes, x.type, {&x});
  if (over != Over::all && x.type != DType::fp32) {
    const Tensor wide = plain(eager, F::cast, x.sizes, DType::fp32, {&absolute});
    absolute = wide;
    absolute = plain(eager, F::other, x.sizes, DType::fp32, {&absolute});
  }
  const std::int64_t rows = x.sizes[0], cols = x.sizes[1];
  Dims sizes;
  Reduction op{ReductionKind::sum_all, absolute.type, 1, x.elements()};
  if (over == Over::columns) {
    op = {ReductionKind::sum_cols, absolute.type, rows, cols};
    sizes = {rows, 1};
  } else if (over == Over::rows) {
    op = {ReductionKind::sum_rows, absolute.type, rows, cols};
    sizes = {1, cols};
  }
  Tensor result = eager.empty(sizes, absolute.type);
  eager.recorder.op(op, {&absolute}, {&result});
  return result;
}

/// x over its largest value, in range, in 8 bits: casts and products in fp32 before.
Scaled scaled(Eager& eager, const Tensor& x, Over over) {
  eager.recorder.host(HostClass::pointwise, over == Over::all ? 11 : 16);
  Scaled result;
  {
    Tensor scale = largest(eager, x, over);
    const Dims sizes = scale.sizes;
    scale = plain(eager, F::cast, sizes, DType::fp64, {&scale});
    for (const F step : {F::clamp, F::reciprocal, F::scale}) scale = plain(eager, step, sizes, DType::fp64, {&scale});
    scale = plain(eager, F::cast, sizes, DType::fp32, {&scale});
    if (over != Over::all)  // down to a power of two
      for (int i = 0; i < 3; ++i) scale = plain(eager, F::other, sizes, DType::fp32, {&scale});
    result.scale = scale;
  }
  Tensor wide;
  {
    const Tensor cast = x.type == DType::fp32 ? x : plain(eager, F::cast, x.sizes, DType::fp32, {&x});
    wide = plain(eager, F::mul, x.sizes, DType::fp32, {&cast, &result.scale});
  }
  const Tensor limited = plain(eager, F::clamp, x.sizes, DType::fp32, {&wide});
  result.values = plain(eager, F::cast, x.sizes, DType::uint8, {&limited});
  return result;
}

/// The first operand of a product lies row by row, the second column by column: else it is copied.
Tensor turned_over(Eager& eager, const Tensor& x) {
  Tensor result = eager.empty({x.sizes[1], x.sizes[0]}, x.type);
  eager.recorder.host(HostClass::contiguous);
  eager.recorder.op(Copy{CopyKind::transpose, x.type, x.sizes[1], x.sizes[0], 1}, {&x}, {&result});
  return result;
}

/// Of a [m, k] and b [n, k], both as they lie, with the inverses of their scales.
Tensor product(Eager& eager, const Tensor& a, const Tensor& b, const Scaled& first, const Scaled& second, DType type,
               Scaling scaling) {
  eager.recorder.host(HostClass::pointwise, 2);
  eager.recorder.host(HostClass::linear);
  const Tensor one = plain(eager, F::reciprocal, first.scale.sizes, DType::fp32, {&first.scale}),
               other = plain(eager, F::reciprocal, second.scale.sizes, DType::fp32, {&second.scale});
  Tensor result = eager.empty({a.sizes[0], b.sizes[0]}, type);
  Matmul op{.type = type, .m = a.sizes[0], .n = b.sizes[0], .k = a.sizes[1], .layout = Layout::nt};
  op.scaling = scaling;
  eager.recorder.op(op, {&a, &b}, {&result});
  return result;
}

/// The weight made to wait for the gradient: a sum of zeros is added to it.
Tensor after(Eager& eager, const Tensor& weight, const Tensor& gradient) {
  eager.recorder.host(HostClass::pointwise, 3);
  const Tensor nothing = plain(eager, F::scale, gradient.sizes, gradient.type, {&gradient});
  const Tensor sum = eager.empty({}, gradient.type);
  eager.recorder.op(Reduction{ReductionKind::sum_all, gradient.type, 1, gradient.elements()}, {&nothing}, {&sum});
  return plain(eager, F::add, weight.sizes, weight.type, {&weight, &sum});
}

struct ScaledBackward final : Node {
  ScaledBackward() : Node(HostClass::mm_backward) {}
  SavedTensor input, weight;
  ScaledLinear scales = ScaledLinear::none;

  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    const Tensor x = input.unpack(eager), w = weight.unpack(eager);
    const bool rows = scales == ScaledLinear::rowwise;
    const Scaling scaling = rows ? Scaling::rows_fast : Scaling::tensor;
    const std::int64_t width = w.sizes[0], k = w.sizes[1];
    const Tensor gradient = view(eager, contiguous(eager, in[0]), {in[0].elements() / width, width});
    Scaled gradient_once, weight_again;  // live to the end, as the function's variables do
    Tensor waiting;
    if (needs(0)) {
      gradient_once = scaled(eager, gradient, rows ? Over::columns : Over::all);
      waiting = rows ? after(eager, w, gradient) : w;
      weight_again = scaled(eager, waiting, rows ? Over::rows : Over::all);
      const Tensor right = turned_over(eager, weight_again.values);
      out[0] =
          view(eager, product(eager, gradient_once.values, right, gradient_once, weight_again, gradient.type, scaling),
               x.sizes);
    }
    if (!needs(1)) return;
    const Tensor flat = view(eager, x, {x.elements() / k, k});
    const Scaled first = scaled(eager, gradient, rows ? Over::rows : Over::all);
    gradient_once = {};
    const Scaled second = scaled(eager, flat, rows ? Over::rows : Over::all);
    const Tensor left = turned_over(eager, first.values), right = turned_over(eager, second.values);
    out[1] = to(eager, product(eager, left, right, first, second, gradient.type, scaling), w.type);
  }
  void release() override {
    input.release();
    weight.release();
  }
};

}  // namespace

Tensor scaled_linear(Eager& eager, const Tensor& x, const Tensor& weight, ScaledLinear scales) {
  ScaledBackward* node = nullptr;
  if (eager.needs_node({&x, &weight})) {
    node = &eager.node<ScaledBackward>({&x, &weight});
    node->scales = scales;
    node->input = eager.save(x);
    node->weight = eager.save(weight);
  }
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, false);
  const bool rows = scales == ScaledLinear::rowwise;
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = weight.sizes[0];
  const std::int64_t k = x.sizes.last();
  const Tensor flat = view(eager, contiguous(eager, x.detached()), {x.elements() / k, k});
  Tensor result;
  {
    const Scaled first = scaled(eager, flat, rows ? Over::columns : Over::all),
                 second = scaled(eager, weight.detached(), rows ? Over::columns : Over::all);
    result = view(eager,
                  product(eager, first.values, second.values, first, second, x.type,
                          rows ? Scaling::rows_fast : Scaling::tensor_fast),
                  sizes);
  }
  eager.gradients_enabled = gradients_enabled;
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

Tensor row_scaled_linear(Eager& eager, const Tensor& x, const Tensor& values, const Tensor& scales,
                         const Tensor* bias) {
  Dims sizes = x.sizes;
  sizes[sizes.rank() - 1] = values.sizes[0];
  const std::int64_t k = x.sizes.last();
  const Scaled rows = scaled(eager, view(eager, contiguous(eager, x), {x.elements() / k, k}), Over::columns);
  Tensor result =
      view(eager, product(eager, rows.values, values, rows, Scaled{values, scales}, x.type, Scaling::rows_fast), sizes);
  if (bias == nullptr) return result;
  eager.recorder.host(HostClass::pointwise);
  return plain(eager, F::add, sizes, x.type, {&result, bias});
}

}  // namespace ridgeline::eager::aten
