// The batch and the length of a question that names neither, and the words that say so.
#pragma once

#include <string>

#include "sim/scenario/scenario.h"

namespace ridgeline {

/// Tokens of a sequence where nobody says how many: 1024, or as many as the network has positions for.
std::int64_t usual_length(const ModelDescription& model);

/// Adds a micro-batch of 1 and the usual length to a question of flags alone that trains a network and leaves them out.
void assume_sizes(ScenarioSource& source);

/// "1 x 1024 tokens", "batch 1", "1024 tokens": sizes that assume_sizes added; empty where it added none.
std::string assumed_sizes(const Scenario& scenario);

}  // namespace ridgeline
