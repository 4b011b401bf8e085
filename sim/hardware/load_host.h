// hw/hosts/NAME.yaml to Host, hw/software/NAME.yaml to Software.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/override.h"
#include "sim/hardware/host.h"
#include "sim/hardware/software.h"

namespace ridgeline {

/// `class_names` are the classes of host work in the order the costs shall have (host_class_names() of the workload):
/// the file's section `classes` must name exactly these. A file may say `base: NAME` and give only what differs.
/// Override keys: "scale", "classes.linear". Throws config::ConfigError with the place of the mistake.
Host load_host(std::string_view name_or_path, std::span<const std::string_view> class_names,
               const std::vector<config::Override>& overrides = {});
std::vector<std::string> host_names();

/// Override keys are the fields' names. Throws config::ConfigError.
Software load_software(std::string_view name_or_path, const std::vector<config::Override>& overrides = {});
std::vector<std::string> software_names();

}  // namespace ridgeline
