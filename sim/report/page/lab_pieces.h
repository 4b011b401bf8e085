// Larger pieces that views of the lab ask for by name: the allocator's blocks, the board's power, what caches do.
// docs/json.md lists the keys.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/step_detail.h"

namespace ridgeline {

/// Blocks and segments of the allocator over the steady step, or up to where memory runs out; null where a recording
/// does not know its allocations.
nlohmann::ordered_json blocks_json(const StepRun& run);

/// Power and clock of each launch, in the order of a page's spans, and the energy of the step by class.
nlohmann::ordered_json power_json(const StepRun& run);

/// When each rank of a pipeline works on which pass ("2F0": the forward pass of stage 2, micro-batch 0), an entry a
/// rank.
nlohmann::ordered_json lanes_json(const PipelineRun& pipeline);

/// Bytes at each level, one entry a kernel and shape in the order of a page's groups: of all its launches.
nlohmann::ordered_json caches_json(const StepRun& run, const StepDetail& detail);

/// Entry `kind` of the detail's kinds, operand by operand.
nlohmann::ordered_json kernel_caches_json(const StepRun& run, const StepDetail& detail, std::uint32_t kind);

}  // namespace ridgeline
