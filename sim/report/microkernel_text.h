// Measured microkernels beside what the engines say of them, as a page: tables and small plots in text.
#pragma once

#include <string>

#include "sim/hardware/gpu.h"
#include "sim/study/probe_result.h"

namespace ridgeline {

/// Markdown. One section a described curve; roofline and analytic in columns; curves without a description are named.
std::string microkernel_markdown(const ProbeResult& measured, const Gpu& gpu);

}  // namespace ridgeline
