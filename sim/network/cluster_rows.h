// What follows from a cluster's numbers, as rows of a table for people.
#pragma once

#include <vector>

#include "sim/hardware/hardware_sheet.h"
#include "sim/network/cluster.h"

namespace ridgeline {

/// GPUs, bytes a second of a group of all GPUs of a node, of a node's NICs.
std::vector<SheetRow> derived_rows(const Cluster& cluster);

}  // namespace ridgeline
