// Experts of a program: the router, the feed-forward parts and the shared one of a generic transformer's layer.
#pragma once

#include "sim/workload/networks/program_modules.h"
#include "sim/workload/networks/program_network.h"

namespace ridgeline::networks {

class ExpertModule;

void make_experts(ProgramNetwork& n, const CallArguments& a, ProgramModule& m);
Tensor run_experts(ProgramNetwork& n, const CallArguments& a, const ProgramModule& m);

}  // namespace ridgeline::networks
