// What NVIDIA's driver calls the GPUs that hw/ describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/trace/profiler/read_profiler_trace.h"

namespace ridgeline {

/// The GPU in hw/ whose driver calls it `name` ("NVIDIA A100-SXM4-40GB", "Tesla V100-SXM2-16GB"); of those that share a
/// name the one whose memory is nearest to `memory` bytes (0: the smaller). Empty for one that hw/ does not describe.
std::string hardware_of_driver_name(std::string_view name, std::int64_t memory);

/// The GPU in hw/ of which a recording tells: named so, and where the recording says how many SMs, how much memory and
/// which compute capability it has, with these. Empty for one that hw/ does not describe.
std::string hardware_of_recorded_gpu(const trace::RecordedGpu& gpu);

/// The GPU in hw/ whose SMs, memory and compute capability are nearest to those of a recording that says them; empty
/// for one that does not.
std::string nearest_hardware(const trace::RecordedGpu& gpu);

}  // namespace ridgeline
