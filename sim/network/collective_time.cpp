#include "sim/network/collective_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/network/collective_law.h"
#include "sim/network/collective_range.h"
#include "sim/network/copy_time.h"
#include "sim/network/group_links.h"
#include "sim/network/nccl_choice.h"
#include "sim/network/network_constants.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// A kernel that all ranks start and leave: what one rank does for itself, a copy at most.
constexpr double kAlone = 0.5;

/// Eight L40S took so many times as long as one rate for all slots says (measurements/public, nccl-tests).
constexpr double kUnknownTree = 12.0;

/// Read and written in one GPU's memory: its own buffers, and what its neighbour puts into them.
Bytes dram_bytes(const Collective& collective, int ranks, double wire) {
  const double bytes = static_cast<double>(collective.bytes);
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce: return Bytes{bytes + 2.0 * wire};
    case CollectiveKind::all_gather: return Bytes{2.0 * bytes / ranks + 2.0 * wire};
    case CollectiveKind::all_to_all: return Bytes{2.0 * bytes + wire};
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
    case CollectiveKind::barrier:
    case CollectiveKind::peer_copy: break;
  }
  return Bytes{2.0 * wire};
}

/// What was not compared of a collective like this one; empty where rows lie behind it.
std::string not_compared(const Cluster& cluster, const Collective& collective, const Placement& placement,
                         const GroupLinks& links) {
  if (placement.nodes > 4) return fmt::format("no collective over {} nodes was compared", placement.nodes);
  if (placement.nodes > 1 && placement.ranks_a_node < cluster.gpus)
    return "no collective of part of the GPUs of several nodes was compared";
  if (links.kind != CollectiveLimiter::links && placement.ranks_a_node > 2 && cluster.links.tree.empty())
    return "how PCIe joins the slots is not described (links.tree, links.topology)";
  if (links.kind != CollectiveLimiter::links) return "over PCIe one machine of eight L40S was compared; hosts differ";
  if (cluster.interconnect == Interconnect::bridge)
    return "of two published pairs on bridges one took three times as long";
  if (placement.nodes > 1) return "";
  return not_among(measured_range(cluster.architecture, links.kind, collective.bytes), collective, placement.ranks);
}

}  // namespace

Placement place(const Cluster& cluster, int ranks, int stride) {
  if (ranks < 1 || stride < 1) throw UserError(fmt::format("a group of {} ranks, every {}", ranks, stride));
  const long span = static_cast<long>(ranks - 1) * stride + 1;
  if (span > cluster.all_gpus())
    throw UserError(fmt::format("a group of {} ranks{} needs {} GPUs; {} has {}", ranks,
                                stride > 1 ? fmt::format(", every {}th GPU,", stride) : "", span, cluster.name,
                                cluster.all_gpus()));
  Placement result;
  result.ranks = ranks;
  result.stride = stride;
  result.ranks_a_node = std::max(1, std::min(ranks, cluster.gpus / stride));
  result.nodes = (ranks + result.ranks_a_node - 1) / result.ranks_a_node;
  result.groups_a_nic = result.nodes > 1 ? std::max(1, cluster.gpus / result.ranks_a_node) : 1;
  return result;
}

std::string_view name_of(NcclAlgorithm algorithm) {
  constexpr std::array<std::string_view, 6> kNames{"ring", "tree", "nvls", "nvls_tree", "direct", "none"};
  return kNames[static_cast<std::size_t>(algorithm)];
}
std::string_view name_of(NcclProtocol protocol) {
  constexpr std::array<std::string_view, 3> kNames{"LL", "LL128", "Simple"};
  return kNames[static_cast<std::size_t>(protocol)];
}
std::string_view name_of(CollectiveLimiter limiter) {
  constexpr std::array<std::string_view, 6> kNames{"latency", "links", "pcie", "host", "network", "gpu"};
  return kNames[static_cast<std::size_t>(limiter)];
}

