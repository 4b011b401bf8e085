// The tree of a node's sockets, root complexes and PCIe switches: as a list, or as `nvidia-smi topo -m` prints it.
//
//   tree: [{socket: [{switch: [0, 1]}, {switch: [2, 3]}]}, {socket: [4, 5]}]
//
// A number is a GPU. A part without a `root` around it is a root complex of its own. Mistakes are config::ConfigErrors.
#pragma once

#include <vector>

#include "sim/config/value.h"
#include "sim/network/cluster.h"

namespace ridgeline {

std::vector<GpuSeat> read_link_tree(const config::Value& list);

/// What a matrix of nvidia-smi says.
struct Topology {
  std::vector<GpuSeat> seats;
  std::vector<std::vector<int>> nvlinks;  ///< between each two GPUs

  [[nodiscard]] bool has_nvlinks() const;
};

/// `value` holds the matrix, or the name of a file that does, beside the file that names it.
Topology read_topology(const config::Value& value);

}  // namespace ridgeline
