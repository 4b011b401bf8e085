// Kernels of NCCL in a profiler's trace: what they exchange, and which of them run beside the network's own kernels.
//
// Kineto writes name, elements, type and group beside a kernel (PyTorch 2.2 and later). A trace does not say which
// stream waits for which: the network's stream is taken to wait for a collective at the first cudaStreamWaitEvent,
// outside of calls of collectives, that was issued after every kernel it started before the collective's end.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/profiler/profiler_events.h"
#include "sim/workload/collective.h"

namespace ridgeline::trace {

/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "void ncclKernel_...", "multimem_all_reduce_kernel".
bool is_collective_kernel(std::string_view name);

/// From what stands beside a kernel; `name` as torch.distributed or NCCL's process group has it ("allreduce",
/// "_allgather_base"). Nothing where it is not one operation of known size.
std::optional<Collective> collective_of(const GpuEvent::Message& message);

struct CollectiveKernel {
  std::optional<Collective> op;
  bool beside = false;                                       ///< on a stream of its own
  double awaited = std::numeric_limits<double>::infinity();  ///< when the host lets the network's stream wait for it
};

/// By entry of `events.gpu`; `issued` holds for each of them when the host issued it.
std::map<std::size_t, CollectiveKernel> collective_kernels(const ProfilerEvents& events,
                                                           const std::vector<double>& issued);

}  // namespace ridgeline::trace
