// Values that protocols 0 and 1 of pickle write as a line of text.
#pragma once

#include <string_view>

#include "sim/allocator/pickle.h"

namespace ridgeline {

/// The value of the opcode I, L, F, S or V with the rest of its line. Throws std::invalid_argument, saying what is
/// wrong.
PickleValue pickled_line(unsigned char opcode, std::string_view line);

}  // namespace ridgeline
