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
}

void CompiledBlocks::begin_forward() {
  ranges_.clear();
  first_.clear();
  behind_.clear();
}

eager::Tensor CompiledBlocks::before_block(std::int64_t block, eager::Tensor input) {
  if (inner_ != nullptr) input = inner_->before_block(block, std::move(input));
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
  return inner_ != nullptr ? inner_->after_block(block, std::move(output)) : output;
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
    ranges_[i].backward.begin = eager_.recorder.position();
    running_ = i;
    return;
  }
}

void CompiledBlocks::close() {
  ranges_[*running_].backward.end = eager_.recorder.position();
  running_.reset();
}

void CompiledBlocks::end_backward() {
  if (running_) close();
  eager_.tape.before_node = nullptr;
}

}  // namespace ridgeline::parallel
