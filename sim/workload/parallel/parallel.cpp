#include "sim/workload/parallel/parallel.h"

namespace ridgeline {

std::int64_t stride_of(const ParallelDescription& parallel, GroupKind group) {
  switch (group) {
    case GroupKind::replicate: return parallel.tensor * (parallel.gradient_ranks() / parallel.replicate);
    case GroupKind::pipeline: return parallel.tensor * parallel.gradient_ranks();
    case GroupKind::embedding: return parallel.tensor * parallel.gradient_ranks() * (parallel.pipeline - 1);
    case GroupKind::expert_data: return parallel.tensor * parallel.expert;
    case GroupKind::data:
    case GroupKind::shard:
    case GroupKind::expert:
    case GroupKind::context: return parallel.tensor;
    case GroupKind::tensor:
    case GroupKind::model: break;
  }
  return 1;
}

}  // namespace ridgeline
