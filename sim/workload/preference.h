// Training on pairs of answers: direct preference optimization (DPO), as DPOTrainer of TRL runs it.
#pragma once

#include <cstdint>

namespace ridgeline {

/// The source of the log-probabilities that the trained network's are compared with.
enum class ReferenceModel : std::uint8_t {
  resident,     ///< a frozen copy of the network beside it; under adapters the network without them
  precomputed,  ///< read with the batch (precompute_ref_log_probs)
};

/// A micro-batch is pairs: the chosen sequences, then as many rejected ones.
struct PreferenceDescription {
  ReferenceModel reference = ReferenceModel::resident;
  bool operator==(const PreferenceDescription&) const = default;
};

}  // namespace ridgeline
