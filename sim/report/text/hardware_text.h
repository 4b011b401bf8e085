// Hardware descriptions for people and programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sim/hardware/gpu.h"
#include "sim/hardware/hardware_sheet.h"

namespace ridgeline {

/// One line a GPU: SMs, clock, peaks, memory, bandwidth.
std::string hardware_list(std::span<const Gpu> gpus);
/// Every value with its source, then what follows from them.
std::string hardware_text(const HardwareSheet& sheet);
nlohmann::ordered_json hardware_json(const HardwareSheet& sheet);
/// docs/hardware-keys.md: every key with meaning, allowed values and the laws that read it.
std::string hardware_keys_markdown();

}  // namespace ridgeline
