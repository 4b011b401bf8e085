#include "sim/workload/batch_loading.h"

namespace ridgeline {

using eager::Eager;
using eager::Tensor;

void load_batch(Eager& eager, const families::Batch& batch, int extra) {
  const auto load = [&](const Tensor& tensor) {
    const std::int64_t sequences = tensor.sizes[0];
    eager.recorder.host(HostClass::view, sequences);
    eager.recorder.host(HostClass::contiguous);
    eager.recorder.op(Copy{CopyKind::host_to_device, tensor.type, sequences, tensor.elements() / sequences, 1}, {},
                      {&tensor});
    eager.recorder.wait_for_gpu();
  };
  load(batch.tokens);
  for (int i = 0; i < extra; ++i) load(batch.tokens);
  for (const Tensor& target : batch.targets) load(target);
}

}  // namespace ridgeline
