// Shards in the host's memory: CPUOffloadPolicy of fully_shard.
//
// After torch/distributed/fsdp/_fully_shard/_fsdp_{param,collectives,param_group}.py of PyTorch 2.11, with pinned
// memory: each shard is copied to the device by itself before its group is gathered, and cast there; each shard's
// gradient goes back behind the reduction, on its stream. The host waits for them at the end of a backward pass, and
// for each where it adds to a gradient that is there. The optimizer runs on the host, while the device has nothing to
// do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/workload/eager/parameter.h"
#include "sim/workload/training.h"

namespace ridgeline::parallel {

class HostShards {
 public:
  explicit HostShards(eager::Eager& eager) : eager_(eager) {}

  /// A shard without memory on the device.
  [[nodiscard]] static eager::Tensor shard(std::int64_t elements, DType stored);
  /// Shards of these sizes to the device, in `type` there, on the current stream.
  [[nodiscard]] std::vector<eager::Tensor> bring(std::span<const std::int64_t> sizes, DType stored, DType type);
  /// Gradients of shards to the host, on the current stream; `adds`: to those that are there.
  void take(std::span<const std::int64_t> sizes, const eager::Tensor& gradients, bool adds);
  void wait_for_gradients();
  /// The optimizer's loop over shards in the host's memory.
  void update(const eager::Parameters& shards, OptimizerDescription optimizer);

 private:
  eager::Eager& eager_;
  std::vector<std::uint32_t> under_way_;  ///< events behind copies to the host
};

}  // namespace ridgeline::parallel
