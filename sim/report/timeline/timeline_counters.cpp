#include "sim/report/timeline/timeline_counters.h"

#include <algorithm>
#include <cmath>

#include "sim/report/text/names.h"
#include "sim/timeline/utilization.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

constexpr int kBins = 200;  // of the utilisation counters

class Counters {
 public:
  Counters(TraceEvents& events, const ChromeTraceInput& input, std::span<const HostSlice> slices, int device)
      : events_(events), in_(input), slices_(slices), device_(device) {}

  void count_memory() {
    const auto steady = in_.program.steady_step();
    if (steady.empty()) return;
    const auto first = static_cast<std::uint32_t>(steady.data() - in_.program.actions.data());
    std::size_t next_slice = 0, next_launch = 0, sample = 0;
    double now = in_.timeline.host_begin.value();
    for (std::uint32_t a = first; a < first + steady.size(); ++a) {
      while (next_slice < slices_.size() && slices_[next_slice].group.action <= a) {
        now = std::max(now, slices_[next_slice].begin);
        ++next_slice;
      }
      if (in_.program.actions[a].kind == Action::Kind::launch && !in_.cuda_graphs)
        now = std::max(now, in_.timeline.kernels[next_launch++].issued.value());
      for (; sample < in_.memory.size() && in_.memory[sample].action <= a; ++sample)
        events_.counter("memory (MiB)", device_, now,
                        {{"allocated", static_cast<double>(in_.memory[sample].allocated) / kMiB},
                         {"reserved", static_cast<double>(in_.memory[sample].reserved) / kMiB}});
    }
  }

  void count_utilization() {
    const auto bins = utilization_over_time(in_.program, in_.times, in_.timeline, in_.gpu, kBins);
    const double width = in_.timeline.step.value() / kBins;
    const auto percent = [](double share) { return std::round(1e4 * share) / 1e2; };
    for (std::size_t i = 0; i < bins.size(); ++i)
      events_.counter("utilisation (%)", device_, static_cast<double>(i) * width,
                      {{"kernel active", percent(bins[i].kernel_active)},
                       {"SM", percent(bins[i].sm)},
                       {"tensor", percent(bins[i].tensor)},
                       {"DRAM", percent(bins[i].dram)}});
    events_.counter("utilisation (%)", device_, in_.timeline.step.value(),
                    {{"kernel active", 0.0}, {"SM", 0.0}, {"tensor", 0.0}, {"DRAM", 0.0}});
  }

  /// What a simulation saw: over each kernel long enough to see anything in it, means of the others, nothing between
  /// kernels.
  void count_hierarchy() {
    constexpr const char* kName = "simulated hierarchy (%)";
    constexpr double kFinest = 2e-4;  // of the step
    const double finest = kFinest * in_.timeline.step.value();
    const auto percent = [](double share) { return std::round(1e4 * share) / 1e2; };
    const auto count = [&](double at, double occupancy, double hits, double dram) {
      events_.counter(
          kName, device_, at,
          {{"occupancy", percent(occupancy)}, {"L2 hit rate", percent(hits)}, {"DRAM bandwidth", percent(dram)}});
    };
    for (std::size_t i = 0; i < in_.times.size(); ++i) {
      const auto& profile = in_.times[i].profile;
      if (!profile) continue;
      const double start = in_.timeline.kernels[i].start.value(), end = in_.timeline.kernels[i].end.value();
      if (profile->samples.size() < 2 || end - start < 4.0 * finest) {
        count(start, profile->achieved_occupancy, profile->l2_hit_rate, profile->dram_share);
      } else {
        const double scale = (end - start) / profile->samples.back().end_s;  // the step's clock
        double at = start, begin = 0.0, length = 0.0, occupied = 0.0, hits = 0.0, moved = 0.0;
        for (const ProfileSample& sample : profile->samples) {
          const double seconds = sample.end_s - begin;
          begin = sample.end_s;
          length += seconds;
          occupied += seconds * sample.occupancy;
          hits += seconds * sample.l2_hit_rate;
          moved += seconds * (sample.dram_read + sample.dram_write);
          if (length * scale < finest && &sample != &profile->samples.back()) continue;
          if (length > 0.0)
            count(at, occupied / length, hits / length, moved / length / in_.gpu.dram.bandwidth.value());
          at = start + scale * sample.end_s;
          length = occupied = hits = moved = 0.0;
        }
      }
      count(end, 0.0, 0.0, 0.0);
    }
  }

 private:
  TraceEvents& events_;
  const ChromeTraceInput& in_;
  std::span<const HostSlice> slices_;
  int device_;
};

}  // namespace

void add_counters(TraceEvents& events, const ChromeTraceInput& input, std::span<const HostSlice> slices, int device) {
  Counters counters(events, input, slices, device);
  counters.count_memory();
  counters.count_utilization();
  counters.count_hierarchy();
}

}  // namespace ridgeline
