// A cluster as the laws of communication see it: GPUs of one type, how those of a node are joined, how nodes are.
//
// Rates are bytes a second in one direction. Read from hw/clusters/NAME.yaml or a mapping in a scenario by
// load_cluster.h; what neither says comes from hw/interconnects: the board's own file, then ARCHITECTURE-CC.yaml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/units/quantity.h"

namespace ridgeline {

/// What joins the GPUs of a node.
enum class Interconnect : std::uint8_t {
  nvswitch,  ///< every pair at the full rate of a GPU's links
  mesh,      ///< links between some pairs (DGX-1); `matrix` counts them
  bridge,    ///< neighbours 0-1, 2-3 … in pairs, PCIe between pairs
  pcie,      ///< PCIe, directly where `peer_to_peer`
  none       ///< nothing but the host's memory
};
std::string_view name_of(Interconnect kind);

/// The farthest part of the machine between two GPUs, as nvidia-smi and NCCL_P2P_LEVEL name it.
enum class PcieLevel : std::uint8_t {
  pix,   ///< one PCIe switch
  pxb,   ///< several PCIe switches
  phb,   ///< a root complex (host bridge)
  node,  ///< several root complexes of a socket
  sys    ///< the links between sockets
};

/// Where a GPU sits: GPUs with the same number share that part. Numbers are unique over the node.
struct GpuSeat {
  int socket = 0, root = 0;  ///< root: a root complex
  int bridge = 0;            ///< the outermost PCIe switch, or the GPU's own root port
  int port = 0;              ///< the switch that the GPU's slot hangs from
  bool operator==(const GpuSeat&) const = default;
};

/// Direct links between GPUs (NVLink), not read where there are none, and the tree that the slots hang from.
struct GpuLinks {
  int count = 0;                         ///< of one GPU
  BytesPerSecond rate;                   ///< of one link, as its datasheet says
  double efficiency = 1.0;               ///< share of it that payload can have
  std::vector<std::vector<int>> matrix;  ///< of a mesh: [gpus][gpus], links between each two
  std::vector<GpuSeat> tree{};           ///< one seat a GPU; empty: not described
  bool operator==(const GpuLinks&) const = default;
};

struct PciePath {
  BytesPerSecond rate;                   ///< of one GPU's slot, achieved
  bool peer_to_peer = false;             ///< else every byte goes through the host's memory
  PcieLevel p2p_level = PcieLevel::sys;  ///< GPUs farther apart go through the host's memory: pxb on Intel and ARM
  BytesPerSecond uplink{};               ///< from a switch to its root complex; 0: as a slot
  BytesPerSecond socket{};               ///< from one socket to another
  BytesPerSecond host;                   ///< into and out of the host's memory, of all GPUs of a node together
  bool operator==(const PciePath&) const = default;
};

struct Nics {
  int count = 0;            ///< of a node; 0 = none
  BytesPerSecond rate;      ///< of one, as its datasheet says
  double efficiency = 1.0;  ///< share of it that collectives reach
  Seconds latency;          ///< of one message to another node
  bool operator==(const Nics&) const = default;
};

struct Cluster {
  std::string name, title;
  std::string gpu_name;  ///< a name of hw/
  Architecture architecture = Architecture::ampere;
  int nodes = 1, gpus = 1;  ///< `gpus` of one node
  Interconnect interconnect = Interconnect::none;
  GpuLinks links;
  PciePath pcie;
  Nics nics;
  double oversubscription = 1.0;  ///< of the network between nodes: 2 = half the rate when all nodes send
  bool nvls = false;              ///< switches add up (NVLink SHARP) and the software uses that

  [[nodiscard]] int all_gpus() const { return nodes * gpus; }
  bool operator==(const Cluster&) const = default;
};

}  // namespace ridgeline
