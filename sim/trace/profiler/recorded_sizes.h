// Sizes that calls do not say themselves and other operators of the recording do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/aten/aten_map.h"
#include "sim/trace/profiler/profiler_events.h"
#include "sim/trace/profiler/profiler_steps.h"

namespace ridgeline::trace {

/// What all operators of a recording say about its calls. `path` stands for the file in messages.
struct RecordedOperators {
  const ProfilerEvents& events;
  const std::vector<std::size_t>& parents;
  const std::string& path;
  [[nodiscard]] std::string place_of(std::size_t op) const;
  [[nodiscard]] const std::string& name_of(std::size_t op) const { return events.names[events.operators[op].name]; }
};

/// Elements of the trained parameters, each of which takes its gradient once a backward pass of the window; empty where
/// none does.
std::vector<std::int64_t> parameter_sizes(const RecordedOperators& recorded, const StepWindow& window,
                                          Defects& defects);

/// Lookups of tables in the recording, with the widths that gradients tell.
std::vector<TableLookup> table_lookups(const RecordedOperators& recorded);

/// Backward calls of concatenations by the number of the forward call, which has the same.
using JoinsBackward = std::unordered_map<std::int64_t, std::size_t>;
JoinsBackward joins_backward(const RecordedOperators& recorded);

/// Tensors that a concatenation without shapes joins (`op`, and what is known of its call): the gradients that the
/// backward node around it takes (of a split), or what an operator with a single tensor around it regroups, or by the
/// gradient of its result.
std::optional<TensorList> joined_parts(const RecordedOperators& recorded, const JoinsBackward& backward, std::size_t op,
                                       const AtenCall& call);

}  // namespace ridgeline::trace
