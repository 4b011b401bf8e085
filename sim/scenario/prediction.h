// The answer to a scenario: step time, memory, and the reasons. A plain value; reports print it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/timing/kernel_time.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

inline constexpr std::size_t kTimeClasses = 6, kLimiters = 6, kCategories = 7;

struct StepPrediction {
  Seconds time, low, high;  ///< low and high from measured residuals of comparable kernels and the host's spread
  Seconds host_time, gpu_busy;
  std::int64_t kernel_count = 0;  ///< kernels, memsets and copies
  double samples_per_s = 0, tokens_per_s = 0;
  double mfu = 0;                     ///< model FLOPs over the peak of the precision at the boost clock
  double sm_utilization = 0;          ///< share of SM time with a resident block
  double kernel_active_fraction = 0;  ///< what nvidia-smi calls utilisation
  bool validated = true;              ///< false where no residual of comparable kernels was ever measured
};

struct MemoryShortage {
  std::string op;
  Phase phase = Phase::other;
  std::int64_t layer = -1, missing_bytes = 0;
};

struct MemoryPrediction {
  std::int64_t peak_allocated = 0, peak_reserved = 0, context = 0, device_used = 0, capacity = 0;
  bool fits = true;
  std::array<std::int64_t, kCategories> at_peak{};  ///< by Category, at the moment of the allocated peak
  std::int64_t cached_unused = 0;                   ///< reserved at its peak but not allocated at the allocated peak
  std::string peak_op;
  Phase peak_phase = Phase::other;
  std::int64_t peak_layer = -1;
  std::optional<MemoryShortage> out_of_memory;
};

/// All launches of one kernel name.
struct KernelGroup {
  std::string name, shape;
  std::int64_t count = 0;
  Seconds time;
  Limiter limiter = Limiter::latency;
};

struct Advice {
  std::string change;  ///< as --set takes it
  Seconds time_saved;
  std::string why;
};

struct Prediction {
  std::string scenario, hardware, engine;
  StepPrediction step;
  MemoryPrediction memory;
  std::array<Seconds, kTimeClasses> time_by_class;  ///< kernels, by TimeClass
  Seconds idle;                                     ///< the GPU waits: gaps, launches, host
  std::array<Seconds, kLimiters> limited_by;        ///< by Limiter; launch includes idle
  std::vector<KernelGroup> kernels;                 ///< longest first
  std::vector<Advice> advice;                       ///< most time saved first
  std::vector<std::string> notes;                   ///< approximations and warnings
};

/// Engine "roofline" or "analytic". Throws UserError for an unknown engine or a scenario that cannot run (an attention
/// backend the GPU lacks).
Prediction predict(const Scenario& scenario, std::string_view engine);

/// Tries changes people make and keeps those that save time: each is predicted, none is assumed.
std::vector<Advice> find_advice(const Scenario& scenario, std::string_view engine, const Prediction& base);

}  // namespace ridgeline
