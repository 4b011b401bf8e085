// The host: what dispatching costs. Read from hw/hosts/NAME.yaml.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/units/quantity.h"

namespace ridgeline {

/// What the host's work is made of. On one machine Python may be slow and the driver's launch call fast: each part has
/// a factor of its own beside the scale of all (tools/host_scale.py measures them).
struct HostParts {
  double python = 1.0;      ///< the interpreter, and modules' calls
  double dispatcher = 1.0;  ///< an operation from its binding to its kernel's code
  double autograd = 1.0;    ///< the engine's thread: a node, its queue
  double allocation = 1.0;  ///< a tensor and its block
  double launch = 1.0;      ///< cudaLaunchKernel
  double backward = 1.0;    ///< all that the thread of the backward pass does: its core is another one
  double inference = 1.0;   ///< all of passes that make no graph: the scale is that of whole training steps
};

struct Host {
  std::string name;
  double scale = 1.0;    ///< a slower processor is > 1
  double spread = 0.12;  ///< a known host's own run-to-run spread, either way
  bool known = true;     ///< false: stands for a host that nobody measured, whose scale may be any of those seen
  double least_scale = 1.0, most_scale = 1.0;  ///< of the hosts seen; where `known` is false
  HostParts parts;
  bool launch_blocking = false;  ///< CUDA_LAUNCH_BLOCKING=1: a launch call returns when its kernel is done
  Seconds launch_call;           ///< cudaLaunchKernel itself
  Seconds graph_launch;          ///< launching a whole CUDA graph
  /// Seconds of one occurrence, indexed by the workload's HostClass in its order of declaration.
  std::vector<Seconds> class_costs;

  /// Factors on the costs between which the true ones lie nine times in ten.
  [[nodiscard]] double least_factor() const { return known ? 1.0 - spread : std::min(1.0, least_scale / scale); }
  [[nodiscard]] double most_factor() const { return known ? 1.0 + spread : std::max(1.0, most_scale / scale); }
};

}  // namespace ridgeline
