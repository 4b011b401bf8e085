#include "sim/workload/parallel/parallel.h"

namespace ridgeline {

std::int64_t stride_of(const ParallelDescription& parallel, GroupKind group) {
  switch (group) {
    case GroupKind::replicate: return parallel.tensor * (parallel.data / parallel.replicate);
    case GroupKind::pipeline: return parallel.tensor * parallel.data;
    case GroupKind::embedding: return parallel.tensor * parallel.data * (parallel.pipeline - 1);
    case GroupKind::data:
    case GroupKind::shard: return parallel.tensor;
    case GroupKind::tensor:
    case GroupKind::context:
    case GroupKind::expert:
    case GroupKind::model: break;
  }
  return 1;
}

}  // namespace ridgeline
