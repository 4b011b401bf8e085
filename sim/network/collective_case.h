// One line of a file of collectives: {"op":"all_reduce","bytes":26214400,"gpus":4,"nodes":1,"dtype":"bf16"}.
//
// `gpus` are those of a node (a number that a node has not counts those of all nodes); `nodes` and `gpus` are the
// cluster's where they are left out. More nodes than the cluster has are as many of the same kind. A bad line throws
// CollectiveCaseError with a sentence for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "sim/network/cluster.h"
#include "sim/network/collective_time.h"
#include "sim/units/user_error.h"
#include "sim/workload/collective.h"

namespace ridgeline {

struct CollectiveCaseError : UserError {
  using UserError::UserError;
};

struct CollectiveCase {
  Collective collective;
  Cluster cluster;  ///< with the nodes that the line says
  Placement placement;
};

CollectiveCase collective_case_from(const nlohmann::json& line, const Cluster& cluster);

std::optional<CollectiveKind> collective_kind_from(std::string_view name);

}  // namespace ridgeline
