// Time and memory by module of the network: a line, a table of some depth, JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/answer/module_use.h"

namespace ridgeline {

/// "embeddings 1.9 ms, layers 93 ms (attention 40 ms, feed_forward 45 ms), head 20 ms": the largest two levels,
/// numbered modules as one.
std::string module_line(const ModuleUses& uses);
/// A row a module down to `depth` levels, with those that only a number tells apart as one row.
std::string module_table(const ModuleUses& uses, int depth, bool memory);
/// A list of every module down to `depth` levels, numbered ones each.
nlohmann::ordered_json module_json(const ModuleUses& uses, int depth, bool memory);

}  // namespace ridgeline
