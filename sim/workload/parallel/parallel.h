// How training is spread over several GPUs: what a scenario says under `training.parallel`.
//
// Names and defaults are those of PyTorch 2.11 (torch.nn.parallel, torch.distributed.fsdp, torch.distributed.optim).
#pragma once

#include <cstdint>
#include <optional>

#include "sim/workload/collective.h"
#include "sim/workload/dtype.h"
#include "sim/workload/parallel/zero_optimization.h"

namespace ridgeline {

/// How ranks that see different data keep their parameters equal.
enum class DataStrategy : std::uint8_t {
  ddp,          ///< DistributedDataParallel: everything on each rank, gradients averaged
  zero1,        ///< the same, with ZeroRedundancyOptimizer: each rank keeps the states of some parameters
  zero2,        ///< fully_shard that keeps parameters whole between forward and backward; DeepSpeed's stage 2
  zero3,        ///< DeepSpeed's stage 3
  fsdp,         ///< fully_shard (FSDP2)
  fsdp1,        ///< FullyShardedDataParallel
  hsdp,         ///< fully_shard inside groups, averaged between them
  dataparallel  ///< torch.nn.DataParallel: one process, a copy of the network on each GPU for each step
};

/// Whose code spreads the network.
enum class Framework : std::uint8_t { torch, megatron, deepspeed };

/// Who splits layers over tensor parallel ranks.
enum class TensorStyle : std::uint8_t {
  dtensor,  ///< torch.distributed.tensor.parallel: ColwiseParallel, RowwiseParallel
  by_hand   ///< layers of a rank's size with all-reduces around them; embedding and head are whole on each rank
};

/// How keys and values go around the ranks that share a sequence: set_rotate_method of context_parallel.
enum class ContextRotation : std::uint8_t {
  all_gather,  ///< all of them at once, beside the first turn
  all_to_all   ///< those of the neighbour, beside each turn
};

/// What DistributedDataParallel sends instead of its buckets.
enum class GradientCompression : std::uint8_t { none, fp16, bf16 };

/// In which order the stages of a pipeline work: classes of torch.distributed.pipelining.
enum class PipelineSchedule : std::uint8_t {
  gpipe,                     ///< all forward passes, then all backward passes
  one_forward_one_backward,  ///< 1F1B
  interleaved,               ///< 1F1B over several stages a rank
  zb1p,                      ///< 1F1B that puts gradients of weights off (ScheduleInterleavedZeroBubble of one stage)
  zbv,                       ///< two stages a rank, down and up again
  interleaved_zero_bubble    ///< ScheduleInterleavedZeroBubble
};

/// fully_shard(reshard_after_forward=…): the number of ranks that a module is sharded over between its forward and
/// backward pass; 0: all of its group (true), 1: it stays whole (false).
struct ReshardAfterForward {
  std::int64_t ranks = 0;
  bool operator==(const ReshardAfterForward&) const = default;
};

struct ParallelDescription {
  std::int64_t data = 1;  ///< ranks that see different data
  DataStrategy strategy = DataStrategy::ddp;
  // DistributedDataParallel.
  std::optional<std::int64_t> bucket_cap;  ///< bytes; not given: 1 MiB for the first bucket, 25 MiB for the others
  bool gradient_as_bucket_view = false, static_graph = false, find_unused_parameters = false;
  bool holds_first_buckets = true;  ///< those of its first step stay in the second, as on the fullest rank
  GradientCompression compression = GradientCompression::none;
  bool broadcast_buffers = true;  ///< rank 0 sends what a network keeps besides parameters before forward passes
  bool no_sync = false;           ///< gradients are exchanged at the last micro-batch only
  bool compiled = false;          ///< torch.compile around it: the graph is cut where buckets end
  // ZeroRedundancyOptimizer.
  bool parameters_as_bucket_view = false;
  // fully_shard and FullyShardedDataParallel.
  std::int64_t wrap = 1;  ///< blocks that are sharded together; 0: the whole network
  ReshardAfterForward reshard_after_forward;
  std::optional<DType> parameter_type;  ///< of gathered parameters and what is computed with them; none: as stored
  std::optional<DType> reduce_type;     ///< in which gradients are added up; none: that of the gradients
  bool offload = false;                 ///< shards, their gradients and the optimizer live in the host's memory
  std::int64_t replicate = 1;           ///< groups that hold the same shards (hsdp)
  ZeroOptimization zero;                ///< of DeepSpeed
  // Layers split over ranks that see the same data.
  Framework framework = Framework::torch;
  std::int64_t tensor = 1;  ///< ranks that share heads and feed-forward columns
  TensorStyle tensor_style = TensorStyle::dtensor;
  bool sequence_parallel = false;             ///< what lies between the split layers is split along the sequence
  bool transformer_engine = false;            ///< Megatron-LM's layers are TransformerEngine's, not its own (local)
  bool gradient_accumulation_fusion = false;  ///< TransformerEngine's products add gradients of weights to the buffer
  bool cross_entropy_fusion = false;          ///< TransformerEngine's loss, whose gradient lies where the logits lay
  bool async_all_reduce = true;       ///< Megatron-LM: of the gradient of a layer's input, beside that of its weight
  bool blocking_wait = false;         ///< NCCL_BLOCKING_WAIT=1: the host waits for each exchange (megatron)
  bool fp32_copies = true;            ///< Megatron-LM: the optimizer has some of parameters in 16 bits
  bool fp16_cross_entropy = false;    ///< Megatron-LM: the loss is of logits in 16 bits (--fp16-lm-cross-entropy)
  bool last_stage_recomputes = true;  ///< Megatron-LM: false where blocks of the last stage do not run again
  std::int64_t vocabulary_multiple = 128;  ///< Megatron-LM: rows of the token table on a rank, padded
  bool loss_parallel = false;              ///< logits stay split along the vocabulary (dtensor; Megatron's always are)
  bool prepared_inputs = true;  ///< inputs of a block's halves are gathered once, not by each projection (dtensor)
  // Sequences cut over ranks: torch.distributed.tensor.experimental.context_parallel.
  std::int64_t context = 1;  ///< ranks that share each sequence
  ContextRotation rotation = ContextRotation::all_gather;
  std::int64_t context_rank = -1;  ///< whose step is traced; -1: the last (parallel/context_parallel.h says why)
  // Experts spread over data parallel ranks, which are neighbours; tokens are sent to the ranks of their experts.
  std::int64_t expert = 1;       ///< ranks that hold the experts of a layer together
  double expert_capacity = 0.0;  ///< places an expert has, in those of an even choice; 0: as many as tokens come
  bool block_by_block = false;   ///< torch.compile takes each block by itself on one GPU too
  // torch.distributed.pipelining. Ranks of a stage are neighbours, stages lie apart.
  std::int64_t pipeline = 1;  ///< ranks that hold parts of the network one behind the other
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t virtual_stages = 1;  ///< parts of the network that a rank holds
  std::int64_t pipeline_rank = -1;  ///< whose step is traced; -1: the question is about all of them
  // One process, whose script puts layers on several devices, one behind the other.
  std::int64_t split = 1;   ///< devices
  std::int64_t pieces = 1;  ///< parts of the batch, whose passes are issued one after the other

