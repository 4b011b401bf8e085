#include "sim/workload/optimizers/gradient_scaler.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

Tensor GradientScaler::scale(Eager& eager, const Tensor& loss) {
  if (!scale_.defined()) {
    scale_ = zero_state(eager, {}, DType::fp32);
    growth_ = zero_state(eager, {}, DType::int32);
  }
  eager.recorder.host(HostClass::pointwise);
  return aten::mul(eager, loss, scale_);
}

void GradientScaler::unscale(Eager& eager, Parameters& parameters) {
  eager.recorder.host(HostClass::unscale_fixed);
  eager.recorder.host(HostClass::per_parameter_unscale, static_cast<std::int64_t>(parameters.size()));
  Tensor found;
  Tensor inverse = aten::to(eager, scale_, DType::fp64);
  {
    Tensor reciprocal = eager.empty_like(inverse);
    aten::pointwise(eager, PointwiseFunction::reciprocal, {&inverse}, reciprocal);
    inverse = std::move(reciprocal);
  }
  inverse = aten::to(eager, inverse, DType::fp32);
  found = aten::full(eager, {}, DType::fp32);
  // Each device gets a copy of both numbers.
  found_overflow_ = eager.empty_like(found);
  eager.recorder.op(Copy{CopyKind::contiguous, DType::fp32, 1, 1, 1}, {&found}, {&found_overflow_});
  const Tensor inverse_here = eager.empty_like(inverse);
  eager.recorder.op(Copy{CopyKind::contiguous, DType::fp32, 1, 1, 1}, {&inverse}, {&inverse_here});
  foreach (eager, MultiTensorFunction::unscale, parameters.front().value.type, sizes_of(parameters),
           {gradients_of(parameters)})
    ;
}

void GradientScaler::check(Eager& eager) const {
  eager.recorder.op(Copy{CopyKind::device_to_host, DType::fp32, 1, 1, 1}, {&found_overflow_}, {});
  eager.recorder.wait_for_gpu();
}

Tensor GradientScaler::overflow_flag(Eager& eager) const { return aten::add_number(eager, found_overflow_); }

void GradientScaler::update(Eager& eager) {
  aten::pointwise(eager, PointwiseFunction::other, {&scale_, &found_overflow_}, scale_);
  found_overflow_ = Tensor{};
}

}  // namespace ridgeline::optimizers
