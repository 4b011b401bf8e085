// Arithmetic over named numbers: "(before - after) / before * 100", with min, max, floor, ceil, log2 and round.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ridgeline {

/// Throws UserError with the place in the text where it is no expression, or what `value_of` throws for a name.
double evaluate(std::string_view expression, const std::function<double(const std::string&)>& value_of);

}  // namespace ridgeline
