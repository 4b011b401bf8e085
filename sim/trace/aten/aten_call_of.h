// The dispatcher call that runs an operation, as PyTorch's profiler would record it: the inverse of aten_map.
//
// Shapes are those the operation keeps: rows and columns where the program had more dimensions. map_aten gives the
// operation back, but for what a profiler's trace does not say (masks of attention) and
// for operations PyTorch has no single call for (`rope`).
#pragma once

#include <string>

#include "sim/trace/aten/aten_call.h"
#include "sim/workload/op.h"

namespace ridgeline::trace {

/// Without inputs for what no rule understands: kernels of torch.compile, operations without a name in PyTorch.
AtenCall aten_call_of(const Op& op);

/// "Input Dims", "Input type", "Input Strides" and "Concrete Inputs" of a call as PyTorch's profiler spells them, each
/// entry as text of JSON.
struct ProfiledArguments {
  std::string dims, types, strides, values;
};
/// The call of a `Resampling`.
AtenCall resampling_call(const Resampling& op);

ProfiledArguments profiled_arguments(const AtenCall& call);

/// "c10::BFloat16", "float", "long int".
std::string_view aten_name_of(DType type);

}  // namespace ridgeline::trace
