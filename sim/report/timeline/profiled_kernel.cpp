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

namespace {

/// The operation's name in PyTorch's process group of NCCL (ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS).
std::string_view recorded_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "allreduce";
    case CollectiveKind::all_gather: return "_allgather_base";
    case CollectiveKind::reduce_scatter: return "_reduce_scatter_base";
    case CollectiveKind::all_to_all: return "all_to_all";
    case CollectiveKind::send_recv: return "send";
    default: return name_of(kind);
  }
}

/// c10::toString of the type.
std::string_view recorded_type(DType type) {
  switch (type) {
    case DType::fp32: return "Float";
    case DType::bf16: return "BFloat16";
    case DType::fp16: return "Half";
    case DType::fp64: return "Double";
    case DType::int64: return "Long";
    case DType::int32: return "Int";
    case DType::uint8: return "Byte";
    case DType::boolean: return "Bool";
    default: return name_of(type);
  }
}

/// The first rank's group: neighbours of one copy of the network, or ranks as far apart as all others between them.
std::string ranks_of_group(const Collective& collective, std::int64_t world) {
  const bool neighbours = collective.group == GroupKind::tensor || collective.group == GroupKind::context ||
                          collective.group == GroupKind::expert || collective.group == GroupKind::shard;
  const std::int64_t apart =
      neighbours ? 1 : std::max<std::int64_t>(1, world / std::max<std::int64_t>(1, collective.ranks));
  constexpr std::int64_t kMostListed = 64;  // PyTorch shortens longer lists too
  std::string text = "[";
  for (std::int64_t i = 0; i < std::min(collective.ranks, kMostListed); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", i * apart);
  return text + (collective.ranks > kMostListed ? ", ...]" : "]");
}

}  // namespace

void add_collective(JsonObject& arguments, const Collective& collective, std::int64_t world) {
  const std::int64_t whole = collective.bytes / std::max<std::int64_t>(1, bytes_of(collective.type)),
                     part = whole / std::max<std::int64_t>(1, collective.ranks);
  arguments.add("Collective name", recorded_name(collective.kind));
  arguments.add("In msg nelems", collective.kind == CollectiveKind::all_gather ? part : whole);
  arguments.add("Out msg nelems", collective.kind == CollectiveKind::reduce_scatter ? part : whole);
  arguments.add("Group size", collective.ranks).add("dtype", recorded_type(collective.type));
  arguments.add("Process Group Name",
                fmt::format("{}", collective.ranks == world ? 0 : static_cast<int>(collective.group) + 1));
  arguments.add("Process Group Ranks", ranks_of_group(collective, world));
  arguments.add("Process Group Description", name_of(collective.group));
}

}  // namespace ridgeline
