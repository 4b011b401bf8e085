// Measured kernels of which a recording does not say what they work on, carried over to another GPU.
//
// A kernel's name tells its class and, for matrix products, the number type. Beyond what every kernel costs, its time
// goes with what that class needs most on both GPUs: the peak of the type for matrix products, the DRAM's bandwidth for
// the rest. On the GPU of the recording that is the recorded time.
//
//   t = fixed' + (t_recorded - fixed) x peak / peak'        or bandwidth / bandwidth'
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/trace/profiler/read_profiler_trace.h"

namespace ridgeline {

/// Seconds on `target` of kernels measured on `recorded`.
double carried_seconds(const std::vector<trace::MeasuredKernel>& kernels, const Gpu& recorded, const Gpu& target);

/// Gives for such kernels the bytes of an operation without a rule that takes as long on `target`.
std::function<std::int64_t(const std::vector<trace::MeasuredKernel>&)> carried_bytes(const Gpu& recorded,
                                                                                     const Gpu& target,
                                                                                     const Software& software,
                                                                                     const std::string& engine);

/// Gives for copies over the host's link the bytes that the link of the GPU they were `recorded` on moves in that time.
std::function<std::int64_t(const std::vector<trace::MeasuredKernel>&)> link_bytes(const Gpu& recorded);

}  // namespace ridgeline
