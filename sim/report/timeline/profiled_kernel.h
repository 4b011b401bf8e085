// How PyTorch's profiler writes what runs on a GPU: copies and memsets under names of their own, collectives with
// members that tools read communication from.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/report/json/json_text.h"
#include "sim/workload/collective.h"

namespace ridgeline {

struct ProfiledKind {
  const char* category;
  const char* call;  ///< of CUDA's runtime, which launched it
  const char* name;  ///< nullptr for a kernel, which has its own
  int cbid;          ///< CUPTI's number of the call
};
ProfiledKind profiled_kind(const KernelLaunch& launch);

/// An entry of the trace's list of devices.
void add_device(TextBuffer& out, const Gpu& gpu, int number);

/// Members of the arguments of a collective's kernel as Kineto has them: its name, elements in and out of a rank, type,
/// and the group among `world` ranks.
void add_collective(JsonObject& arguments, const Collective& collective, std::int64_t world);

}  // namespace ridgeline
