// The host: what dispatching costs. Read from hw/hosts/NAME.yaml.
#pragma once

#include <string>
#include <vector>

#include "sim/units/quantity.h"

namespace ridgeline {

struct Host {
  std::string name;
  double scale = 1.0;    ///< a slower processor is > 1
  double spread = 0.12;  ///< the host's own run-to-run spread, either way
  Seconds launch_call;   ///< cudaLaunchKernel itself
  Seconds graph_launch;  ///< launching a whole CUDA graph
  /// Seconds of one occurrence, indexed by the workload's HostClass in its order of declaration.
  std::vector<Seconds> class_costs;
};

}  // namespace ridgeline
