#include "sim/workload/parallel/replicas.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/workload/aten/pointwise.h"

namespace ridgeline::parallel {

using eager::Tensor;
namespace aten = eager::aten;

namespace {

constexpr std::int64_t kBuffer = std::int64_t{10} << 20;

/// Tensors in order that share a buffer. `overshoots`: a buffer is closed by the tensor that fills it (take_tensors of
/// torch/csrc/utils/tensor_flatten.cpp); else before it (_take_tensors of torch/_utils.py).
std::vector<std::vector<std::size_t>> buffers_of(const eager::Parameters& parameters, bool overshoots) {
  std::vector<std::vector<std::size_t>> buffers;
  std::vector<std::size_t> filling;
  std::int64_t held = 0;
  const auto close = [&] {
    if (!filling.empty()) buffers.push_back(std::move(filling));
    filling.clear();
    held = 0;
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t bytes = parameters[i].value.bytes();
    if (!overshoots && held + bytes > kBuffer) close();
    filling.push_back(i);
    held += bytes;
    if (overshoots && held >= kBuffer) close();
  }
  close();
  return buffers;
}

/// One after the other in a fresh buffer; a single one stays where it is.
Tensor flattened(eager::Eager& eager, const std::vector<const Tensor*>& tensors) {
  if (tensors.size() == 1) return *tensors.front();
  std::int64_t elements = 0;
  for (const Tensor* tensor : tensors) elements += tensor->elements();
  Tensor flat = eager.empty({elements}, tensors.front()->type);
  // One kernel takes up to 128 tensors; as an operation each is a contiguous copy of all.
  Tensor all = tensors.front()->detached();
  eager.recorder.op(Copy{CopyKind::contiguous, flat.type, 1, elements, 1}, {&all}, {&flat});
  return flat;
}

/// Of cuDNN, one for each kind of attention in the forward pass.
std::int64_t attention_plans(const OpTrace& trace, std::uint32_t begin) {
  std::vector<const Attention*> planned;
  for (std::size_t i = begin; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const auto* attention = std::get_if<Attention>(&trace.ops[trace.calls[record.index].op]);
    if (attention == nullptr || attention->backend != AttentionBackend::cudnn) continue;
    if (std::none_of(planned.begin(), planned.end(), [&](const Attention* other) { return *other == *attention; }))
      planned.push_back(attention);
  }
  return static_cast<std::int64_t>(planned.size());
}

}  // namespace

Replicas::Replicas(eager::Eager& eager, eager::Parameters& parameters, std::int64_t devices)
    : eager_(eager),
      parameters_(parameters),
      devices_(devices),
      group_(eager, GroupKind::data, devices, "data parallel collectives") {}

void Replicas::before_forward(const Tensor& tokens) {
  eager::Recorder& recorder = eager_.recorder;
  before_.clear();
  for (eager::Parameter& parameter : parameters_) before_.push_back(std::exchange(parameter.gradient, Tensor{}));
  recorder.host(HostClass::ddp_forward);
  recorder.op(Collective{CollectiveKind::peer_copy, GroupKind::data, tokens.type, devices_, tokens.bytes() / devices_},
              {&tokens}, {&tokens});
  for (const std::vector<std::size_t>& members : buffers_of(parameters_, true)) {
    std::vector<const Tensor*> tensors;
    for (const std::size_t i : members) tensors.push_back(&parameters_[i].value);
    recorder.host(HostClass::concatenate);
    const Tensor flat = flattened(eager_, tensors);
    group_.run(CollectiveKind::broadcast, flat.type, flat.bytes(), flat, flat);
  }
  // A copy of each module and parameter on each device, in Python.
  recorder.host(HostClass::optimizer_op, devices_ * static_cast<std::int64_t>(parameters_.size()));
  recorder.host(HostClass::thread_products, devices_);
  setup_ = recorder.position() - 1;
}

void Replicas::after_forward(OpTrace& trace, std::uint32_t begin, Tensor& loss) {
  const std::int64_t plans = attention_plans(trace, begin);
  trace.records[setup_].index *= static_cast<std::uint32_t>(plans);
  if (plans == 0) trace.records.erase(trace.records.begin() + setup_);
  for (std::uint32_t i = plans == 0 ? begin - 1 : begin; i < trace.records.size(); ++i)
    if (trace.records[i].kind == Record::Kind::host) trace.records[i].index *= static_cast<std::uint32_t>(devices_);
  eager::Recorder& recorder = eager_.recorder;
  recorder.host(HostClass::concatenate, devices_);
  recorder.op(Collective{CollectiveKind::peer_copy, GroupKind::data, loss.type, devices_, loss.bytes()}, {&loss},
              {&loss});
}

void Replicas::after_backward() {
  std::vector<Tensor> own;  // of the first device, all of them until the last was sent
  for (const std::vector<std::size_t>& members : buffers_of(parameters_, false)) {
    std::vector<const Tensor*> gradients;
    for (const std::size_t i : members) gradients.push_back(&parameters_[i].gradient);
    eager_.recorder.host(HostClass::concatenate);
    const Tensor flat = flattened(eager_, gradients);
    const Tensor sum = eager_.empty({flat.elements()}, flat.type);
    eager_.recorder.set_category(sum.storage.id(), Category::gradients);
    group_.run(CollectiveKind::reduce, flat.type, flat.bytes(), flat, sum);
    for (const std::size_t i : members) {
      Tensor place = parameters_[i].value.detached();
      place.storage = sum.storage;
      own.push_back(std::exchange(parameters_[i].gradient, place));
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!before_[i].defined()) continue;
    eager_.recorder.host(HostClass::accumulate_grad_add);
    aten::add_in_place(eager_, before_[i], parameters_[i].gradient);
    parameters_[i].gradient = std::move(before_[i]);
  }
  before_.clear();
}

}  // namespace ridgeline::parallel
