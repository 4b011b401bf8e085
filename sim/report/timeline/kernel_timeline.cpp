#include "sim/report/timeline/kernel_timeline.h"

#include <nlohmann/json.hpp>

#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

ordered_json counter(const char* name, double us, ordered_json values) {
  return {{"ph", "C"}, {"name", name}, {"pid", 0}, {"ts", us}, {"args", std::move(values)}};
}

}  // namespace

std::string kernel_timeline(const KernelPrediction& prediction) {
  ordered_json events = ordered_json::array();
  double start = 0.0;
  for (std::size_t i = 0; i < prediction.times.size(); ++i) {
    const KernelTime& time = prediction.times[i];
    const double us = in_microseconds(time.time);
    events.push_back({{"ph", "X"},
                      {"cat", "kernel"},
                      {"name", prediction.launches[i].name},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", start},
                      {"dur", us},
                      {"args", {{"limited by", name_of(time.limited_by())}, {"grid", prediction.launches[i].grid}}}});
    double at = start;
    if (time.profile) {
      for (const ProfileSample& sample : time.profile->samples) {
        events.push_back(counter("occupancy (%)", at,
                                 {{"warps", 100.0 * sample.occupancy}, {"SMs at work", 100.0 * sample.active_sms}}));
        events.push_back(counter("L2 hit rate (%)", at, {{"hits", 100.0 * sample.l2_hit_rate}}));
        events.push_back(
            counter("DRAM (GB/s)", at, {{"read", sample.dram_read * 1e-9}, {"write", sample.dram_write * 1e-9}}));
        at = start + 1e6 * sample.end_s;
      }
    }
    start += us;
  }
  for (const char* name : {"occupancy (%)", "L2 hit rate (%)", "DRAM (GB/s)"})
    events.push_back(counter(name, start, ordered_json::object()));
  return ordered_json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump();
}

}  // namespace ridgeline
