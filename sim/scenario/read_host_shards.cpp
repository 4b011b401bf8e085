#include "sim/scenario/read_host_shards.h"

namespace ridgeline {

void check_host_shards(const config::Mapping& mapping, const TrainingDescription& training) {
  if (training.parallel.gradient_ranks() == 1) mapping["parallel"]["offload"].fail("needs two ranks or more");
  if (training.optimizer.kind != OptimizerKind::adam && training.optimizer.kind != OptimizerKind::adamw)
    mapping["optimizer"].fail("in the host's memory (training.parallel.offload): expected adamw or adam");
  if (training.gradient_clipping)
    mapping["gradient_clipping"].fail(
        "over shards in the host's memory (training.parallel.offload) takes a process group of the host and is not "
        "modelled: expected none");
  if (training.precision == Precision::amp_fp16)
    mapping["precision"].fail(
        "training.parallel.offload: gradients in the host's memory are not scaled; expected fp32, tf32, amp-bf16 or "
        "bf16");
}

}  // namespace ridgeline
