#include "sim/workload/eager/parameter.h"

#include "sim/workload/aten/pointwise.h"
#include "sim/workload/aten/views.h"

namespace ridgeline::eager {

void Parameter::allocate(Eager& eager, const Dims& sizes, DType type) {
  value = eager.empty(sizes, type);
  eager.recorder.set_category(value.storage.id(), Category::weights);
  Eager::attach(value, accumulate);
  value.leaf = true;
  accumulate.layer = eager.recorder.layer;
  accumulate.module = eager.recorder.module;
}

void AccumulateGradient::backward(Eager& eager, Gradients& incoming, Gradients&) {
  Tensor& gradient = parameter_.gradient;
  if (gradient.defined()) {
    eager.recorder.host(HostClass::accumulate_grad_add);
    aten::add_in_place(eager, gradient, incoming[0]);
    if (parameter_.after_accumulate) parameter_.after_accumulate();
    return;
  }
  gradient = incoming[0].contiguous() ? std::move(incoming[0]) : aten::contiguous(eager, incoming[0]);
  eager.recorder.set_category(gradient.storage.id(), Category::gradients);
  if (parameter_.after_accumulate) parameter_.after_accumulate();
}

}  // namespace ridgeline::eager
