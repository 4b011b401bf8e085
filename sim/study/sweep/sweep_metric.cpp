#include "sim/study/sweep/sweep_metric.h"

#include "sim/units/quantity.h"

namespace ridgeline {

const MetricInfo& info_of(Metric metric) {
  static constexpr std::array<MetricInfo, kMetrics> kInfo{
      {{"step_time", "step_time_s", "ms", 1e-3, false},
       {"step_low", "step_low_s", "ms", 1e-3, false},
       {"step_high", "step_high_s", "ms", 1e-3, false},
       {"samples_per_s", "samples_per_s", "/s", 1, true},
       {"tokens_per_s", "tokens_per_s", "/s", 1, true},
       {"memory", "memory_bytes", "GiB", kGiB, false},
       {"allocated", "peak_allocated_bytes", "GiB", kGiB, false},
       {"mfu", "mfu", "%", 0.01, true},
       {"gpu_active", "gpu_active", "%", 0.01, true},
       {"power", "power_w", "W", 1, false},
       {"energy", "energy_j", "J", 1, false},
       {"energy_per_sample", "energy_per_sample_j", "J", 1, false},
       {"price", "price_usd_per_hour", "$/h", 1, false},
       {"price_per_million", "price_usd_per_million", "$", 1, false},
       {"ridge", "ridge_flop_per_byte", "FLOP/B", 1, false}}};
  return kInfo[static_cast<std::size_t>(metric)];
}

}  // namespace ridgeline
