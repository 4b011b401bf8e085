#include "sim/workload/parallel/host_shards.h"

#include "sim/units/ceil_div.h"
#include "sim/workload/aten/pointwise.h"

namespace ridgeline::parallel {

using eager::Tensor;

Tensor HostShards::shard(std::int64_t elements, DType stored) {
  Tensor result;
  result.sizes = {elements};
  result.strides = {1};
  result.type = stored;
  return result;
}

std::vector<Tensor> HostShards::bring(std::span<const std::int64_t> sizes, DType stored, DType type) {
  std::vector<Tensor> result;
  for (const std::int64_t elements : sizes) {
    eager_.recorder.host(HostClass::optimizer_op);
    const Tensor copied = eager_.empty({elements}, stored);
    eager_.recorder.op(Copy{CopyKind::host_to_device, stored, 1, elements, 1}, {&copied}, {&copied});
    result.push_back(eager::aten::to(eager_, copied, type));
  }
  return result;
}

void HostShards::take(std::span<const std::int64_t> sizes, const Tensor& gradients, bool adds) {
  for (const std::int64_t elements : sizes) {
    eager_.recorder.host(HostClass::optimizer_op);
    Tensor part = gradients.detached();
    part.sizes = {elements};
    part.strides = {1};
    eager_.recorder.op(Copy{CopyKind::device_to_host, gradients.type, 1, elements, 1}, {&part}, {&part});
    under_way_.push_back(eager_.recorder.record_event(eager_.recorder.stream));
    if (!adds) continue;
    wait_for_gradients();
    eager_.recorder.host(HostClass::host_addition, ceil_div(elements, kHostElements));
  }
}

void HostShards::wait_for_gradients() {
  for (const std::uint32_t event : under_way_) eager_.recorder.host_waits_for_event(event);
  under_way_.clear();
}

void HostShards::update(const eager::Parameters& shards, OptimizerDescription optimizer) {
  const bool fused = optimizer.implementation == OptimizerImplementation::fused;
  eager_.recorder.host(fused ? HostClass::per_parameter_fused : HostClass::per_parameter_for_loop,
                       static_cast<std::int64_t>(shards.size()));
  std::int64_t elements = 0;
  for (const eager::Parameter& shard : shards) elements += shard.value.elements();
  eager_.recorder.host(fused ? HostClass::host_update_fused : HostClass::host_update_for_loop,
                       ceil_div(elements, kHostElements));
}

}  // namespace ridgeline::parallel
