// What the last step of an op trace runs.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "sim/workload/op_trace.h"

namespace ridgeline::testing_support {

/// Operations of one kind in the last step, in their order.
template <typename Kind>
std::vector<Kind> last_step_of(const OpTrace& trace) {
  std::vector<Kind> result;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    if (const auto* one = std::get_if<Kind>(&trace.ops[trace.calls[record.index].op])) result.push_back(*one);
  }
  return result;
}

}  // namespace ridgeline::testing_support
