// The largest micro-batch that fits a device, found by running the memory of candidates.
//
// A step keeps the scenario's batch (micro_batch x gradient_accumulation) where it can: a smaller micro-batch is
// accumulated. Accumulating keeps gradients during the forward pass, so batches at and above the scenario's batch (one
// micro-batch a step) are searched apart from those below. In each part memory grows with the batch; the search
// interpolates between the memory of what fits and what does not, and checks that the next batches fail as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// One run of the search.
struct FitTrial {
  std::int64_t micro_batch = 0, gradient_accumulation = 1;
  bool fits = false;        ///< the predicted run does; MemoryPrediction::fits of the answer asks for more
  std::int64_t needed = 0;  ///< bytes of the device, had it room without end
};

struct FittingBatch {
  std::int64_t micro_batch = 0, gradient_accumulation = 1;
  Prediction prediction;
};

struct FitResult {
  std::string scenario, hardware;
  std::int64_t capacity = 0;
  std::int64_t asked_batch = 0;            ///< sequences of the scenario's step
  std::optional<FittingBatch> largest;     ///< empty: not even one sequence fits
  std::int64_t sure_micro_batch = 0;       ///< the largest that fits with the software's spread to spare; 0: none
  bool keeps_batch = true;                 ///< the step of `largest` has as many sequences as asked
  std::optional<FittingBatch> same_batch;  ///< where it has not: the largest micro-batch whose steps have
  /// The first batch that does not fit, and why; with nothing that fits, one sequence. Empty where the search ended at
  /// the most tokens a forward pass may have.
  std::int64_t failing_micro_batch = 0;
  std::optional<MemoryPrediction> failing;
  std::vector<std::string> would_fit;  ///< where nothing fits: changes that together make one sequence fit
  std::vector<FitTrial> trials;        ///< in the order of the search
  bool monotone = true;                ///< false: some batch failed and a larger one fitted
};

/// Throws UserError for a scenario that cannot run. `would_fit`: where nothing fits, changes are tried.
FitResult fit_batch(Session& session, const Scenario& scenario, std::string_view engine, bool would_fit = true);

}  // namespace ridgeline
