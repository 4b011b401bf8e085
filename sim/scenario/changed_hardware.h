// What-if hardware: how a GPU that overrides changed is used.
//
// Kernels are chosen by rules that were read off existing chips; on a chip that does not exist they may choose worse
// than before. So a changed chip is given the fastest of three: the kernels chosen for it anew; those that the chip of
// the file runs; those on no more SMs than the chip of the file has, the others idle (an uneven last wave, or a cache
// that more rows at a time overflow, can make all SMs the slower way). More of a resource is then never slower than the
// chip of the file, whatever the kernel. Tested by tests/study/more_is_never_slower_test.cpp.
#pragma once

#include <string_view>

#include "sim/scenario/scenario.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

/// The scenario as it runs fastest; itself where the hardware is as its file has it. Its GPU may have fewer SMs.
Scenario best_use(const Scenario& scenario, std::string_view engine);
/// The same with the scenario's own trace.
Scenario best_use(const Scenario& scenario, const OpTrace& trace, std::string_view engine);

}  // namespace ridgeline
