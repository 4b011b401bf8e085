// What classes of the host's work are made of, and which thread does them.
#include "sim/workload/host_class.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ridgeline {
namespace {

template <typename Check>
void for_each_class(Check check) {
  for (int i = 0; i <= static_cast<int>(HostClass::other); ++i) {
    const auto host_class = static_cast<HostClass>(i);
    check(host_class, std::string(name_of(host_class)));
  }
}

TEST(HostClasses, PartsOfACostAddUpToIt) {
  for_each_class([](HostClass host_class, const std::string& name) {
    const HostMix mix = mix_of(host_class);
    EXPECT_DOUBLE_EQ(mix.python + mix.dispatcher + mix.autograd + mix.allocation, 1.0) << name;
    for (const double part : {mix.python, mix.dispatcher, mix.autograd, mix.allocation}) EXPECT_GE(part, 0.0) << name;
  });
}

TEST(HostClasses, TheBackwardThreadDoesWhatIsNamedAfterItAndWhatTheEngineAdds) {
  const std::set<std::string> of_engine{"fan_in_add",           "accumulate_grad",    "accumulate_grad_add",
                                        "checkpoint_recompute", "main_gradient_hook", "offload_unpack"};
  for_each_class([&](HostClass host_class, const std::string& name) {
    if (host_class == HostClass::checkpoint_segment) return;  // entered from Python, before the block runs
    EXPECT_EQ(in_backward_thread(host_class), name.find("backward") != std::string::npos || of_engine.contains(name))
        << name;
  });
}

// PyTorch's own nodes are C++; those of frameworks are functions in Python.
TEST(HostClasses, NodesOfPyTorchNeedNoPython) {
  for_each_class([](HostClass host_class, const std::string& name) {
    if (!in_backward_thread(host_class) || host_class == HostClass::checkpoint_segment) return;
    bool in_python = false;
    for (const char* part : {"compiled", "tensor_boundary", "megatron", "main_gradient", "offload", "dtensor"})
      in_python = in_python || name.find(part) != std::string::npos;
    EXPECT_EQ(mix_of(host_class).python > 0.0, in_python) << name;
  });
  for (const HostClass alone : {HostClass::python_fixed, HostClass::checkpoint_segment, HostClass::loss_division})
    EXPECT_EQ(mix_of(alone).python, 1.0) << name_of(alone);
}

// A fused or foreach optimizer works without autograd.
TEST(HostClasses, WhatIsDoneForEachParameterHasNoGraph) {
  for_each_class([](HostClass host_class, const std::string& name) {
    if (!name.starts_with("per_parameter") && !name.starts_with("foreach") && !name.starts_with("fused")) return;
    if (name == "per_parameter_shard") return;  // of tensors that know of their gradients
    EXPECT_EQ(mix_of(host_class).autograd, 0.0) << name;
  });
}

}  // namespace
}  // namespace ridgeline
