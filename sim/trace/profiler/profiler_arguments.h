// The arguments of an operator as PyTorch's profiler records them: dimensions, types, strides and concrete values in
// lists of equal length.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/aten/aten_call.h"
#include "sim/trace/replayable.h"

namespace ridgeline::trace {

/// `json` is the event's "args". Tensors in lists have no type of their own in a trace: they get `type_in_lists`.
/// `place` is "file:line". Throws UserError for sizes that cannot be; what is missing is left empty.
/// "Storages" of an operator, which our own timelines have and PyTorch's do not: what `call` reads and writes.
void read_storages(const std::string& json, AtenCall& call);

std::vector<Argument> profiler_arguments(const std::string& json, DType type_in_lists, const std::string& place,
                                         Defects& defects);

/// Throws UserError where a size is negative or a tensor has more elements than any device could hold.
void check_sizes(const std::vector<std::int64_t>& sizes, const std::string& place);

/// "3", "2.5", "True" and "[1, 2]" as profilers print values; a word stays one; nothing from "".
Argument value_from_text(std::string_view text);

}  // namespace ridgeline::trace
