// Numbers as people read them: no exponents.
#pragma once

#include <string>

namespace ridgeline {

/// To the next whole number: "1,410".
std::string thousands(double value);

/// Four significant digits: "0.8531", "13.05", "6,683", "238,100".
std::string four_digits(double value);

}  // namespace ridgeline
