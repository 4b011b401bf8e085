// What a candidate takes at least: closed forms of its memory, its arithmetic, its optimizer and its communication, and
// the kernels of one micro-batch, which all candidates of one micro-batch run.
//
// Memory is that of the rank with the average share of the network, which no fullest rank is below:
//
//   weights, the optimizer's states and buckets of gradients (a share where they are sharded)
//   + the larger of gradients and activations (both, where micro-batches are added up): the most of the
//     micro-step less kMicroStepMargin, of a pipeline those of its blocks for the micro-batches that it holds at once
//
// Time is the largest of: FLOPs over the peak, and the kernels of micro-batches, both with the pipeline's fill and
// drain; those of each rank of a pipeline, where the last has the head, with the way to and from it; micro-batches one
// after the other, of which hosts may be the limit, shared out over the stages; gradients through the links.
// Micro-batches are those of one tensor parallel group alone, on its own tokens alone where ranks share sequences, less
// kMicroStepMargin; what these exchange, and what their turns cost the host, are bounds too. The optimizer's bytes over
// the DRAM's rate are added to the first two. Tested against predictions by tests/study/plan_test.cpp.
#pragma once

#include <cstdint>

#include "sim/answer/session.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

/// Kernels of a micro-batch alone find other things in the L2 than those of a step, and hosts run ahead.
inline constexpr double kMicroStepMargin = 0.03;

/// Forward and backward pass without optimizer and without other ranks. All 0: not known.
struct MicroStep {
  Seconds kernels;                           ///< of one micro-batch on the GPU, without communication
  Seconds first, further;                    ///< a step of one micro-batch, and what each further one adds
  Seconds block, embedding, head;            ///< of `kernels`: one block's, and those before and behind all blocks
  double activations = 0.0, of_block = 0.0;  ///< the most bytes at once, and what one block adds to them
};

/// Bytes of the fullest device; the scenario trains on a cluster.
std::int64_t least_memory(const Scenario& scenario, const MicroStep& micro_step);

Seconds least_time(const Scenario& scenario, const MicroStep& micro_step);

/// One micro-batch on one tensor parallel group: equal for scenarios whose micro-steps are.
Scenario micro_step_of(const Scenario& scenario);
MicroStep time_micro_step(Session& session, const Scenario& micro_step, std::string_view engine);

}  // namespace ridgeline
