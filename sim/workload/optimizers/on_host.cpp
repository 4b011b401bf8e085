#include "sim/workload/optimizers/on_host.h"

#include <algorithm>
#include <utility>

#include "sim/units/ceil_div.h"

namespace ridgeline::optimizers {

using eager::Eager;
using eager::Parameter;
using eager::Parameters;
using eager::Tensor;

namespace {

constexpr std::int64_t kStaysOnDevice = 4096;  // elements below: minimal_size of CPUOffloadOptimizer

void copy(Eager& eager, CopyKind kind, const Tensor& tensor) {
  eager.recorder.host(HostClass::optimizer_op);
  eager.recorder.op(Copy{kind, tensor.type, 1, tensor.elements(), 1}, {&tensor}, {&tensor});
}

}  // namespace

bool OnHost::holds(const Parameter& parameter) {
  return !parameter.frozen && parameter.value.elements() >= kStaysOnDevice;
}

OnHost::OnHost(Eager& eager, Optimizer& optimizer, Parameters& parameters, OptimizerDescription how,
               std::function<bool()> waits)
    : eager_(eager),
      optimizer_(optimizer),
      parameters_(parameters),
      how_(how),
      waits_(std::move(waits)),
      stream_(eager.recorder.add_stream("optimizer offload")) {
  for (Parameter& parameter : parameters)
    if (holds(parameter))
      parameter.after_accumulate = [this, &parameter] {
        if (waits_()) waiting_.push_back(&parameter);
        else take(parameter);
      };
}

void OnHost::catch_up() {
  for (Parameter* parameter : std::exchange(waiting_, {})) take(*parameter);
}

void OnHost::take(Parameter& parameter) {
  if (!parameter.gradient.defined()) return;
  eager::Recorder& recorder = eager_.recorder;
  recorder.wait_event(stream_, recorder.record_event(recorder.stream));
  const std::uint8_t before = std::exchange(recorder.stream, stream_);
  copy(eager_, CopyKind::device_to_host, parameter.gradient);
  const std::uint32_t event = recorder.record_event(stream_);
  recorder.stream = before;
  // A gradient that is added to moves to the end of the queue.
  std::erase_if(queue_, [&](const Arrived& one) { return one.parameter == &parameter; });
  queue_.push_back({&parameter, event});
  if (how_.offload == OptimizerOffload::gradients) parameter.gradient = Tensor{};
}

void OnHost::step() {
  eager::Recorder& recorder = eager_.recorder;
  with_those(
      parameters_, [](const Parameter& parameter) { return !parameter.frozen && !holds(parameter); },
      [&](Parameters& list) { optimizer_.update(eager_, list, {}); });
  const bool fused = how_.implementation == OptimizerImplementation::fused;
  for (const Arrived& one : std::exchange(queue_, {})) {
    const Tensor& value = one.parameter->value;
    recorder.host_waits_for_event(one.event);
    // An optimizer of its own for each parameter: optimizer.step() of one tensor.
    recorder.host(fused ? HostClass::fused_fixed : HostClass::foreach_fixed);
    recorder.host(fused ? HostClass::per_parameter_fused : HostClass::per_parameter_for_loop);
    recorder.host(fused ? HostClass::host_update_fused : HostClass::host_update_for_loop,
                  ceil_div(value.elements(), kHostElements));
    const std::uint8_t before = std::exchange(recorder.stream, stream_);
    copy(eager_, CopyKind::host_to_device, value);
    recorder.stream = before;
  }
  recorder.host_waits_for_event(recorder.record_event(stream_));
}

}  // namespace ridgeline::optimizers
