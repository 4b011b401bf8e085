// ZeRO stage 3: parameters, gradients and states cut over the ranks.
//
// Follows deepspeed/runtime/zero/stage3.py, release 0.19, for a network that is built under zero.Init. Each parameter
// is cut by itself, padded; a rank's parts lie in one buffer, and so do those of gradients. Gradients are copied into a
// bucket on a stream of their own as they come, put in the order of the ranks, divided, reduced and scattered, and
// copied or added to the rank's part. The update goes through the rank's part in groups of sub_group_size. When
// parameters are given back the blocks of a stream's pool are taken to be free at once.
#pragma once

#include <deque>
#include <vector>

#include "sim/workload/deepspeed/engine.h"
#include "sim/workload/deepspeed/parameter_fetch.h"

namespace ridgeline::deepspeed {

class ShardedZero final : public Engine {
 public:
  /// `all`: frozen parameters too, which have neither gradients nor states; empty: all are trained.
  ShardedZero(eager::Eager& eager, eager::Parameters& parameters, const TrainingDescription& training,
              std::vector<eager::Parameter*> all);

  void before_forward() override;
  void after_forward() override { fetch_.end_visit(); }
  void before_backward(bool) override {}
  void after_backward() override;
  void step(optimizers::Optimizer& optimizer) override;

 private:
  struct SubGroup {
    std::vector<std::int64_t> parts;  ///< elements of each parameter
    std::int64_t elements = 0;
    eager::Parameters share;  ///< one, in fp32
  };
  eager::Tensor make_shards();
  [[nodiscard]] std::int64_t shard_elements(std::size_t trained) const {
    return fetch_.shard_elements(place_of_[trained]);
  }
  void make_sub_groups();
  void gradient_arrived(std::size_t parameter);
  void reduce_bucket();
  void scatter();
  void take(std::size_t parameter, const eager::Tensor& reduced);
  void look_for_overflow();

  eager::Eager& eager_;
  eager::Parameters& parameters_;       ///< trained
  std::vector<eager::Parameter*> all_;  ///< frozen ones too
  std::vector<std::size_t> place_of_;   ///< among all, by trained parameter
  const TrainingDescription& training_;
  const ZeroOptimization& zero_;
  parallel::ProcessGroup group_;
  DType type_;
  eager::Tensor shards_;
  ParameterFetch fetch_;
  std::uint8_t reducing_;  ///< stream
  std::deque<SubGroup> sub_groups_;
  eager::Tensor bucket_, gradients_;
  std::vector<std::size_t> members_;
  std::int64_t filled_ = 0;
  std::deque<std::uint32_t> reduced_;  ///< events behind the last reductions
  int micro_batch_ = 0;
};

}  // namespace ridgeline::deepspeed
