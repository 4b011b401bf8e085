#include "sim/report/json/kernel_json.h"

#include <nlohmann/json.hpp>

#include "sim/report/json/sensitivity_json.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {

nlohmann::ordered_json profile_json(const KernelProfile& p) {
  nlohmann::ordered_json out{{"theoretical_occupancy", p.theoretical_occupancy},
                             {"achieved_occupancy", p.achieved_occupancy},
                             {"waves_per_sm", p.waves},
                             {"tail_share", p.tail_share},
                             {"pipe_active", p.pipe_active},
                             {"l1_read_bytes", p.l1_read_bytes},
                             {"l1_hit_rate", p.l1_hit_rate},
                             {"l2_read_bytes", p.l2_read_bytes},
                             {"l2_write_bytes", p.l2_write_bytes},
                             {"l2_hit_rate", p.l2_hit_rate},
                             {"l2_bandwidth", p.l2_bandwidth},
                             {"l2_throughput", p.l2_share},
                             {"dram_read_bytes", p.dram_read_bytes},
                             {"dram_write_bytes", p.dram_write_bytes},
                             {"dram_bandwidth", p.dram_bandwidth},
                             {"dram_throughput", p.dram_share}};
  auto& stalls = out["stalls"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kStalls; ++i) stalls[std::string(name_of(static_cast<Stall>(i)))] = p.stalls[i];
  return out;
}

nlohmann::ordered_json kernel_json(const KernelPrediction& prediction, const Range& range, const std::string& reason,
                                   const Sensitivity* sensitivity) {
  using nlohmann::ordered_json;
  ordered_json out;
  const double us = in_microseconds(prediction.time);
  out["time_us"] = us;
  out["low_us"] = us * range.low;
  out["high_us"] = us * range.high;
  if (!range.validated) {
    out["validated"] = false;
    if (!reason.empty()) out["estimated"] = reason;
  }
  if (prediction.times.empty()) return out;
  const KernelTime& main = prediction.times[prediction.longest];
  out["limiter"] = name_of(main.limited_by());
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
                       {"limiter", name_of(time.limited_by())},
                       {"grid", launch.grid},
                       {"block", launch.threads_per_block},
                       {"registers", launch.registers_per_thread},
                       {"shared_bytes", launch.shared_bytes_per_block}});
    if (time.profile) kernels.back()["profile"] = profile_json(*time.profile);
  }
  if (sensitivity) out["sensitivity"] = sensitivity_json(*sensitivity, "time_saved_us", 1e6);
  return out;
}

}  // namespace ridgeline
