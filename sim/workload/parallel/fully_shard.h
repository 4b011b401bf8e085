// fully_shard (FSDP2) and FullyShardedDataParallel (FSDP1): parameters, gradients and states cut over the ranks,
// gathered module by module just before they are needed.
//
// Follows torch/distributed/fsdp/_fully_shard of PyTorch 2.11. A group is what one call shards: some blocks, or what is
// left at the root. Each parameter is cut along its first dimension and padded. Gathering copies the shards into their
// place (a stream of its own), gathers (another), and copies out on the default stream, which waits for an event; the
// gathered buffer is held until the next group was copied out. The backward pass gathers one group ahead. Gradients are
// put in order by one kernel, reduced and scattered on a third stream; one such buffer is outstanding.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/families/family.h"
#include "sim/workload/parallel/communication.h"
#include "sim/workload/parallel/host_shards.h"
#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

class FullyShard final : public families::BlockWrapper {
 public:
  /// Shards a network whose parameters' `layer` says which block they belong to, frozen ones too. Its whole parameters
  /// were never on the device (built on "meta").
  FullyShard(eager::Eager& eager, std::vector<eager::Parameter*> parameters, std::int64_t blocks,
             const ParallelDescription& description, DType stored);

  void begin_forward(bool sync);
  void after_forward();
  eager::Tensor before_block(std::int64_t block, eager::Tensor input) override;
  eager::Tensor after_block(std::int64_t block, eager::Tensor output) override;
  void begin_backward();
  void after_backward();
  /// A pipeline's stage keeps groups whole and gradients unreduced behind each backward pass …
  void keep_behind_backward() { keeps_ = true; }
  /// … and reduces all of them behind its last.
  void reduce_all();
  /// What the optimizer updates: this rank's shards, with their gradients.
  eager::Parameters& shards() { return shards_; }
  /// The same of experts, which an optimizer has in a list of their own: shards over the ranks with the same ones.
  eager::Parameters& shards_of_experts() { return expert_shards_; }
  /// Of a trained parameter, in their order: that of this rank's shard once it was reduced.
  eager::Tensor& gradient_of(std::size_t trained);
  /// Gradients of experts that no other rank has are taken as they are, behind the last backward pass.
  void take_own_gradients();
  /// Shards, gradients and the optimizer are in the host's memory.
  [[nodiscard]] bool on_host() const { return host_.has_value(); }
  void update_on_host(OptimizerDescription optimizer);
  /// The norm of all gradients takes a sum over ranks.
  void add_up_norm();

 private:
  class BeforeBackward;
  class AfterBackward;
  struct Group {
    std::vector<std::size_t> parameters, trained;
    ProcessGroup* among = nullptr;  ///< ranks that have a shard each
    /// One rank's, padded: of what is gathered, in its type (bytes where parameters have several), and of gradients.
    std::int64_t shard_elements = 0, gradient_elements = 0;
    DType type = DType::fp32;  ///< that is gathered
    bool whole = false;        ///< parameters are on the device
    bool behind = false;       ///< the backward pass was seen behind it
    eager::Tensor gathered;
    std::uint32_t gathering = 0;                             ///< event: the buffer is complete
    std::vector<eager::Tensor> gradients;                    ///< taken from the parameters, to be reduced
    std::uint32_t ready = 0;                                 ///< event: the shards' gradients are complete
    std::shared_ptr<const std::vector<std::int64_t>> sizes;  ///< of each shard, in numbers of `type`
    std::shared_ptr<const std::vector<std::int64_t>> cast;   ///< elements of those that are stored in another type
    DType cast_from = DType::fp32;
    std::vector<eager::Tensor> between;  ///< of each parameter, what stays between the passes
    std::uint32_t kept = 0;              ///< event: that was copied
  };

  void gather(Group& group);
  void copy_out(Group& group, bool forward);
  void reshard(Group& group);
  void reshard_after_forward(Group& group);
  void gather_between(Group& group);
  void accumulate(std::size_t parameter);
  void take_gradients(Group& group);
  void reduce(Group& group);
  void before_backward(std::size_t group);
  void after_backward(std::size_t group);
  [[nodiscard]] std::int64_t elements_of(const Group& group) const {
    return group.shard_elements * group.among->ranks();
  }
  /// A group of blocks and that of their experts, where they have one: in the order in which they are gathered.
  [[nodiscard]] std::vector<std::size_t> both_of(std::size_t number) const;
  void share_out(std::int64_t calls);
  void make_shards(Group& group);
  [[nodiscard]] DType stored(std::size_t parameter) const { return parameters_[parameter]->stored.value_or(stored_); }
  [[nodiscard]] DType gathered(std::size_t parameter) const { return how_.parameter_type.value_or(stored(parameter)); }

  eager::Eager& eager_;
  std::vector<eager::Parameter*> parameters_;
  const ParallelDescription& how_;
  DType stored_;
  std::int64_t blocks_;
  std::int64_t a_call_;  ///< blocks of one group
  ProcessGroup group_;   ///< its stream gathers
  std::uint8_t copy_in_, reduce_;
  std::optional<ProcessGroup> between_;  ///< ranks that have all of a module between the passes, where not all do
  std::optional<ProcessGroup> replicas_;
  std::optional<ProcessGroup> expert_copies_;  ///< ranks with the same experts, where there are several
  std::vector<Group> groups_;                  ///< those of blocks, then the root, then those of the blocks' experts
  std::size_t root_ = 0;
  eager::Parameters shards_, expert_shards_, frozen_shards_;
  std::vector<eager::Parameter*> shard_of_;  ///< by parameter
  std::vector<std::size_t> trained_;         ///< parameters that are
  std::vector<eager::Tensor> accumulated_;   ///< whole gradients that were not exchanged yet, by parameter
  std::vector<std::size_t> order_;           ///< of the groups in the forward pass
  eager::Tensor held_;                       ///< gathered buffer of the group before
  std::uint32_t held_until_ = 0;
  eager::Tensor reducing_;  ///< input of the reduction that is outstanding
  std::uint32_t reduced_ = 0;
  bool sync_ = true, keeps_ = false;
  std::optional<HostShards> host_;
  bool added_ = false;  ///< the host has gradients of this step
};

}  // namespace ridgeline::parallel
