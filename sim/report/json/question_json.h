// The question of an answer, so that the answer can be cited: what was asked, of which files, by which tool.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/scenario/scenario.h"

namespace ridgeline {

/// The version of the keys that JSON outputs have; docs/json.md describes it.
inline constexpr const char* kJsonSchema = "ridgeline/1";

/// scenario (as written, with what was changed in it), changes, engine, what it resolves to, and the files it was read
/// from with a hash of each. Null for a scenario that was not read.
nlohmann::ordered_json question_json(const Scenario& scenario, const std::string& engine);

/// A tree of YAML as JSON would write it.
nlohmann::ordered_json tree_json(const config::Node& node);

/// What the scenario says was measured; null where it says nothing.
nlohmann::ordered_json measured_json(const Scenario& scenario);

}  // namespace ridgeline
