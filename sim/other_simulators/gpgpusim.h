// Options of GPGPU-Sim (Accel-Sim's gpgpusim.config) as facts of a machine.
#pragma once

#include <string_view>

#include "sim/other_simulators/machine_facts.h"

namespace ridgeline::other_simulators {

void add_gpgpusim(std::string_view text, MachineFacts& machine);

}  // namespace ridgeline::other_simulators
