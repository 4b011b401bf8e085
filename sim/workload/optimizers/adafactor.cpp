#include "sim/workload/optimizers/adafactor.h"

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"

namespace ridgeline::optimizers {

using eager::Dims;
using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

/// The matrices of a tensor, which its last two dimensions are: experts have one each, a convolution one for each pair
/// of channels.
struct Matrices {
  explicit Matrices(const Tensor& x)
      : count(x.elements() / (x.sizes.last(1) * x.sizes.last())), rows(x.sizes.last(1)), cols(x.sizes.last()) {}
  std::int64_t count, rows, cols;
  [[nodiscard]] Dims sizes(std::int64_t down, std::int64_t across) const {
    return count == 1 ? Dims{down, across} : Dims{count, down, across};
  }
};

/// The same elements, all matrices behind each other.
Tensor as_matrices(const Tensor& x) {
  const Matrices of(x);
  Tensor result = x;
  result.sizes = of.sizes(of.rows, of.cols);
  if (x.sizes.rank() != result.sizes.rank()) result.strides = eager::contiguous_strides(result.sizes);
  return result;
}

void create_states(Eager& eager, Parameters& parameters) {
  for (Parameter& parameter : parameters) {
    const Tensor& value = parameter.value;
    if (value.sizes.rank() < 2) {
      parameter.states.push_back(zero_state(eager, value.sizes, value.type));
      continue;
    }
    const Matrices of(value);
    parameter.states.push_back(zero_state(eager, of.sizes(of.rows, 1), value.type));
    parameter.states.push_back(zero_state(eager, of.sizes(1, of.cols), value.type));
  }
}

/// The loop's variables: Python keeps them from one tensor to the next.
class Loop {
 public:
  explicit Loop(Eager& eager) : eager_(eager) {}

  void update(const Parameter& parameter) {
    using F = PointwiseFunction;
    constexpr int kCalls = 16;  // Python-visible operations a tensor
    eager_.recorder.host(HostClass::optimizer_op, kCalls);
    const bool factored = parameter.value.sizes.rank() > 1;
    const Tensor value = factored ? as_matrices(parameter.value) : parameter.value,
                 gradient = factored ? as_matrices(parameter.gradient) : parameter.gradient;
    norm_on_host(value);
    if (factored) {
      row_mean_ = mean_square(gradient, Along::rows);
      in_place(F::other, parameter.states[0], row_mean_);
      column_mean_ = mean_square(gradient, Along::columns);
      in_place(F::other, parameter.states[1], column_mean_);
      const bool one = value.sizes.rank() == 2;
      estimate_ = one ? aten::mm(eager_, parameter.states[0], parameter.states[1])
                      : aten::bmm(eager_, parameter.states[0], parameter.states[1]);
      const Tensor mean = one ? aten::mean_first(eager_, parameter.states[0]) : means(parameter.states[0]);
      aten::pointwise(eager_, F::clamp, {&mean}, mean);
      aten::pointwise(eager_, F::divide, {&estimate_, &mean}, estimate_);
    } else {
      square_ = aten::mul(eager_, gradient, gradient);
      in_place(F::other, parameter.states[0], square_);
      estimate_ = eager_.empty_like(parameter.states[0]);
      eager_.recorder.op(Copy{CopyKind::contiguous, value.type, 1, value.elements(), 1}, {&parameter.states[0]},
                         {&estimate_});
    }
    aten::pointwise(eager_, F::clamp, {&estimate_}, estimate_);
    aten::pointwise(eager_, F::square_root, {&estimate_}, estimate_);
    update_ = estimate_;
    in_place(F::mul, update_, gradient);
    norm_on_host(update_);
    aten::add_in_place(eager_, value, update_);
  }

 private:
  void in_place(PointwiseFunction function, const Tensor& x, const Tensor& other) {
    aten::pointwise(eager_, function, {&x, &other}, x);
  }
  void norm_on_host(const Tensor& x) {
    const Tensor norm = eager_.empty({}, x.type);
    eager_.recorder.op(Reduction{ReductionKind::norm_all, x.type, 1, x.elements()}, {&x}, {&norm});
    eager_.recorder.op(Copy{CopyKind::device_to_host, x.type, 1, 1, 1}, {&norm}, {});
    eager_.recorder.wait_for_gpu();
  }
  enum class Along : std::uint8_t { rows, columns };
  /// Norm over a dimension of each matrix, squared and divided by its length.
  Tensor mean_square(const Tensor& x, Along along) {
    const Matrices of(x);
    const bool rows = along == Along::rows;
    Tensor result = eager_.empty(rows ? of.sizes(of.rows, 1) : of.sizes(1, of.cols), x.type);
    const Reduction sum = rows ? Reduction{ReductionKind::sum_cols, x.type, of.count * of.rows, of.cols}
                               : Reduction{ReductionKind::sum_rows, x.type, of.rows, of.count * of.cols};
    eager_.recorder.op(sum, {&x}, {&result});
    aten::pointwise(eager_, PointwiseFunction::pow2, {&result}, result);
    aten::pointwise(eager_, PointwiseFunction::divide, {&result}, result);
    return result;
  }
  /// Of each of several columns.
  Tensor means(const Tensor& columns) {
    const Matrices of(columns);
    Tensor result = eager_.empty({of.count, 1, 1}, columns.type);
    eager_.recorder.op(Reduction{ReductionKind::mean_cols, columns.type, of.count, of.rows}, {&columns}, {&result});
    return result;
  }

  Eager& eager_;
  Tensor update_, estimate_, square_, column_mean_, row_mean_;  // Python drops them from the last to the first
};

}  // namespace

void Adafactor::step(Eager& eager, Parameters& parameters, const Tensor&) {
  if (!parameters.empty() && parameters.front().states.empty()) create_states(eager, parameters);
  Loop loop(eager);
  for (const Parameter& parameter : parameters) loop.update(parameter);
}

}  // namespace ridgeline::optimizers
