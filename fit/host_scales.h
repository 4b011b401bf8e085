// Scales of the hosts beside which steps were measured (hw/hosts): medians of what host-bound steps ask for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::fit {

struct HostScale {
  std::string host;                ///< file of hw/hosts that states it
  double stated = 0, asked = 0;    ///< in the file; the median of the steps, to three digits
  double least = 0, most = 0;      ///< quartiles of the steps
  std::vector<std::string> steps;  ///< their names
};

/// Of the default host (eager steps of h200 and h200/more), of the one beside the H100 (the third of its steps that
/// may be fitted on), and of the servers of vTrain's authors and of Megatron-LM's own tests (half of the published
/// steps each; the scale with the least mean absolute logarithm of predicted over measured time, so that `least` and
/// `most` are that scale too). Throws UserError where the measurements cannot be read.
std::vector<HostScale> host_scales(const std::filesystem::path& root);

}  // namespace ridgeline::fit
