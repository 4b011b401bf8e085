// The keys of a scenario whose step was recorded: `trace`, `recorded_on`, and what of `training` can be said of it.
#pragma once

#include "sim/config/value.h"
#include "sim/scenario/descriptions.h"

namespace ridgeline {

/// Sets the scenario's recorded step, its precision, host and title; `host_given`: the scenario names a host, which
/// then stands for itself. Throws config::ConfigError for keys that only a described step has, and UserError as
/// trace::RecordingFile does.
void read_recorded(const config::Mapping& root, bool host_given, bool model_changed, Descriptions& known,
                   Scenario& scenario);

/// The software in hw/ that a recorded step ran with, where its toolkit is known and the GPU has it; else the default.
std::string recorded_software(const config::Mapping& root, Descriptions& known, const Gpu& gpu);

/// The GPU in hw/ of the recorded step that `root` names; empty for one that hw/ does not describe, and without a step.
std::string recorded_hardware(const config::Mapping& root, Descriptions& known);

}  // namespace ridgeline
