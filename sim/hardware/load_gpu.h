// hw/NAME.yaml to Gpu. The only way a Gpu comes into being outside tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/override.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/hardware_sheet.h"

namespace ridgeline {

/// Datasheet numbers and estimates by architecture alone, or with the file's `measured:` section over them.
enum class Numbers : unsigned char { measured, datasheet };

/// `name_or_path` is a name of hardware_names(), or a file (it has a '/' or ends in .yaml). Overrides have keys such as
/// "dram.bandwidth" and win over both sections. Throws config::ConfigError (a UserError) with the place of the mistake.
Gpu load_gpu(std::string_view name_or_path, const std::vector<config::Override>& overrides = {},
             Numbers numbers = Numbers::measured);

/// The same from YAML text; `name` stands for the file in messages.
Gpu gpu_from_yaml(std::string_view text, std::string_view name, const std::vector<config::Override>& overrides = {},
                  Numbers numbers = Numbers::measured);

/// Every value with its source, and what follows from them.
HardwareSheet load_hardware_sheet(std::string_view name_or_path, const std::vector<config::Override>& overrides = {},
                                  Numbers numbers = Numbers::measured);

/// The same from YAML text; `name` stands for the file in messages.
HardwareSheet hardware_sheet_from_yaml(std::string_view text, std::string_view name,
                                       Numbers numbers = Numbers::measured);

/// Shipped descriptions, sorted.
std::vector<std::string> hardware_names();

/// The file of a name or path; throws with the nearest name when there is none.
std::string hardware_file(std::string_view name_or_path);

}  // namespace ridgeline
