// Which operation of the laws a single call of PyTorch is (files of kind "calls").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sim/launch/kernel_launch.h"
#include "sim/workload/op.h"

namespace ridgeline::fit {

struct Call {
  Op op;
  std::string shape{};  ///< equal ones are on one side of the split
};

/// Nothing for a call whose kernels are fitted elsewhere, or that is no one operation.
std::optional<Call> call_of(const nlohmann::json& row);

/// Whether the profiler's `name` is that of the launch's kernel.
bool names_launch(std::string_view name, const KernelLaunch& launch);

}  // namespace ridgeline::fit
