// The answer to a scenario: step time, memory, and the reasons. A plain value; reports print it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/answer/kernel_class.h"
#include "sim/answer/memory_prediction.h"
#include "sim/answer/module_use.h"
#include "sim/answer/sensitivity.h"
#include "sim/scenario/scenario.h"
#include "sim/timeline/power.h"
#include "sim/timeline/timeline.h"
#include "sim/timeline/utilization.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/collective.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

inline constexpr std::size_t kTimeClasses = 6, kLimiters = 8;

/// What the host has to do with a step's time.
struct HostShare {
  std::string name;
  double scale = 1.0;
  bool known = true;                         ///< false: the range of the step is that of the hosts seen
  Seconds exposed;                           ///< the GPU waits for it
  double least_seen = 1.0, most_seen = 1.0;  ///< scales of the hosts seen; where `known` is false
  double tipping = 0.0;  ///< scale at which its work is as long as the step on a host that costs nothing
};

struct StepPrediction {
  Seconds time, low, high;  ///< low and high from measured residuals of comparable kernels and the host's spread
  Seconds host_time, gpu_busy;
  HostShare host;
  std::int64_t kernel_count = 0;  ///< kernels, memsets and copies
  double samples_per_s = 0, tokens_per_s = 0;
  double mfu = 0;                     ///< model FLOPs over the peak of the precision at the boost clock
  double sm_utilization = 0;          ///< share of SM time with a resident block
  double kernel_active_fraction = 0;  ///< what nvidia-smi calls utilisation
  Utilization utilization;            ///< the same two, and tensor cores and DRAM
  ExposedLatency latency;             ///< what of math, memory, kernels' latency and the host makes the step
  Watts power;                        ///< average draw of the board
  Hertz clock;                        ///< of the SMs while kernels run: the highest the power limit leaves, on average
  Seconds held;                       ///< what the power limit adds to the kernels
  EnergyRange energy;                 ///< of the board
  bool validated = true;              ///< false where no residual of comparable kernels was ever measured
};

/// All launches of one kernel for one op. Sums are over the launches.
struct KernelGroup {
  std::string name, shape;
  std::string op;  ///< as PyTorch calls what launches it
  KernelClass kernel_class = KernelClass::elementwise;
  std::int64_t count = 0;
  Seconds time;
  Limiter limiter = Limiter::latency;
  bool on_tensor_cores = false;
  double flops = 0;
  double read_bytes = 0, written_bytes = 0;  ///< of the operands, each byte once a launch
  double dram_bytes = 0;
  double l2_bytes = 0, l2_hit_bytes = 0;         ///< looked up in the L2, and found
  double occupied_s = 0;                         ///< time by share of the warps the SMs can hold
  double score_bytes = 0;                        ///< of written_bytes: matrices of attention scores
  std::shared_ptr<const KernelProfile> profile;  ///< what a simulation saw, of all launches (ProfileSum); else null
};

struct Advice {
  std::string change;                   ///< as --set takes it
  Seconds time_saved;                   ///< negative: what a change that saves memory costs
  std::int64_t memory_saved_bytes = 0;  ///< of the device; negative: what a faster step needs more
  std::string why;
};

/// An operation without a rule on the GPU, costed by its bytes.
struct ApproximatedOp {
  std::string name, note;     ///< as PyTorch calls it; the note that says so, shape included
  std::int64_t launches = 0;  ///< of a step
  Seconds time;
};

/// Where text is generated: the step is one call of generate().
struct Generation {
  Seconds first_token, per_token;  ///< prompt to first token; each of the others
  std::int64_t cache_bytes = 0;    ///< keys and values when the last token is chosen
};

/// All collectives of one kind and group of a step.
struct CommunicationUse {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::data;
  std::int64_t count = 0, bytes = 0;
  Seconds time, exposed;  ///< on their streams; of that, with no kernel beside them
};

/// Ranks that do the same.
struct RankClass {
  std::string name;
  std::int64_t ranks = 1;
  Seconds step;
  MemoryPrediction memory;
  std::int64_t communicator_bytes = 0;  ///< of its device's memory, part of MemoryPrediction::context
  Seconds busy, bubble;                 ///< of a pipeline's first such rank: its kernels, and waiting for other ranks
};

/// What several GPUs do together. `step` and `memory` of the prediction are those of the slowest and the fullest rank.
struct ParallelPrediction {
  std::int64_t gpus = 1;
  Seconds exposed, hidden;                      ///< communication with no kernel beside it, and the rest
  Seconds bubble;                               ///< a stage waits for others
  double efficiency = 0.0;                      ///< samples a second of one of the GPUs over those of a GPU alone
  std::vector<CommunicationUse> communication;  ///< longest first
  std::vector<RankClass> ranks;
  std::string limit;   ///< a sentence: what communication costs most
  double board = 1.0;  ///< energies that the slowest board needs over a typical one's (timing/board_spread.h)
};

struct Prediction {
  std::string scenario, hardware, engine;
  StepPrediction step;
  MemoryPrediction memory;
  std::array<Seconds, kTimeClasses> time_by_class;  ///< kernels, by TimeClass
  std::array<Seconds, kPhases> time_by_phase;       ///< kernels, by Phase
  ModuleUses modules;                               ///< of kernels; empty where the trace names none
  Seconds idle;                                     ///< the GPU waits: gaps, launches, host
  std::array<Seconds, kLimiters> limited_by;        ///< by Limiter; launch includes idle
  std::vector<KernelGroup> kernels;                 ///< longest first
  std::vector<Advice> advice;                       ///< most time saved first, then most memory
  std::vector<std::string> notes;                   ///< approximations and warnings
  std::vector<std::string> unread;                  ///< of `notes`: changed numbers that this step does not depend on
  std::vector<ApproximatedOp> approximated;         ///< each with a note among `notes`
  std::optional<Generation> generation;
  std::optional<ParallelPrediction> parallel;  ///< of several GPUs
  std::optional<Sensitivity> sensitivity;      ///< where it was asked for (step_sensitivity)
};

}  // namespace ridgeline
