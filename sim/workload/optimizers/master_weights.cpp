#include "sim/workload/optimizers/master_weights.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/optimizer.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;

MasterWeights::MasterWeights(Eager& eager, const Parameters& parameters) {
  for (const Parameter& parameter : parameters) {
    Parameter& copy = copies.emplace_back();
    copy.partial_gradient = parameter.partial_gradient;
    copy.value = eager.empty(parameter.value.sizes, DType::fp32);
    eager.recorder.set_category(copy.value.storage.id(), Category::optimizer_state);
    eager.recorder.set_layer_like(copy.value.storage.id(), parameter.value.storage.id());
  }
  overflow_ = zero_state(eager, {}, DType::int32);
}

void MasterWeights::take_gradients(Eager& eager, const Parameters& parameters) {
  eager.recorder.phase = Phase::optimizer;
  eager.recorder.host(HostClass::unscale_fixed);
  eager.recorder.host(HostClass::per_parameter_unscale, static_cast<std::int64_t>(copies.size()));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (!parameters[i].gradient.defined()) continue;
    copies[i].gradient = eager.empty(copies[i].value.sizes, DType::fp32);
    eager.recorder.set_category(copies[i].gradient.storage.id(), Category::gradients);
  }
  // One kernel reads 2 bytes and writes 4; counted as a copy of fp32, which moves 8.
  foreach (eager, MultiTensorFunction::copy, DType::fp32, sizes_of(copies),
           {gradients_of(parameters), gradients_of(copies)})
    ;
  eager.recorder.op(Copy{CopyKind::device_to_host, DType::int32, 1, 1, 1}, {&overflow_}, {});
  eager.recorder.wait_for_gpu();
}

void MasterWeights::return_values(Eager& eager, const Parameters& parameters) {
  const TensorList values = values_of(parameters);
  // As above, the other way round.
  foreach (eager, MultiTensorFunction::copy, DType::fp32, sizes_of(copies), {values_of(copies), values})
    ;
  for (Parameter& copy : copies) copy.gradient = Tensor{};
}

}  // namespace ridgeline::optimizers
