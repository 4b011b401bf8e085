// The keys of hw/NAME.yaml: which field each fills and what values make sense.
#pragma once

#include "sim/hardware/field_reader.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

/// Reads all fields of `root` into `gpu`, with a row a field in `rows`, or in `assumed` where the file does not say it
/// (both may be null). Throws config::ConfigError, also for values that contradict each other.
void read_gpu(const config::Value& root, Gpu& gpu, std::vector<SheetRow>* rows,
              std::vector<SheetRow>* assumed = nullptr);

}  // namespace ridgeline
