#include "sim/network/cluster_rows.h"

#include <fmt/format.h>

#include "sim/network/group_links.h"

namespace ridgeline {

std::vector<SheetRow> derived_rows(const Cluster& cluster) {
  std::vector<SheetRow> rows;
  const auto add = [&](const char* key, const std::string& value, const char* unit, const std::string& formula) {
    SheetRow row;
    row.key = key;
    row.value = value;
    row.unit = unit;
    row.source = formula;
    rows.push_back(std::move(row));
  };
  add("all_gpus", fmt::format("{}", cluster.all_gpus()), "", "nodes x gpus");
  if (cluster.gpus > 1) {
    const GroupLinks links = group_links(cluster, place(cluster, cluster.gpus));
    add("node_bus", fmt::format("{:.1f}", links.bus.value() * 1e-9), "GB/s",
        "payload a GPU sends while all GPUs of its node do");
    add("node_channels", fmt::format("{}", links.channels), "", "thread blocks of a large collective");
  }
  if (cluster.nodes > 1) {
    const GroupLinks links = group_links(cluster, place(cluster, cluster.all_gpus()));
    add("node_to_nodes", fmt::format("{:.1f}", links.node.value() * 1e-9), "GB/s",
        "nics.count x nics.rate x nics.efficiency / oversubscription");
  }
  return rows;
}

}  // namespace ridgeline
