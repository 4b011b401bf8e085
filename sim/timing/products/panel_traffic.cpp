#include "sim/timing/products/panel_traffic.h"

#include <algorithm>
#include <cmath>

#include "sim/timing/memory_bound/achieved_bandwidth.h"
#include "sim/timing/memory_bound/memory_bound_kernels.h"

namespace ridgeline {
namespace {

/// Answers of the L2 that a kernel waits for before its first result: parameters, code, data.
constexpr double kAnswersToStart = 3.0;

}  // namespace

double PanelFloor::most() const { return std::max({l2, dram, latency}); }

double load_latency(const Gpu& gpu, double cold, double hertz) {
  // A request to the DRAM has passed through the L2.
  const double l2 = gpu.l2.latency.value();
  const double dram = std::max(l2, gpu.dram.latency.value() * hertz);
  return l2 + cold * (dram - l2);
}

double reference_load_latency(double cold) {
  const double dram = kReferenceDramLatencySeconds * kReferenceClockHertz;
  return kReferenceL2LatencyCycles + cold * (dram - kReferenceL2LatencyCycles);
}

PanelFloor panel_floor(const PanelTraffic& traffic, const Gpu& gpu, double l2_bandwidth) {
  const AchievedBandwidth achieved = achieved_bandwidth(gpu);
  const double capacity = gpu.l2.replacement == L2Replacement::none ? 0.0 : gpu.l2.capacity.value();
  const auto gone = [&](double footprint) { return footprint > 0.0 ? std::exp(-capacity / footprint) : 0.0; };
  PanelFloor floor;
  const double again = std::max(0.0, traffic.asked - traffic.first), later = std::min(again, traffic.later);
  floor.refetched = (again - later) * gone(traffic.footprint) + later * gone(traffic.between);
  const double missed = traffic.cold + floor.refetched;
  const double cold = traffic.asked > 0.0 ? std::min(1.0, missed / traffic.asked) : 0.0;
  const double clock = gpu.clock.sustained.value();
  floor.latency_cycles = load_latency(gpu, cold, clock);
  const double first_cold = traffic.first > 0.0 ? std::min(1.0, traffic.cold / traffic.first) : 0.0;
  const double start =
      gpu.launch.kernel_fixed.value() +
      ((kAnswersToStart - 1.0) * gpu.l2.latency.value() + load_latency(gpu, first_cold, clock)) / clock;
  floor.l2 = start + traffic.asked / l2_bandwidth + traffic.written / achieved.l2_write;
  floor.dram = start + missed / (gpu.dram.bandwidth.value() * gpu.dram.read_efficiency) +
               traffic.written_out / achieved.dram_write;
  floor.latency = start + traffic.waits * floor.latency_cycles / clock;
  return floor;
}

}  // namespace ridgeline
