// Recordings of further ranks of a step that was recorded.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace ridgeline {

/// Throws UserError where a rank exchanges anything else than that of the scenario's recording, or in another order:
/// both would wait for good (trace/matching_collectives.h).
void check_other_ranks(const Scenario& scenario, std::string_view engine, std::span<const std::string> recordings);

}  // namespace ridgeline
