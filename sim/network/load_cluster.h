// hw/clusters/NAME.yaml, or a mapping written in a scenario, to Cluster.
//
//   cluster: hgx-h200                                    # a name of cluster_names(), or a path
//   cluster: {gpu: nvidia-a100-sxm4-80gb, nodes: 2, gpus: 8, interconnect: nvswitch, nvls: false,
//             nics: {count: 8, rate: 200 Gbit/s}}        # what it leaves out is in hw/interconnects
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"
#include "sim/hardware/hardware_sheet.h"
#include "sim/network/cluster.h"

namespace ridgeline {

/// `name_or_path` is a name of cluster_names(), or a file (it has a '/' or ends in .yaml). Override keys are those of
/// the file: "nodes", "links.rate". Throws config::ConfigError with the place of the mistake.
Cluster load_cluster(std::string_view name_or_path, const std::vector<config::Override>& overrides = {});

/// The value of the key `cluster` of a scenario: a name, a path or a mapping.
Cluster load_cluster(const config::Node& node, const std::vector<config::Override>& overrides = {});

/// The same from YAML text; `name` stands for the file in messages.
Cluster cluster_from_yaml(std::string_view text, std::string_view name,
                          const std::vector<config::Override>& overrides = {});

/// Every value with its source, and what follows from them.
HardwareSheet load_cluster_sheet(std::string_view name_or_path, const std::vector<config::Override>& overrides = {});

/// Shipped descriptions, sorted.
std::vector<std::string> cluster_names();

/// True for a name of cluster_names(), and for a file that describes a cluster (it has a key `gpu`).
bool describes_cluster(std::string_view name_or_path);

}  // namespace ridgeline
