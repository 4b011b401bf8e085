// The software profile that stands for a published row: the one nearest to the version of PyTorch that the row's source
// states.
#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

/// The profile of hw/software (of those called pytorch-X.Y) whose version is nearest to the one in `words`
/// ("PyTorch 2.3.0a0+40ec155e58.nv24.03", "torch 2.6.0+cu126", "...-pt1.9.0a0"): the fewest minor versions away,
/// of two as near the older, which holds nothing that came later. `otherwise` where the words state no version.
std::string software_stated_in(std::string_view words, std::string_view otherwise);

}  // namespace ridgeline
