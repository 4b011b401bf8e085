#include "sim/workload/optimizers/bert_adam.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/optimizers/gradient_clipping.h"

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
  const auto call = [&](F function, std::initializer_list<const Tensor*> inputs, const Tensor& output) {
    eager.recorder.host(HostClass::optimizer_op);
    aten::pointwise(eager, function, inputs, output);
  };
  const auto fresh = [&](F function, std::initializer_list<const Tensor*> inputs) {
    Tensor result = eager.empty_like(**inputs.begin());
    call(function, inputs, result);
    return result;
  };
  Tensor update, scaled;  // variables of the loop: Python keeps them from one tensor to the next
  for (auto& parameter : parameters) {
    if (!parameter.gradient.defined()) continue;  // as the pooler's of a head that does not use it
    clip_gradient(eager, parameter, clipping_);
    const Tensor &value = parameter.value, &gradient = parameter.gradient, &average = parameter.states[0],
                 &square = parameter.states[1];
    call(F::scale, {&average}, average);
    call(F::add_in_place, {&average, &gradient}, average);
    call(F::scale, {&square}, square);
    call(F::other, {&square, &gradient}, square);
    Tensor root = fresh(F::square_root, {&square});
    root = fresh(F::add, {&root});
    update = fresh(F::divide, {&average, &root});
    root = Tensor{};
    if (value.sizes.rank() > 1) {  // biases and norms do not decay
      const Tensor decay = fresh(F::scale, {&value});
      call(F::add_in_place, {&update, &decay}, update);
    }
    scaled = fresh(F::scale, {&update});  // times the learning rate
    const Tensor negative = fresh(F::scale, {&scaled});
    call(F::add_in_place, {&value, &negative}, value);
  }
}

}  // namespace ridgeline::optimizers