  /// Of one stage.
  [[nodiscard]] bool several() const { return gradient_ranks() * tensor > 1; }
  /// Ranks that gradients are added up over, and that parameters are sharded over: all that see other tokens.
  [[nodiscard]] std::int64_t gradient_ranks() const { return data * context; }
  /// Ranks that hold the same experts.
  [[nodiscard]] std::int64_t expert_copies() const { return gradient_ranks() / expert; }
  [[nodiscard]] bool pipelined() const { return pipeline > 1; }
  [[nodiscard]] std::int64_t gpus() const { return gradient_ranks() * tensor * pipeline * split; }
  /// One process has all the GPUs.
  [[nodiscard]] bool one_process() const { return split > 1 || (data > 1 && strategy == DataStrategy::dataparallel); }
  [[nodiscard]] bool megatron() const { return framework == Framework::megatron; }
  [[nodiscard]] bool deepspeed() const { return framework == Framework::deepspeed; }
  /// By PyTorch: fully_shard or FullyShardedDataParallel.
  [[nodiscard]] bool shards_parameters() const {
    return !deepspeed() && strategy != DataStrategy::ddp && strategy != DataStrategy::zero1 &&
           strategy != DataStrategy::dataparallel;
  }
  /// torch.compile takes each block by itself, and nothing between blocks; else it takes the graph.
  [[nodiscard]] bool compiles_blocks() const {
    return block_by_block || (several() && (tensor > 1 || shards_parameters()));
  }
  bool operator==(const ParallelDescription&) const = default;
};

/// GPUs from one rank of a group to the next: the product of the degrees inside it. Tensor ranks are innermost, then
/// those of a sequence, those of data, stages.
std::int64_t stride_of(const ParallelDescription& parallel, GroupKind group);

}  // namespace ridgeline
