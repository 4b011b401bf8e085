// How long a collective takes alone: NCCL's choice of algorithm and protocol, and the law of its time.
//
// docs/model/collectives.md has the equations. All ranks are taken to be ready; what waits for a late rank, or
// shares SMs and DRAM with a kernel beside it (overlap.h), comes on top.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/network/cluster.h"
#include "sim/units/quantity.h"
#include "sim/workload/collective.h"

namespace ridgeline {

/// Where the ranks of a group stand.
struct Placement {
  int ranks = 1;
  int ranks_a_node = 1;
  int nodes = 1;
  int stride = 1;          ///< GPUs from one rank to the next
  int groups_a_nic = 1;    ///< groups of the kind that run at once and share the node's NICs
  int groups_at_once = 1;  ///< groups of the kind inside a node that run at once and share its PCIe tree
  bool operator==(const Placement&) const = default;
};

/// `stride` is the product of the parallel degrees inside the group: 1 for neighbours. Throws UserError where the
/// cluster has fewer GPUs than the group spans.
Placement place(const Cluster& cluster, int ranks, int stride = 1);

enum class NcclAlgorithm : std::uint8_t {
  ring,
  tree,
  nvls,       ///< the switches add up
  nvls_tree,  ///< the same in each node, a tree between nodes
  direct,     ///< sends and receives between pairs
  none        ///< nothing to do: one rank, or no bytes
};
std::string_view name_of(NcclAlgorithm algorithm);
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
std::string_view name_of(NcclProtocol protocol);

/// What most of the time goes to.
enum class CollectiveLimiter : std::uint8_t { latency, links, pcie, host, network, gpu };
std::string_view name_of(CollectiveLimiter limiter);

struct CollectiveTime {
  Seconds time;       ///< of the kernel on the device, all ranks ready, as a profiler shows it
  Seconds low, high;  ///< nine measured ones in ten lie between
  Seconds loop;       ///< of one of many calls back to back, as nccl-tests prints it
  Seconds call;       ///< from event to event around one call on idle devices: `time` and starting it
  NcclAlgorithm algorithm = NcclAlgorithm::none;
  NcclProtocol protocol = NcclProtocol::simple;
  int channels = 0;    ///< thread blocks, one an SM
  int threads = 0;     ///< of a block
  Bytes dram;          ///< read and written in this GPU's memory
  Bytes wire;          ///< sent by one rank
  BytesPerSecond bus;  ///< `wire` over `loop`, the "bus bandwidth" of nccl-tests
  CollectiveLimiter limiter = CollectiveLimiter::latency;
  bool validated = true;  ///< measured collectives of these links, and this many nodes, were compared with the law
  std::string why_not;    ///< else: what was not
};

/// Throws UserError for a group of fewer than one rank or negative bytes.
CollectiveTime collective_time(const Cluster& cluster, const Gpu& gpu, const Collective& collective,
                               const Placement& placement);

/// As profilers show it: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)".
std::string nccl_kernel_name(const Collective& collective, const CollectiveTime& time);

}  // namespace ridgeline
