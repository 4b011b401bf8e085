// How fast the host of a measured step was, read from the parts of it that the script timed on an empty device.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/session.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

/// What a reading of a host's speed says of its scale, which lies where scales of hosts do.
struct LikelyScale {
  double scale = 1.0;
  double spread = 0.0;  ///< nine in ten lie within this share of it
};

/// `reading`: a scale as clipping and optimizer say it. `host` says between which scales hosts were seen.
LikelyScale likely_scale(double reading, const Host& host);

/// The scale that `parts_ms` (host_parts_ms of a row) asks for: milliseconds of clipping, optimizer and zeroing over
/// what they cost a host of scale 1. Forward and backward pass say nothing here. Nor does the optimizer where the loss
/// is scaled: it waits for the GPU to say whether a gradient is infinite.
double scale_of_lists(Session& session, const Scenario& scenario, const nlohmann::json& parts_ms);

}  // namespace ridgeline
