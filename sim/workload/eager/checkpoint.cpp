#include "sim/workload/eager/checkpoint.h"

#include "sim/workload/eager/eager.h"

namespace ridgeline::eager {
namespace {

/// Runs a block a second time inside the backward pass, in the modes of its first run.
void recompute(Eager& eager, CheckpointFrame& frame) {
  Recorder& recorder = eager.recorder;
  recorder.host(HostClass::checkpoint_recompute);
  const std::size_t nodes = eager.tape.size();
  const bool gradients_enabled = std::exchange(eager.gradients_enabled, true);
  const bool recomputing = std::exchange(recorder.recomputing, true);
  const std::int16_t layer = recorder.layer;
  const std::uint16_t module = std::exchange(recorder.module, frame.module);
  if (frame.autocast) eager.autocast.enter(*frame.autocast);
  frame.products = 0;
  eager.delivering = &frame;
  try {
    // autograd.Function saves the block's input, through the same hooks as everything else.
    frame.block(eager, frame.input.defined() ? frame.input : eager.from_host(frame.input));
  } catch (const StopRecomputation&) {
    // Every promise is kept: the rest of the block would compute nothing the backward pass reads.
  }
  eager.delivering = nullptr;
  eager.tape.destroy_from(nodes);
  if (frame.autocast) eager.autocast.leave();
  recorder.layer = layer;
  recorder.module = module;
  recorder.recomputing = recomputing;
  eager.gradients_enabled = gradients_enabled;
  frame.recomputed = true;
}

}  // namespace

Tensor SavedTensor::unpack(Eager& eager) {
  if (on_host_) return eager.from_host(tensor_);
  if (frame_ == nullptr) return tensor_;
  if (!frame_->recomputed) recompute(eager, *frame_);
  return std::move(frame_->delivered[number_]);
}

void SavedTensor::release() {
  if (tensor_.defined()) tensor_.reset();
  if (frame_ != nullptr && --frame_->holders == 0) {
    frame_->delivered.clear();
    frame_->kept.clear();
    frame_->block = nullptr;
    frame_->input = Tensor{};
  }
  frame_ = nullptr;
  on_host_ = false;
}

Tensor checkpoint(Eager& eager, std::function<Tensor(Eager&, Tensor)> block, Tensor input, bool keeps_operations) {
  eager.recorder.host(HostClass::checkpoint_segment);
  CheckpointFrame& frame = eager.frames.emplace_back();
  frame.block = std::move(block);
  frame.input = eager.offload == ActivationOffload::none ? input : eager.to_host(input);
  frame.module = eager.recorder.module;
  frame.keeps_operations = keeps_operations;
  if (eager.autocast.on()) frame.autocast = eager.autocast.type();
  eager.promising = &frame;
  Tensor result = frame.block(eager, std::move(input));
  eager.promising = nullptr;
  return result;
}

}  // namespace ridgeline::eager
