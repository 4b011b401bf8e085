// The answer to a scenario: step time, memory, and the reasons. A plain value; reports print it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/kernel_class.h"
#include "sim/scenario/memory_prediction.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/sensitivity.h"
#include "sim/timeline/power.h"
#include "sim/timeline/timeline.h"
#include "sim/timeline/utilization.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

inline constexpr std::size_t kTimeClasses = 6, kLimiters = 7;

/// What the host has to do with a step's time.
struct HostShare {
  std::string name;
  double scale = 1.0;
  bool known = true;     ///< false: the range of the step is that of the hosts seen
  Seconds exposed;       ///< the GPU waits for it
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

/// Where text is generated: the step is one call of generate().
struct Generation {
  Seconds first_token, per_token;  ///< prompt to first token; each of the others
  std::int64_t cache_bytes = 0;    ///< keys and values when the last token is chosen
};

struct Prediction {
  std::string scenario, hardware, engine;
  StepPrediction step;
  MemoryPrediction memory;
  std::array<Seconds, kTimeClasses> time_by_class;  ///< kernels, by TimeClass
  Seconds idle;                                     ///< the GPU waits: gaps, launches, host
  std::array<Seconds, kLimiters> limited_by;        ///< by Limiter; launch includes idle
  std::vector<KernelGroup> kernels;                 ///< longest first
  std::vector<Advice> advice;                       ///< most time saved first, then most memory
  std::vector<std::string> notes;                   ///< approximations and warnings
  std::optional<Generation> generation;
  std::optional<Sensitivity> sensitivity;  ///< where it was asked for (step_sensitivity)
};

/// The steady step of a scenario with everything it was made of.
struct StepRun {
  ScenarioProgram built;
  std::vector<KernelTime> times;  ///< one a launch of the steady step
  TimelineOptions options;
  Timeline timeline;
};
/// Throws as predict does.
StepRun run_step(const Scenario& scenario, std::string_view engine);

/// Engine "roofline", "analytic" or "simulate". Throws UserError for an unknown engine or a scenario that cannot run
/// (an attention backend the GPU lacks).
Prediction predict(const Scenario& scenario, std::string_view engine);

/// Time, range, shares and kernels of a program's steady step, whatever it was made from; without memory, rates and
/// advice. The timeline has one span a launch.
struct PredictedStep {
  Prediction prediction;
  Timeline timeline;
};
/// Time and energy alone, or also what they are made of: classes, limiters, kernels, utilisation, notes.
enum class Reasons : bool { no, yes };
PredictedStep predict_step(const StepProgram& program, const Gpu& gpu, const Host& host, std::string_view engine,
                           const TimelineOptions& options, Reasons reasons = Reasons::yes);

/// Time of the steady step alone, without memory, range and reasons. `trace` is the scenario's own.
Seconds step_time(const OpTrace& trace, const Scenario& scenario, std::string_view engine);

/// Tries changes people make and keeps those that save time, then those that save memory: each is predicted, none is
/// assumed. A change that does not fit the device is left out.
std::vector<Advice> find_advice(const Scenario& scenario, std::string_view engine, const Prediction& base);

}  // namespace ridgeline