CollectiveTime collective_time(const Cluster& cluster, const Gpu& gpu, const Collective& collective,
                               const Placement& placement) {
  if (placement.ranks < 1) throw UserError(fmt::format("a collective of {} ranks", placement.ranks));
  if (collective.bytes < 0) throw UserError(fmt::format("a collective of {} bytes", collective.bytes));
  CollectiveTime result;
  Collective one = collective;
  if (one.kind == CollectiveKind::barrier) one.bytes = std::max<std::int64_t>(one.bytes, 1);
  if (placement.ranks == 1 || one.bytes == 0) {
    const NetworkConstants& constants = network_constants(cluster.architecture);
    const double copied = one.kind == CollectiveKind::send_recv ? 0.0 : static_cast<double>(one.bytes);
    result.limiter = CollectiveLimiter::gpu;
    result.dram = Bytes{placement.ranks == 1 ? 2.0 * copied : 0.0};
    result.time = gpu.launch.kernel_fixed + result.dram / (gpu.dram.bandwidth * kAlone);
    result.low = result.high = result.time;
    result.loop = result.time + microseconds(constants.loop_us);
    result.call = result.time + microseconds(constants.call_us);
    return result;
  }
  if (one.kind == CollectiveKind::peer_copy) {
    const Bytes bytes{static_cast<double>(one.bytes)};
    result.limiter = CollectiveLimiter::links;
    result.time = result.loop = result.call = copy_time(cluster, gpu, CopyRoute::peer, bytes);
    result.low = result.high = result.time;
    result.wire = result.dram = bytes;
    result.bus = bytes / result.time;
    return result;
  }
  const bool pair = one.kind == CollectiveKind::send_recv;
  const GroupLinks links = pair ? pair_links(cluster, placement) : group_links(cluster, placement);
  const NetworkConstants& constants = network_constants(cluster.architecture, links.kind);
  const NcclChoice choice = nccl_choice(cluster, placement, links, one);
  const LawTime law = collective_law(one, placement, links, choice, constants);
  result.algorithm = choice.algorithm;
  result.protocol = choice.protocol;
  result.channels = choice.channels;
  result.threads = choice.threads;
  result.wire = Bytes{wire_bytes(one.kind, placement.ranks, static_cast<double>(one.bytes))};
  result.dram = dram_bytes(one, placement.ranks, result.wire.value());
  // No links of today ask the memory for as much as it gives; those of a what-if may.
  const Seconds memory = result.dram / gpu.dram.bandwidth;
  result.time = std::max(law.time, memory);
  result.limiter = memory > law.time ? CollectiveLimiter::gpu : law.limiter;
  result.loop = result.time + microseconds(constants.loop_us);
  result.call = result.time + microseconds(constants.call_us);
  result.bus = result.wire / result.loop;
  result.why_not = not_compared(cluster, one, placement, links);
  result.validated = result.why_not.empty();
  const CollectiveRange range = collective_range(cluster.architecture, links.kind, one, placement, result.validated);
  const bool unknown_tree =
      links.kind != CollectiveLimiter::links && placement.ranks_a_node > 2 && cluster.links.tree.empty();
  result.low = result.time * range.low;
  result.high = result.time * (unknown_tree ? std::max(range.high, kUnknownTree) : range.high);
  return result;
}

std::string nccl_kernel_name(const Collective& collective, const CollectiveTime& time) {
  constexpr std::string_view kArguments = "(ncclDevKernelArgsStorage<4096ul>)";
  if (collective.kind == CollectiveKind::peer_copy) return "Memcpy PtoP (Device -> Device)";
  if (time.algorithm == NcclAlgorithm::direct) return fmt::format("ncclDevKernel_SendRecv{}", kArguments);
  std::string_view function;
  bool adds = false;
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier: function = "AllReduce", adds = true; break;
    case CollectiveKind::reduce_scatter: function = "ReduceScatter", adds = true; break;
    case CollectiveKind::reduce: function = "Reduce", adds = true; break;
    case CollectiveKind::all_gather: function = "AllGather"; break;
    case CollectiveKind::broadcast: function = "Broadcast"; break;
    case CollectiveKind::all_to_all:
    case CollectiveKind::peer_copy:
    case CollectiveKind::send_recv: function = "SendRecv"; break;
  }
  std::string type;
  switch (collective.type) {
    case DType::fp32:
    case DType::tf32: type = "f32"; break;
    case DType::bf16: type = "bf16"; break;
    case DType::fp16: type = "f16"; break;
    case DType::fp64: type = "f64"; break;
    case DType::int64: type = "i64"; break;
    case DType::int32: type = "i32"; break;
    case DType::uint8:
    case DType::boolean: type = "u8"; break;
  }
  // One kernel serves all protocols of a function; NCCL names it after the ring's LL, or after the tree's.
  const std::string_view algorithm = time.algorithm == NcclAlgorithm::tree ? "TREE" : "RING";
  return fmt::format("ncclDevKernel_{}_{}{}_LL{}", function, adds ? "Sum_" + type + "_" : "", algorithm, kArguments);
}

}  // namespace ridgeline
