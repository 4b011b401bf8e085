// What all candidates of a plan share: the scenario without what is searched, on a cluster of so many GPUs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/scenario/descriptions.h"
#include "sim/study/plan/plan.h"

namespace ridgeline {

struct PlanBase {
  config::Node tree;                             ///< of the scenario, without what candidates say
  std::vector<config::Override> changes;         ///< of the descriptions it names
  std::map<std::string, config::Override> kept;  ///< keys that are searched, but were given: "tensor" to "2"
  std::string cluster_name, assumed;
  Cluster cluster;         ///< as it is described
  Scenario scenario;       ///< of one sequence on one of its GPUs
  std::int64_t batch = 0;  ///< sequences of a step
};

/// Throws UserError: for no GPU or no known cluster of it, a batch that is not said, a recorded step, inference.
PlanBase plan_base(const PlanRequest& request, Descriptions& descriptions);

/// Nodes of the cluster that so many GPUs are: 1 for those of a part of a node. Throws UserError for what is no whole
/// number of nodes, and for several nodes that nothing joins.
std::int64_t nodes_for(const Cluster& cluster, std::int64_t gpus);

}  // namespace ridgeline
