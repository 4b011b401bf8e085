#include "sim/report/timeline/profiled_kernel.h"

#include <algorithm>
#include <cstdint>

#include "sim/occupancy/occupancy.h"

namespace ridgeline {

ProfiledKind profiled_kind(const KernelLaunch& launch) {
  if (const auto* fixed = std::get_if<FixedWork>(&launch.work)) {
    switch (fixed->what) {
      case FixedWork::What::memset: return {"gpu_memset", "cudaMemsetAsync", "Memset (Device)", 51};
      case FixedWork::What::memcpy_device:
        return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)", 41};
      case FixedWork::What::memcpy_host_to_device:
      case FixedWork::What::memcpy_pageable_to_device:
        return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", 41};
      case FixedWork::What::memcpy_device_to_host:
      case FixedWork::What::memcpy_device_to_pageable:
        return {"gpu_memcpy", "cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 41};
      case FixedWork::What::helper:
      case FixedWork::What::layout_change:
      case FixedWork::What::collective: break;
    }
  }
  return {"kernel", "cudaLaunchKernel", nullptr, 211};
}

void add_device(TextBuffer& out, const Gpu& gpu, int number) {
  JsonObject(out)
      .add("id", number)
      .add("name", gpu.title)
      .add("totalGlobalMem", static_cast<std::int64_t>(gpu.dram.capacity.value()))
      .add("computeMajor", gpu.compute_major)
      .add("computeMinor", gpu.compute_minor)
      .add("maxThreadsPerBlock", gpu.sm.max_threads_per_block)
      .add("maxThreadsPerMultiprocessor", gpu.sm.max_warps * kThreadsPerWarp)
      .add("regsPerMultiprocessor", gpu.sm.registers)
      .add("warpSize", kThreadsPerWarp)
      .add("numSms", gpu.sm.count);
}

void add_collective(JsonObject& arguments, const Collective& collective) {
  const std::int64_t whole = collective.bytes / std::max<std::int64_t>(1, bytes_of(collective.type)),
                     part = whole / std::max<std::int64_t>(1, collective.ranks);
  arguments.add("Collective name", name_of(collective.kind));
  arguments.add("In msg nelems", collective.kind == CollectiveKind::all_gather ? part : whole);
  arguments.add("Out msg nelems", collective.kind == CollectiveKind::reduce_scatter ? part : whole);
  arguments.add("Group size", collective.ranks).add("dtype", name_of(collective.type));
  arguments.add("Process Group Description", name_of(collective.group));
}

}  // namespace ridgeline
