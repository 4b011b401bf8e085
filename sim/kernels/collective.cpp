// A collective is one kernel of NCCL: what it does to this GPU's memory. How long it takes, and how many thread blocks
// it has, the links decide: sim/network.
#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "sim/kernels/families.h"

namespace ridgeline {
namespace {

/// As the kernels of NCCL are named.
std::string_view kernel_word(CollectiveKind kind) {
  constexpr std::array<std::string_view, 9> kWords{"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
                                                   "SendRecv",  "SendRecv",  "AllReduce",     "PeerCopy"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace

LoweredOp lower_collective(const Collective& op, const ChipShape& /*chip*/, const Software& /*software*/) {
  if (op.bytes < 0 || op.ranks < 1)
    throw std::invalid_argument("a collective needs ranks, and cannot move less than 0 bytes");
  KernelLaunch launch;
  launch.name = fmt::format("ncclDevKernel_{}", kernel_word(op.kind));
  launch.time_class = TimeClass::communication;
  launch.threads_per_block = 512;
  launch.registers_per_thread = 96;
  launch.type = op.type;
  const auto whole = static_cast<double>(op.bytes), part = whole / static_cast<double>(op.ranks);
  const double sent = op.kind == CollectiveKind::all_gather ? part : whole,
               received = op.kind == CollectiveKind::reduce_scatter ? part : whole;
  launch.work = FixedWork{FixedWork::What::collective, whole, 1.0};
  if (op.kind != CollectiveKind::barrier) launch.reads.push_back({0, sent});
  launch.writes.push_back({op.kind == CollectiveKind::barrier ? 0 : 1, received});
  return {{std::move(launch)}, {}, false};
}

}  // namespace ridgeline
