#include "sim/workload/eager/eager.h"

#include "sim/workload/aten/views.h"

namespace ridgeline::eager {

Tensor Eager::empty(const Dims& sizes, DType type) { return empty(sizes, contiguous_strides(sizes), type); }

Tensor Eager::empty(const Dims& sizes, const Dims& strides, DType type) {
  Tensor result;
  result.sizes = sizes;
  result.strides = strides;
  result.type = type;
  result.storage = StorageReference(recorder, recorder.allocate(result.bytes()));
  return result;
}

SavedTensor Eager::save(const Tensor& tensor) {
  if (promising != nullptr) return SavedTensor(*promising, promising->promised++);
  if (delivering != nullptr) {
    delivering->delivered.push_back(tensor.detached());
    if (delivering->delivered.size() == delivering->promised && !whole_recomputation) throw StopRecomputation{};
  }
  if (delivering == nullptr && offload != ActivationOffload::none) return SavedTensor::on_host(to_host(tensor));
  return SavedTensor(tensor.detached());
}

bool Eager::keeps_results() const {
  const CheckpointFrame* frame = promising != nullptr ? promising : delivering;
  return frame != nullptr && frame->keeps_operations;
}

bool Eager::keeps_product() {
  if (!keeps_results()) return false;
  CheckpointFrame& frame = promising != nullptr ? *promising : *delivering;
  return frame.products++ % 2 == 0;
}

bool Eager::take_kept(std::initializer_list<Tensor*> results) {
  if (delivering == nullptr) return false;
  for (Tensor* result : results) *result = std::move(delivering->kept.at(delivering->taken++));
  return true;
}

void Eager::keep(std::initializer_list<const Tensor*> results) {
  for (const Tensor* result : results) promising->kept.push_back(result->detached());
}

// A pinned tensor of the host is contiguous, so that any other one is first copied on the device; tensor.cpu() keeps
// the order of a dense tensor's elements. Both copies make the host wait (torch/autograd/graph.py).
Tensor Eager::to_host(const Tensor& tensor) {
  recorder.host(HostClass::offload_pack);
  const bool pinned = offload == ActivationOffload::pinned;
  const bool as_it_lies = pinned ? tensor.contiguous() : tensor.dense();
  const Tensor sent = as_it_lies ? tensor : aten::contiguous(*this, tensor.detached());
  recorder.op(Copy{pinned ? CopyKind::device_to_host : CopyKind::device_to_pageable, sent.type, 1, sent.elements(), 1},
              {&sent}, {});
  recorder.wait_for_gpu();
  Tensor left = tensor;
  if (!as_it_lies) left.strides = pinned ? contiguous_strides(tensor.sizes) : preserved_strides(tensor);
  left.reset();
  return left;
}

// From pinned memory the host does not wait: tensor.to(device, non_blocking=pin_memory). Hooks that are set around a
// few blocks alone are pinned ones, and gone when the backward pass begins.
Tensor Eager::from_host(const Tensor& tensor) {
  recorder.host(HostClass::offload_unpack);
  const bool pinned = offload != ActivationOffload::pageable;
  Tensor back = tensor;
  back.storage = StorageReference(recorder, recorder.allocate(tensor.bytes()));
  recorder.op(Copy{pinned ? CopyKind::host_to_device : CopyKind::pageable_to_device, back.type, 1, back.elements(), 1},
              {&back}, {&back});
  if (!pinned) recorder.wait_for_gpu();
  return back;
}

}  // namespace ridgeline::eager
