// In which order the ranks of a pipeline compute and exchange: what torch.distributed.pipelining's schedules do.
//
// Follows torch/distributed/pipelining/schedules.py of PyTorch 2.11. GPipe and 1F1B have loops of their own, 1F1B with
// sends and receives of one neighbour in one batch. The other schedules are lists of computations, into which sends
// stand behind what made their tensor, and receives where the sender's turn came; all sends are waited for at the end.
// Megatron-LM's order is in megatron_schedules.h. A pure function of the schedule, the number of ranks, stages a rank
// and micro-batches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/parallel/parallel.h"

namespace ridgeline::parallel {

/// An activation that goes to the stage behind its sender's, or a gradient to the stage before.
struct Transfer {
  bool send = false;                        ///< else this rank receives
  bool gradient = false;                    ///< else an activation
  std::int32_t stage = 0, micro_batch = 0;  ///< of the sender
  std::int32_t peer = 0;                    ///< rank on the other side
  /// The two sides of one transfer have one key.
  [[nodiscard]] std::uint64_t key() const {
    return (static_cast<std::uint64_t>(micro_batch) << 32) | (static_cast<std::uint64_t>(stage) << 1) |
           static_cast<std::uint64_t>(gradient);
  }
  bool operator==(const Transfer&) const = default;
};

struct StageAction {
  enum class Kind : std::uint8_t {
    forward,
    backward,          ///< of inputs and weights
    backward_input,    ///< gradients of the stage's input alone
    backward_weight,   ///< those of its weights
    exchange,          ///< starts a batch of transfers, number `batch` of the rank
    wait,              ///< what follows on the default stream waits for batch `batch`
    reduce_gradients,  ///< after the last backward of a stage: gradients over micro-batches, and over ranks
  };
  Kind kind = Kind::forward;
  std::int32_t stage = 0, micro_batch = 0;
  std::int32_t batch = 0;
  std::vector<Transfer> transfers;  ///< of an exchange
  [[nodiscard]] bool computes() const { return kind <= Kind::backward_weight; }
  bool operator==(const StageAction&) const = default;
};

using RankActions = std::vector<StageAction>;

/// "2F0", "0I3", "SEND_F 0F0", "wait": as PyTorch writes them.
std::string to_string(const StageAction& action);

/// Ranks of a pipeline and what it cuts: stages are numbered along the network.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int32_t ranks = 1, stages_a_rank = 1, micro_batches = 1;
  Framework framework = Framework::torch;
  [[nodiscard]] std::int32_t stages() const { return ranks * stages_a_rank; }
  [[nodiscard]] std::int32_t rank_of(std::int32_t stage) const;
  /// Of a rank, in the order of its modules.
  [[nodiscard]] std::vector<std::int32_t> stages_of(std::int32_t rank) const;
};

PipelineShape shape_of(const ParallelDescription& parallel, std::int64_t micro_batches);

/// Why its framework refuses such a pipeline; empty where it runs.
std::string complaint(const PipelineShape& shape);

/// Schedules that part a backward pass in gradients of inputs and of weights.
bool splits_backward(PipelineSchedule schedule);

/// What each rank does in one step. The shape runs.
std::vector<RankActions> make_schedule(const PipelineShape& shape);

/// A step of fewer micro-batches that does the same: positions [begin, end) of each of its actions stand for `times`
/// such rounds in a row of the whole step, each of `round` further micro-batches.
struct ShortSchedule {
  std::int32_t micro_batches = 0, round = 1;
  std::int64_t times = 1;
  struct Rank {
    std::size_t begin = 0, end = 0;
  };
  std::vector<Rank> ranks;
  /// Position among the actions of the short step of a position of the whole one.
  [[nodiscard]] std::size_t position(std::size_t rank, std::size_t whole) const {
    const std::size_t length = ranks[rank].end - ranks[rank].begin;
    if (whole < ranks[rank].end) return whole;
    const std::size_t all = length * static_cast<std::size_t>(times);
    if (whole >= ranks[rank].begin + all) return whole - all + length;
    return ranks[rank].begin + (whole - ranks[rank].begin) % length;
  }
};

/// The shortest that holds the warm-up, three rounds and the end; the whole step where nothing repeats.
ShortSchedule shorten(const PipelineShape& shape);

/// Micro-batches whose activations a rank holds at once at most, over its stages.
std::int32_t most_in_flight(const RankActions& actions);

}  // namespace ridgeline::parallel
