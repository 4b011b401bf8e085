#include "sim/workload/optimizers/bert_adam.h"

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;
namespace aten = eager::aten;

void BertAdam::step(Eager& eager, Parameters& parameters, const Tensor&) {
  using F = PointwiseFunction;
  if (!parameters.empty() && parameters.front().states.empty())
    for (auto& parameter : parameters)
      for (int i = 0; i < 2; ++i)
        parameter.states.push_back(zero_state(eager, parameter.value.sizes, parameter.value.type));
  // The norm of everything, which the host reads before it begins.
  foreach (eager, MultiTensorFunction::norm, parameters.front().value.type, sizes_of(parameters),
           {gradients_of(parameters)})
    ;
  const Tensor norm = eager.empty({}, DType::fp32);
  eager.recorder.op(Copy{CopyKind::device_to_host, DType::fp32, 1, 1, 1}, {&norm}, {});
  eager.recorder.wait_for_gpu();
  const auto fresh = [&](F function, std::initializer_list<const Tensor*> inputs) {
    Tensor result = eager.empty_like(**inputs.begin());
    aten::pointwise(eager, function, inputs, result);
    return result;
  };
  for (auto& parameter : parameters) {
    eager.recorder.host(HostClass::per_parameter_for_loop);
    const Tensor &value = parameter.value, &gradient = parameter.gradient, &average = parameter.states[0],
                 &square = parameter.states[1];
    // A clipped copy of the value: times the largest norm, over the norm.
    const Tensor clipped = fresh(F::divide, {&value});
    aten::pointwise(eager, F::scale, {&clipped}, clipped);
    aten::pointwise(eager, F::scale, {&average}, average);
    aten::pointwise(eager, F::add_in_place, {&average, &gradient}, average);
    aten::pointwise(eager, F::scale, {&square}, square);
    aten::pointwise(eager, F::other, {&square, &gradient}, square);
    Tensor root = fresh(F::square_root, {&square});
    root = fresh(F::add, {&root});
    Tensor update = fresh(F::divide, {&average, &root});
    root = Tensor{};
    if (value.sizes.rank() > 1) {  // biases and norms do not decay
      const Tensor decay = fresh(F::scale, {&clipped});
      aten::pointwise(eager, F::add_in_place, {&update, &decay}, update);
    }
    update = fresh(F::scale, {&update});  // times the learning rate
    update = fresh(F::scale, {&update});  // minus
    aten::pointwise(eager, F::add_in_place, {&clipped, &update}, clipped);
  }
}

}  // namespace ridgeline::optimizers
