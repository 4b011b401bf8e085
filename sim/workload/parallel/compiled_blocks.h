// torch.compile of each block by itself, as scripts do before they shard or split a network: what lies between blocks,
// hooks of fully_shard among it, runs eagerly.
//
// A block's forward pass lies between what its wrapper does before and behind it; its backward pass from the first node
// of autograd that the block made to the first that was made before it. A checkpointed block is wrapped before it is
// compiled: what runs again is part of its backward graph.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/family.h"

namespace ridgeline::parallel {

class CompiledBlocks final : public families::BlockWrapper {
 public:
  /// `inner`: the wrapper around each compiled block; null: none.
  CompiledBlocks(eager::Eager& eager, const eager::Parameters& parameters, const TrainingDescription& training,
                 families::BlockWrapper* inner);

  void begin_forward();
  eager::Tensor before_block(std::int64_t block, eager::Tensor input) override;
  eager::Tensor after_block(std::int64_t block, eager::Tensor output) override;
  /// A block's backward graph runs.
  [[nodiscard]] bool running() const { return running_.has_value(); }
  void begin_backward();
  void end_backward();
  /// Of the micro-batch, in the order of forward passes.
  [[nodiscard]] const std::vector<CompiledRange>& ranges() const { return ranges_; }

  std::function<void()> behind_block;  ///< called where a block's backward graph ends

 private:
  /// The input of a checkpointed block on its way to the host and back.
  struct Offloaded {
    eager::Tensor input;
    std::uint32_t sent = 0;  ///< event behind the copy
  };
  void send(std::size_t block);
  void bring_back(std::size_t block);
  void meet(const eager::Node& node);
  void close();

  eager::Eager& eager_;
  const TrainingDescription& training_;
  families::BlockWrapper* inner_;
  std::vector<std::int64_t> tensors_;  ///< trained ones, by block
  std::vector<CompiledRange> ranges_;
  std::vector<std::uint64_t> first_,
      behind_;                          ///< numbers of the first node that each block made, and one behind its last
  std::vector<Offloaded> offloaded_;    ///< by block, where inputs are offloaded
  std::uint8_t copies_ = 0;             ///< their stream
  std::optional<std::size_t> running_;  ///< whose backward pass runs
};

}  // namespace ridgeline::parallel
