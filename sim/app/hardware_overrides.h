// --set of commands that take hardware alone: "hardware.dram.bandwidth=4 TB/s", or without "hardware.".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/config/override.h"

namespace ridgeline::app {

/// Keys as load_gpu takes them. Throws config::ConfigError for text that is no KEY=VALUE.
std::vector<config::Override> hardware_overrides(std::span<const std::string> sets);

}  // namespace ridgeline::app
