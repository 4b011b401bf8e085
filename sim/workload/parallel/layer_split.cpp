#include "sim/workload/parallel/layer_split.h"

#include <fmt/format.h>

namespace ridgeline::parallel {

using eager::Eager;
using eager::Gradients;
using eager::Node;
using eager::Tensor;

namespace {

struct CopyBackward final : Node {
  CopyBackward(std::uint8_t there, std::uint8_t here) : Node(HostClass::cast_backward), from(there), to(here) {}
  std::uint8_t from, to;  ///< of the forward copy
  void backward(Eager& eager, Gradients& in, Gradients& out) override {
    out[0] = copy_to_device(eager, in[0], to, from);
  }
};

}  // namespace

Tensor copy_to_device(Eager& eager, const Tensor& x, std::uint8_t from, std::uint8_t to) {
  eager::Recorder& recorder = eager.recorder;
  Tensor result;
  {
    const OnStream there(recorder, to);
    result = eager.empty_like(x);
  }
  recorder.wait_event(from, recorder.record_event(to));
  {
    const OnStream here(recorder, from);
    recorder.op(Collective{CollectiveKind::peer_copy, GroupKind::pipeline, x.type, 2, x.bytes()}, {&x}, {&result});
  }
  recorder.wait_event(to, recorder.record_event(from));
  return result;
}

LayerSplit::LayerSplit(Eager& eager, eager::Parameters& parameters, std::int64_t blocks, std::int64_t devices)
    : eager_(eager), parameters_(parameters), blocks_(blocks), devices_(devices), parts_(devices) {
  for (std::int64_t device = 1; device < devices; ++device) eager.recorder.add_stream(fmt::format("device {}", device));
  bool behind = false;  // all blocks
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    eager::Parameter& parameter = parameters[i];
    const std::int64_t layer = parameter.accumulate.layer;
    behind = behind || layer == blocks - 1;
    const std::uint8_t device = layer >= 0 ? device_of(layer)
                                : behind   ? static_cast<std::uint8_t>(devices - 1)
                                           : std::uint8_t{0};
    parameter.accumulate.stream = device;
    eager.recorder.move_to(parameter.value.storage.id(), device);
    Part& part = parts_[device];
    part.stream = device;
    part.parameters.emplace_back().value = parameter.value.detached();
  }
  eager.tape.follows_streams = true;
}

Tensor LayerSplit::before_block(std::int64_t block, Tensor input) {
  const std::uint8_t from = eager_.recorder.stream, to = device_of(block);
  if (from == to) return input;
  eager_.recorder.host(HostClass::cast);
  eager_.recorder.stream = to;
  Node* node = eager_.needs_node({&input}) ? &eager_.node<CopyBackward>({&input}, from, to) : nullptr;
  Tensor result = copy_to_device(eager_, input, from, to);
  if (node != nullptr) Eager::attach(result, *node);
  return result;
}

void LayerSplit::update(optimizers::Optimizer& optimizer) {
  std::vector<std::size_t> next(parts_.size(), 0);
  for (eager::Parameter& parameter : parameters_) {
    const std::size_t device = parameter.accumulate.stream;
    parts_[device].parameters[next[device]++].gradient = parameter.gradient;
  }
  for (Part& part : parts_) {
    if (part.parameters.empty()) continue;
    const OnStream there(eager_.recorder, part.stream);
    optimizer.step(eager_, part.parameters, Tensor{});
  }
  for (Part& part : parts_)
    for (eager::Parameter& parameter : part.parameters) parameter.gradient = Tensor{};
}

}  // namespace ridgeline::parallel
