// Keys of models that are programs: the sizes of the programs that are shipped.
#pragma once

#include <vector>

#include "sim/report/schema/input_keys.h"

namespace ridgeline {

/// `program` and every size, each with the type of its default.
std::vector<InputKey> keys_of_programs();

}  // namespace ridgeline
