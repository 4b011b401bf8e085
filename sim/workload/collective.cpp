#include "sim/workload/collective.h"

#include "sim/workload/op_fields.h"

namespace ridgeline {

std::string_view name_of(CollectiveKind kind) { return word_of(kind); }
std::string_view name_of(GroupKind group) { return word_of(group); }

}  // namespace ridgeline
