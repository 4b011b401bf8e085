// Names that a key allows, each with what it stands for.
#pragma once

#include <string_view>
#include <utility>

namespace ridgeline {

template <typename Enum>
using Choice = std::pair<std::string_view, Enum>;

}  // namespace ridgeline
