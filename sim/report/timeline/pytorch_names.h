// What PyTorch's profiler calls things: the operator around host work, the autograd node, the kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/kernel_launch.h"
#include "sim/trace/aten/aten_call.h"
#include "sim/workload/host_class.h"
#include "sim/workload/op.h"

namespace ridgeline {

/// "aten::linear" for the work of a linear layer; empty where Python calls the operation itself, or no operator at all.
/// None of the names has a rule in trace/aten_map.h: what runs inside does.
std::string_view operator_around(HostClass host_class);

/// "AddmmBackward0" for work on the autograd thread; `op` is the first operation inside, null for none. Empty for
/// classes that are no node.
std::string autograd_node(HostClass host_class, const Op* op);

/// Names of the kernels a call launches (copies and memsets are not among them), as recorded from PyTorch 2.11 where
/// data/kernel_names.json has the call with as many different kernels; the names of our launches otherwise. Where there
/// are several recordings, the one whose first kernel walks and is tiled as ours is taken.
std::vector<std::string> kernel_names(const Op& op, const trace::AtenCall& call,
                                      std::span<const KernelLaunch* const> launches);

/// How the profiler writes a version of the CUDA runtime: 12040 for 12.4.
std::int64_t runtime_version(double cuda);

}  // namespace ridgeline
