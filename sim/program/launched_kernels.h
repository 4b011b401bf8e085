// The launches of a program's steady step, each with the operation it belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/step_program.h"

namespace ridgeline {

struct LaunchedKernel {
  const KernelLaunch* launch;
  const Op* op;                        ///< an UnknownOp for launches of no operation
  std::uint32_t op_index;              ///< entry of OpTrace::ops, or Action::kNoCall
  Phase phase;                         ///< other for launches of no operation
  double times;                        ///< it runs in the step
  std::uint16_t module;                ///< of OpTrace::modules; 0 for launches of no operation
  const TokenLaunch* token = nullptr;  ///< what it stands for; null where it stands for itself
};

/// In stream order. The pointers are those of `program` and its trace.
std::vector<LaunchedKernel> launched_kernels(const StepProgram& program);

}  // namespace ridgeline
