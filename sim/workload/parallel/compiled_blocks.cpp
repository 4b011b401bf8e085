#include "sim/workload/parallel/compiled_blocks.h"

#include <algorithm>
#include <utility>

namespace ridgeline::parallel {

CompiledBlocks::CompiledBlocks(eager::Eager& eager, const eager::Parameters& parameters,
                               const TrainingDescription& training, families::BlockWrapper* inner)
    : eager_(eager), training_(training), inner_(inner) {
  for (const eager::Parameter& parameter : parameters) {
    if (parameter.accumulate.layer < 0) continue;
    const auto block = static_cast<std::size_t>(parameter.accumulate.layer);
    tensors_.resize(std::max(tensors_.size(), block + 1));
    ++tensors_[block];
  }
  if (training.activation_offload == ActivationOffload::streams)
    copies_ = eager.recorder.add_stream("offloaded activations");
}

void CompiledBlocks::begin_forward() {
  ranges_.clear();
  first_.clear();
  behind_.clear();
  offloaded_.clear();
}

eager::Tensor CompiledBlocks::before_block(std::int64_t block, eager::Tensor input) {
  if (inner_ != nullptr) input = inner_->before_block(block, std::move(input));
  if (copies_ > 0) offloaded_.push_back({training_.checkpoints(block) ? input.detached() : eager::Tensor{}});
  CompiledRange& range = ranges_.emplace_back();
  range.forward.begin = eager_.recorder.position();
  first_.push_back(eager_.tape.next_sequence());
  range.parameters = std::max<std::int64_t>(1, tensors_.at(static_cast<std::size_t>(block)));
  range.enters_forward = ranges_.size() == 1;
  range.enters_backward = false;
  if (training_.checkpoints(block))
    range.recomputation = training_.activation_checkpointing == ActivationCheckpointing::operations
                              ? Recomputation::operations
                              : Recomputation::all;
  return input;
}

eager::Tensor CompiledBlocks::after_block(std::int64_t block, eager::Tensor output) {
  ranges_.back().forward.end = eager_.recorder.position();
  behind_.push_back(eager_.tape.next_sequence());
  if (copies_ > 0) send(ranges_.size() - 1);
  return inner_ != nullptr ? inner_->after_block(block, std::move(output)) : output;
}

// Copies run beside the computation; the memory of the oldest of six is given back once its copy is done
// (max_fwd_stash_size of torchtune/training/_activation_offloading.py).
void CompiledBlocks::send(std::size_t block) {
  constexpr std::size_t kStash = 5;
  eager::Recorder& recorder = eager_.recorder;
  if (const eager::Tensor& input = offloaded_[block].input; input.defined()) {
    recorder.host(HostClass::offload_pack);
    recorder.wait_event(copies_, recorder.record_event(recorder.stream));
    const std::uint8_t computes = std::exchange(recorder.stream, copies_);
    recorder.op(Copy{CopyKind::device_to_host, input.type, 1, input.elements(), 1}, {&input}, {&input});
    offloaded_[block].sent = recorder.record_event(copies_);
    recorder.stream = computes;
  }
  if (block < kStash || !offloaded_[block - kStash].input.defined()) return;
  recorder.wait_event(recorder.stream, offloaded_[block - kStash].sent);
  recorder.empty_storage(offloaded_[block - kStash].input.storage.id());
}

void CompiledBlocks::bring_back(std::size_t block) {
  const eager::Tensor& input = offloaded_[block].input;
  eager::Recorder& recorder = eager_.recorder;
  if (!input.defined() || !recorder.is_empty(input.storage.id())) return;
  recorder.host(HostClass::offload_unpack);
  const std::uint8_t computes = std::exchange(recorder.stream, copies_);
  recorder.fill_storage(input.storage.id());
  recorder.op(Copy{CopyKind::host_to_device, input.type, 1, input.elements(), 1}, {&input}, {&input});
  const std::uint32_t arrived = recorder.record_event(copies_);
  recorder.stream = computes;
  recorder.wait_event(computes, arrived);
}

void CompiledBlocks::begin_backward() {
  if (!ranges_.empty()) ranges_.back().enters_backward = true;
  eager_.tape.before_node = [this](const eager::Node& node) { meet(node); };
}

void CompiledBlocks::meet(const eager::Node& node) {
  if (running_ && node.sequence < first_[*running_]) close();
  if (running_) return;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (node.sequence < first_[i] || node.sequence >= behind_[i]) continue;
    if (copies_ > 0) bring_back(i);
    ranges_[i].backward.begin = eager_.recorder.position();
    running_ = i;
    return;
  }
}

void CompiledBlocks::close() {
  ranges_[*running_].backward.end = eager_.recorder.position();
  if (copies_ > 0) offloaded_[*running_] = {};
  running_.reset();
  if (behind_block) behind_block();
}

void CompiledBlocks::end_backward() {
  if (running_) close();
  eager_.tape.before_node = nullptr;
}

}  // namespace ridgeline::parallel
