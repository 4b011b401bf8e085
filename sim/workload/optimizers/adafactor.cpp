#include "sim/workload/optimizers/adafactor.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"
#include "sim/workload/aten/views.h"

namespace ridgeline::optimizers {

using eager::Dims;
using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

/// Root of the mean square: a norm over everything, divided by a number.
Tensor root_mean_square(Eager& eager, const Tensor& x) {
  const Tensor norm = eager.empty({}, x.type);
  eager.recorder.op(Reduction{ReductionKind::norm_all, x.type, 1, x.elements()}, {&x}, {&norm});
  return aten::divide(eager, norm);
}

}  // namespace

void Adafactor::step(Eager& eager, Parameters& parameters) {
  constexpr int kCalls = 24;  // Python-visible operations a tensor
  for (auto& parameter : parameters) {
    eager.recorder.host(HostClass::pointwise, kCalls);
    step_one(eager, parameter);
  }
}

void Adafactor::step_one(Eager& eager, Parameter& parameter) {
  using F = PointwiseFunction;
  const Tensor& value = parameter.value;
  const Tensor& gradient = parameter.gradient;
  const bool matrix = value.sizes.rank() == 2;
  if (parameter.states.empty()) {
    if (matrix) {
      parameter.states.push_back(zero_state(eager, {value.sizes[0]}, value.type));
      parameter.states.push_back(zero_state(eager, {value.sizes[1]}, value.type));
    } else {
      parameter.states.push_back(zero_state(eager, value.sizes, value.type));
    }
  }
  const Tensor scale_of_parameter = root_mean_square(eager, value);
  eager.recorder.wait_for_gpu();  // max(eps, rms) is a Python number
  Tensor update = aten::add_number(eager, aten::square(eager, gradient));
  if (matrix) {
    const Tensor &row = parameter.states[0], &column = parameter.states[1];
    const Tensor mean_of_rows = aten::view(eager, aten::mean_last(eager, update), row.sizes);
    aten::pointwise(eager, F::scale, {&row}, row);
    aten::add_in_place(eager, row, mean_of_rows);
    const Tensor mean_of_columns = aten::sum_to(eager, update, column.sizes);
    aten::pointwise(eager, F::scale, {&column}, column);
    aten::add_in_place(eager, column, mean_of_columns);
    const Tensor mean = aten::sum_to(eager, aten::view(eager, row, {1, row.sizes[0]}), {1, 1});
    Tensor row_factor = aten::divide(eager, row);
    aten::pointwise(eager, F::square_root, {&row_factor}, row_factor);
    row_factor = aten::view(eager, row_factor, {row.sizes[0], 1});
    const Tensor column_factor = aten::view(eager, aten::rsqrt(eager, column), {1, column.sizes[0]});
    Tensor factors = eager.empty(value.sizes, value.type);
    aten::pointwise(eager, F::mul, {&row_factor, &column_factor}, factors);
    update = std::move(factors);
    aten::pointwise(eager, F::mul, {&update, &gradient}, update);
  } else {
    const Tensor& square = parameter.states[0];
    aten::pointwise(eager, F::scale, {&square}, square);
    aten::add_in_place(eager, square, update);
    update = aten::rsqrt(eager, square);
    aten::pointwise(eager, F::mul, {&update, &gradient}, update);
  }
  Tensor clip = root_mean_square(eager, update);
  clip = aten::divide(eager, clip);
  aten::pointwise(eager, F::clamp, {&clip}, clip);
  aten::pointwise(eager, F::divide, {&update, &clip}, update);
  aten::pointwise(eager, F::scale, {&update}, update);
  const Tensor negative = aten::negate(eager, update);
  aten::add_in_place(eager, value, negative);
}

}  // namespace ridgeline::optimizers
