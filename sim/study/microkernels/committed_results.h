// The probe results in the tree: an H200 on which the laws' constants were fitted, measured again twice on another
// board with points in between, and an H100 measured twice.
#pragma once

#include <filesystem>
#include <vector>

#include "sim/study/microkernels/compared_curve.h"

namespace ridgeline {

struct CommittedResults {
  explicit CommittedResults(const std::filesystem::path& results);  ///< hw/probe/results
  /// The H200's second run against its third, then the H100; `fitted` is the H200's first. Points into this object.
  [[nodiscard]] std::vector<MicrokernelEvidence> evidence() const;

  Gpu h200, h100;
  ProbeResult first, second, third, other, other_again;
};

}  // namespace ridgeline
