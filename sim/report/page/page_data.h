// What the page shows of one prediction, as JSON: the prediction itself, the device's roofs, each kernel and shape,
// each launch and the memory over the step. docs/json.md lists the keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/answer/prediction.h"
#include "sim/answer/step_detail.h"
#include "sim/hardware/gpu.h"

namespace ridgeline {

/// Which of the larger keys are there.
struct PagePieces {
  bool groups = true, spans = true, memory = true;
  bool blocks = false, power = false, caches = false;  ///< of the lab alone (lab_pieces.h)
};

/// Memory over the step is thinned to at most `most_points` moments; the fullest one stays.
nlohmann::ordered_json page_part(const std::string& title, const Prediction& prediction, const StepDetail& detail,
                                 const Gpu& gpu, std::size_t most_points = 1500);
/// The same without title and prediction, of the pieces that are asked for.
nlohmann::ordered_json page_pieces(const StepDetail& detail, const Gpu& gpu, const PagePieces& pieces,
                                   std::size_t most_points = 1500);

}  // namespace ridgeline
