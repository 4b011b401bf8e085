// Stacks that do not exist, and precisions that a chip has no unit for: what a prediction must say of them.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

struct StackNotes {
  std::vector<std::string> notes;
  bool exists = true;  ///< false: nobody can run this, so nobody measured it
};

/// Of software without code for the chip, torch.compile where there is none, and libraries whose kernels are others
/// than those measured, unless a recording names them.
StackNotes notes_of_stack(const Scenario& scenario);

/// Types that the products and attention kernels of a trace ask for and the chip has no unit for, with what runs
/// instead.
std::vector<std::string> notes_of_units(const OpTrace& trace, const Gpu& gpu);

/// Libraries choose among one generation's kernels by the GPU's capability and their version: whether what a recording
/// names runs here too.
bool runs_recorded_library(const Scenario& scenario);

/// torch.compile leaves a graph as it is whose tensors are bf16 on a chip without bf16 units: Triton has no code for
/// them.
bool compiles(const Scenario& scenario);

}  // namespace ridgeline
