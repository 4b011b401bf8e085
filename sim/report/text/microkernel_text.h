// Measured microkernels beside what the engines say of them, as a page: errors at a glance, then curve over curve.
#pragma once

#include <string>
#include <vector>

#include "sim/study/microkernels/compared_curve.h"

namespace ridgeline {

/// Markdown within 100 columns. Errors of all evidence, then one section a described curve of the first: roofline,
/// analytic and simulate beside the measurement, and a small plot. Curves without a description are named.
std::string microkernel_markdown(const std::vector<MicrokernelEvidence>& evidence);

}  // namespace ridgeline
