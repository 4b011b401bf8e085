// What the wrappers of several GPUs cost the host, microseconds an occurrence: classes of sim/workload/host_class.h.
#pragma once

namespace ridgeline {

struct WrapperCosts {
  double ddp_hook = 0, ddp_copy_back = 0;
  double zero_broadcast = 0;
  double fsdp_hooks = 0, fsdp_gather = 0, fsdp_copy_out = 0, fsdp_reduce = 0, per_parameter_shard = 0;
};

}  // namespace ridgeline
