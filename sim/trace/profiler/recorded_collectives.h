// Kernels of NCCL in a profiler's trace, and what they exchange: Kineto writes name, elements, type and group beside a
// kernel (PyTorch 2.2 and later). Their streams are read as those of other kernels (recorded_streams.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/workload/collective.h"
#include "sim/workload/kernel_family.h"

namespace ridgeline::trace {

/// From what stands beside a kernel; `name` as torch.distributed or NCCL's process group has it ("allreduce",
/// "_allgather_base"). Nothing where it is not one operation of known size.
std::optional<Collective> collective_of(const GpuEvent::Message& message);

/// By entry of `events.gpu`; nothing for those that do not say what they exchange.
std::map<std::size_t, std::optional<Collective>> collective_kernels(const ProfilerEvents& events);

}  // namespace ridgeline::trace
