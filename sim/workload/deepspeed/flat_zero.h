// ZeRO stages 1 and 2: parameters in one flat buffer, whole on each rank; gradients averaged in buckets; each rank
// updates its share of the buffer and all gather it.
//
// Follows deepspeed/runtime/zero/stage_1_and_2.py, release 0.19, with one group of parameters. A bucket is a buffer of
// reduce_bucket_size elements, however small the network is; gradients are copied in as they come, divided by the
// ranks, added up over them by one all-reduce of a copy, and what the rank keeps is copied back and then to a buffer of
// its own. With overlap_comm this happens on a stream of its own between two buffers. Stage 1 keeps gradients whole
// until the last backward pass of a step and, without overlap_comm, reduces them behind it. Gradients of each
// micro-batch of stage 2 are reduced.
#pragma once

#include <optional>
#include <vector>

#include "sim/workload/deepspeed/engine.h"
#include "sim/workload/deepspeed/partition.h"
#include "sim/workload/deepspeed/share_update.h"

namespace ridgeline::deepspeed {

class FlatZero final : public Engine {
 public:
  /// For the rank that keeps most gradients.
  FlatZero(eager::Eager& eager, eager::Parameters& parameters, const TrainingDescription& training);

  void before_backward(bool last) override;
  void after_backward() override;
  void step(optimizers::Optimizer& optimizer) override;

 private:
  [[nodiscard]] bool partitions_gradients() const { return how_.strategy != DataStrategy::zero1; }
  [[nodiscard]] bool overlaps() const { return group_.has_value() && zero_.overlap_comm.value_or(false); }
  [[nodiscard]] std::uint8_t reducing() const { return overlaps() ? reducing_ : std::uint8_t{0}; }
  [[nodiscard]] bool own(std::size_t parameter) const { return partition_.part(parameter, rank_) > 0; }
  [[nodiscard]] StepPlace place() { return {eager_, group_ ? &*group_ : nullptr}; }
  void make_buffers();
  void make_buckets();
  void gradient_arrived(std::size_t parameter);
  void put(std::size_t parameter);
  void reduce_bucket();
  void average(const eager::Tensor& buffer);
  void average_apart();
  void sum_over_ranks(const std::vector<Slice>& slices, const eager::Tensor& buffer);
  void sum_at_owners(const std::vector<Slice>& slices, const eager::Tensor& buffer);
  void take(std::size_t parameter);
  void keep_own();
  void look_for_overflow(const std::vector<eager::Tensor>& gradients);
  [[nodiscard]] std::vector<eager::Tensor> pieces_of_share();

  eager::Eager& eager_;
  eager::Parameters& parameters_;
  const TrainingDescription& training_;
  const ParallelDescription& how_;
  const ZeroOptimization& zero_;
  std::optional<parallel::ProcessGroup> group_;
  std::uint8_t reducing_ = 0;  ///< stream
  Partition partition_;
  std::int64_t rank_;
  DType type_;
  eager::Tensor values_;     ///< all parameters
  eager::Parameters share_;  ///< one, in fp32
  std::vector<eager::Tensor> buckets_;
  std::size_t filling_ = 0;           ///< which of them
  std::vector<std::size_t> members_;  ///< parameters in it
  std::int64_t filled_ = 0;           ///< elements
  eager::Tensor kept_;                ///< gradients that this rank keeps of one backward pass
  std::vector<eager::Tensor> sums_;   ///< of its parameters in order, over micro-batches
  std::vector<std::size_t> reduced_;  ///< others' gradients, dropped once their reduction is waited for
  bool last_ = true;
};

}  // namespace ridgeline::deepspeed
