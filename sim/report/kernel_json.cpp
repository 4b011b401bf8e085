#include "sim/report/kernel_json.h"

#include <nlohmann/json.hpp>

#include "sim/report/sensitivity_report.h"

namespace ridgeline {

nlohmann::ordered_json kernel_json(const KernelPrediction& prediction, const Range& range,
                                   const Sensitivity* sensitivity) {
  using nlohmann::ordered_json;
  ordered_json out;
  const double us = in_microseconds(prediction.time);
  out["time_us"] = us;
  out["low_us"] = us * range.low;
  out["high_us"] = us * range.high;
  if (!range.validated) out["validated"] = false;
  if (prediction.times.empty()) return out;
  const KernelTime& main = prediction.times[prediction.longest];
  out["limiter"] = name_of(main.limiter);
  out["flops"] = prediction.flops;
  out["dram_read_bytes"] = prediction.dram_read_bytes;
  out["dram_write_bytes"] = prediction.dram_write_bytes;
  out["l2_hit_rate"] = prediction.l2_hit_rate;
  out["occupancy"] = main.occupancy;
  out["waves"] = main.waves;
  if (prediction.approximated) out["approximated"] = true;
  auto& kernels = out["kernels"] = ordered_json::array();
  for (std::size_t i = 0; i < prediction.launches.size(); ++i) {
    const KernelLaunch& launch = prediction.launches[i];
    const KernelTime& time = prediction.times[i];
    kernels.push_back({{"name", launch.name},
                       {"time_us", in_microseconds(time.time)},
                       {"limiter", name_of(time.limiter)},
                       {"grid", launch.grid},
                       {"block", launch.threads_per_block},
                       {"registers", launch.registers_per_thread},
                       {"shared_bytes", launch.shared_bytes_per_block}});
  }
  if (sensitivity) out["sensitivity"] = sensitivity_json(*sensitivity, "time_saved_us", 1e6);
  return out;
}

}  // namespace ridgeline
