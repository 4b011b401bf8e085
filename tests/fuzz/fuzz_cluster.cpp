// Clusters: shipped ones with changed keys, and mappings as they stand in a scenario.
#include "sim/network/cluster_rows.h"
#include "sim/network/load_cluster.h"
#include "sim/units/user_error.h"
#include "tests/fuzz/changed_tree.h"
#include "tests/fuzz/fuzz_targets.h"

namespace ridgeline {

std::string fuzz_cluster(const std::uint8_t* data, std::size_t size) {
  static const std::vector<ShippedTree> shipped = shipped_trees("hw/clusters");
  try {
    const config::Node tree = changed_tree({reinterpret_cast<const char*>(data), size}, shipped);
    const Cluster cluster = load_cluster(tree);
    if (cluster.nodes < 1 || cluster.gpus < 1) return "a cluster without GPUs";
    (void)derived_rows(cluster);
  } catch (const UserError&) {  // says where, as tests of the readers state
  }
  return {};
}

}  // namespace ridgeline
