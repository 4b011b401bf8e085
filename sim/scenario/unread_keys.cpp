#include "sim/scenario/unread_keys.h"

namespace ridgeline {

std::vector<std::string> unread_parallel_keys(const TrainingDescription& training) {
  const ParallelDescription& how = training.parallel;
  const ParallelDescription usual;
  const bool replicas =
      how.gradient_ranks() > 1 && how.framework == Framework::torch && !how.one_process() && !how.shards_parameters();
  const bool buckets = replicas && training.data_parallel != DataParallel::apex;
  const bool shards = how.gradient_ranks() > 1 && how.shards_parameters() && !how.megatron();
  const bool split = how.tensor > 1;
  std::vector<std::string> unread;
  const auto check = [&](const char* key, bool said, bool read) {
    if (said && !read) unread.emplace_back(key);
  };
  check("bucket_cap", how.bucket_cap.has_value(), buckets);
  check("gradient_as_bucket_view", how.gradient_as_bucket_view, buckets);
  check("static_graph", how.static_graph, buckets);
  check("find_unused_parameters", how.find_unused_parameters, buckets);
  check("compression", how.compression != usual.compression, buckets);
  check("broadcast_buffers", !how.broadcast_buffers, buckets);
  check("parameters_as_bucket_view", how.parameters_as_bucket_view, replicas && how.strategy == DataStrategy::zero1);
  check("wrap", how.wrap != usual.wrap, shards);
  check("reshard_after_forward", how.reshard_after_forward != usual.reshard_after_forward, shards);
  check("parameter_type", how.parameter_type.has_value(), shards);
  check("reduce_type", how.reduce_type.has_value(), shards);
  check("sequence_parallel", how.sequence_parallel, split);
  check("loss_parallel", how.loss_parallel, split);
  check("prepared_inputs", !how.prepared_inputs, split);
  check("pieces", how.pieces > 1, how.split > 1);
  return unread;
}

}  // namespace ridgeline
