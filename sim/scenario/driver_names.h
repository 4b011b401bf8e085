// What NVIDIA's driver calls the GPUs that hw/ describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ridgeline {

/// The GPU in hw/ whose driver calls it `name` ("NVIDIA A100-SXM4-40GB", "Tesla V100-SXM2-16GB"); of those that share a
/// name the one whose memory is nearest to `memory` bytes (0: the smaller). Empty for one that hw/ does not describe.
std::string hardware_of_driver_name(std::string_view name, std::int64_t memory);

}  // namespace ridgeline
