// A tree of hw/NAME.yaml to Gpu, by the table of keys (keys.h).
#pragma once

#include <optional>
#include <vector>

#include "sim/config/override.h"
#include "sim/config/value.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/hardware_sheet.h"

namespace ridgeline {

/// Reads all fields of `root` into `gpu`, with a row a field in `rows`, or in `assumed` where the file does not say it
/// (both may be null). Throws one config::ConfigError that lists all that is missing, unknown or wrong, also values
/// that contradict each other.
void read_gpu(const config::Value& root, Gpu& gpu, std::vector<SheetRow>* rows,
              std::vector<SheetRow>* assumed = nullptr);

/// `described`, which was read without a mistake, with single fields changed: what read_gpu makes of its changed tree.
/// Nothing where that has to be asked: for lists, keys that are no field, mistakes.
std::optional<Gpu> changed_gpu(const Gpu& described, const std::vector<config::Override>& changes);

/// The value at a dotted key, or an absent one that stands where its section does.
config::Value value_at(const config::Value& root, std::string_view key);

}  // namespace ridgeline
