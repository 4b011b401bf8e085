#include "sim/workload/optimizers/adafactor.h"

#include "sim/workload/aten/matmul.h"
#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/reduction.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

namespace {

void create_states(Eager& eager, Parameters& parameters) {
  for (Parameter& parameter : parameters) {
    const Tensor& value = parameter.value;
    if (value.sizes.rank() < 2) {
      parameter.states.push_back(zero_state(eager, value.sizes, value.type));
      continue;
    }
    parameter.states.push_back(zero_state(eager, {value.sizes[0], 1}, value.type));
    parameter.states.push_back(zero_state(eager, {1, value.sizes[1]}, value.type));
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
    const Tensor &value = parameter.value, &gradient = parameter.gradient;
    norm_on_host(value);
    if (value.sizes.rank() > 1) {
      row_mean_ = mean_square(gradient, 1);
      in_place(F::other, parameter.states[0], row_mean_);
      column_mean_ = mean_square(gradient, 0);
      in_place(F::other, parameter.states[1], column_mean_);
      estimate_ = aten::mm(eager_, parameter.states[0], parameter.states[1]);
      const Tensor mean = aten::mean_first(eager_, parameter.states[0]);
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
  /// Norm over a dimension, squared and divided by its length.
  Tensor mean_square(const Tensor& x, int dimension) {
    Tensor result = dimension == 1 ? eager_.empty({x.sizes[0], 1}, x.type) : eager_.empty({1, x.sizes[1]}, x.type);
    const ReductionKind kind = dimension == 1 ? ReductionKind::sum_cols : ReductionKind::sum_rows;
    eager_.recorder.op(Reduction{kind, x.type, x.sizes[0], x.sizes[1]}, {&x}, {&result});
    aten::pointwise(eager_, PointwiseFunction::pow2, {&result}, result);
    aten::pointwise(eager_, PointwiseFunction::divide, {&result}, result);
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
