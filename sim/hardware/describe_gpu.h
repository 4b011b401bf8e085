// The keys of hw/NAME.yaml: which field each fills and what values make sense.
#pragma once

#include "sim/hardware/field_reader.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

/// Reads all fields of `root` into `gpu`. Throws config::ConfigError, also for values that contradict each other.
void read_gpu(const config::Value& root, Gpu& gpu, std::vector<SheetRow>* rows);

}  // namespace ridgeline
