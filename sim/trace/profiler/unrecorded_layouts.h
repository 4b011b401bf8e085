// What a profiler did not record of a call and other events of the trace tell: the image a convolution gives, operands
// that lie apart, and copies whose time the host decides.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/aten/aten_call.h"
#include "sim/trace/profiler/profiler_events.h"

namespace ridgeline::trace {

/// Profilers before PyTorch 2.1 leave out strides and paddings: the image that a convolution gives is the next that an
/// operator of its thread takes, with its batch and channels. Nothing where numbers were recorded, for a backward pass
/// and for what is no convolution. `op` is the place of the call among `operators`; `place` names it in messages.
std::optional<AtenTensor> image_after(const std::vector<OperatorEvent>& operators, std::size_t op, const AtenCall& call,
                                      const std::string& place);

/// Whether strides are not recorded (`arguments` are those of the event) and a kernel computes where operands lie.
bool lies_apart(const std::string& arguments, const AtenCall& call);

/// How fast large copies between host and device are is a matter of the host: pinned or pageable memory, and who else
/// uses the link.
bool goes_over_host_link(const AtenCall& call);

}  // namespace ridgeline::trace
