// What a candidate takes at least: closed forms of its memory, its arithmetic, its optimizer and its communication, and
// the kernels of one micro-batch, which all candidates of one micro-batch run.
//
// Memory is that of the rank with the average share of the network, which no fullest rank is below:
//
//   weights, the optimizer's states and buckets of gradients (a share where they are sharded)
//   + the larger of gradients and activations (both, where micro-batches are added up): inputs of its blocks, or what
//     their matrix products keep, of the micro-batches that it holds at once
//
// Time is the largest of: FLOPs over the peak, with the pipeline's fill and drain; the micro-step (what one micro-batch
// takes on ranks of one tensor parallel group alone), as often as the busiest stage runs it, less kMicroStepMargin;
// gradients through the links. The optimizer's bytes over the DRAM's rate are added to the first two.
// Tested against predictions by tests/study/plan_test.cpp.
#pragma once

#include <cstdint>

#include "sim/answer/session.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

/// Kernels of a micro-batch alone find other things in the L2 than those of a step, and hosts run ahead.
inline constexpr double kMicroStepMargin = 0.05;

/// Bytes of the fullest device; the scenario trains on a cluster.
std::int64_t least_memory(const Scenario& scenario);

/// `micro_step`: of micro_step_of(scenario); 0: not known.
Seconds least_time(const Scenario& scenario, Seconds micro_step);

/// One micro-batch on one tensor parallel group, without optimizer and without other ranks: equal for scenarios whose
/// micro-steps are.
Scenario micro_step_of(const Scenario& scenario);
/// Of its forward and backward pass. 0 where it cannot run.
Seconds time_of_micro_step(Session& session, const Scenario& micro_step, std::string_view engine);

}  // namespace ridgeline
