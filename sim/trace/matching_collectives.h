// Whether two ranks of one step exchange the same things in the same order: where they do not, both wait for good.
#pragma once

#include <string>

#include "sim/workload/op_trace.h"

namespace ridgeline::trace {

/// Compares the collectives of the last steps, group by group; transfers between stages of a pipeline, which differ,
/// are left out. Throws UserError that names both sequences where they part.
void check_collectives_match(const OpTrace& one, const std::string& name_of_one, const OpTrace& other,
                             const std::string& name_of_other);

}  // namespace ridgeline::trace
