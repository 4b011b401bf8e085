#include "sim/workload/optimizers/bits_and_bytes.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameters;
using eager::Tensor;

void BitsAndBytes::step(Eager& eager, Parameters& parameters, const Tensor&) {
  for (auto& parameter : parameters) {
    const Tensor& value = parameter.value;
    const bool quantized = how_.quantized && value.elements() >= kSmallestQuantized;
    // get_state_buffer: unified memory for large tensors, which PyTorch's allocator does not hold.
    const bool elsewhere = how_.paged && value.elements() >= kSmallestPaged;
    if (parameter.states.empty()) {
      if (quantized && !maps_[0].defined())
        for (int i = 0; i < how_.states; ++i)
          maps_[static_cast<std::size_t>(i)] = zero_state(eager, {256}, DType::fp32);
      for (int i = 0; i < how_.states; ++i) {
        if (!elsewhere)
          parameter.states.push_back(zero_state(eager, value.sizes, quantized ? DType::uint8 : DType::fp32));
        if (quantized)
          parameter.states.push_back(
              zero_state(eager, {(value.elements() + how_.block - 1) / how_.block}, DType::fp32));
      }
    }
    eager.recorder.host(HostClass::pointwise);
    Pointwise update;
    update.function = how_.states > 1 ? PointwiseFunction::update_two : PointwiseFunction::update_one;
    update.rows = 1;
    update.cols = value.elements();
    update.inputs[0] = update.output = value.type;
    update.inputs[1] = parameter.gradient.type;
    update.inputs[2] = quantized ? DType::uint8 : DType::fp32;
    update.input_count = 3;
    const Tensor& first = elsewhere ? parameter.gradient : parameter.states.front();
    eager.recorder.op(update, {&value, &parameter.gradient, &first}, {&value});
  }
  // The library waits for its kernels at the end of a step.
  eager.recorder.wait_for_gpu();
}

}  // namespace ridgeline::optimizers
