// DeepSpeed's section `zero_optimization`: names and defaults of deepspeed/runtime/zero/config.py, release 0.19.
#pragma once

#include <cstdint>
#include <optional>

namespace ridgeline {

struct ZeroOptimization {
  std::int64_t reduce_bucket_size = 500'000'000;  ///< elements of gradients that are reduced together
  std::optional<bool> overlap_comm;               ///< beside the backward pass; not given: in stage 3
  bool contiguous_gradients = true;               ///< gradients are copied into a buffer as they come
  bool reduce_scatter = true;                     ///< false: averaged on all ranks, in stages 1 and 2 after the sum
  bool use_multi_rank_bucket_allreduce = true;    ///< stages 1 and 2: one all-reduce a bucket, no reduce to each owner
  // Stage 3, in elements.
  std::int64_t prefetch_bucket_size = 50'000'000;      ///< gathered ahead of their use
  std::int64_t param_persistence_threshold = 100'000;  ///< parameters that are no larger stay gathered in a step
  std::int64_t max_live_parameters = 1'000'000'000;    ///< nothing is gathered ahead beyond
  std::int64_t max_reuse_distance = 1'000'000'000;     ///< parameters used again that soon are not released
  std::int64_t sub_group_size = 1'000'000'000;         ///< of a rank's share that is updated at once
  bool operator==(const ZeroOptimization&) const = default;
};

}  // namespace ridgeline
