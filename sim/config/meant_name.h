// The known name that was meant, when one is near enough to be worth saying.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units/nearest_name.h"

namespace ridgeline::config {

/// nearest_name, or nothing when more than half of its letters would have to change.
inline std::string meant_name(std::string_view given, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(given, known);
  if (nearest.empty() ||
      (!abbreviates(given, nearest) && edit_distance(in_small_letters(given), in_small_letters(nearest)) >
                                           std::max<std::size_t>(2, nearest.size() / 2)))
    return "";
  return nearest;
}

}  // namespace ridgeline::config
