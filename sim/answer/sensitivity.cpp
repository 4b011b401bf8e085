#include "sim/answer/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "sim/answer/resource_sensitivity.h"
#include "sim/answer/step_run.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

/// The step stays; the chip and the host under it change.
Seconds time_of(const StepRun& run, const Scenario& changed) {
  keep_budget("trying changes");
  if (run.pipeline() != nullptr) return StepRun(run.session(), changed, run.engine()).timeline().step;
  return step_time(run.trace(), changed, run.engine());
}

}  // namespace

Gpu with_more(const Gpu& gpu, const HardwareKey& key, double factor) {
  Gpu more = gpu;
  const double now = key.get(gpu);
  double value = factor * now;
  if (key.kind == KeyKind::integer) value = std::max(now + 1.0, std::round(value));
  key.set(more, std::min(value, key.range.high));
  return more;
}

std::string_view name_of(LinkResource resource) {
  constexpr std::array<std::string_view, kLinkResources.size()> kNames{"link_bandwidth", "network_bandwidth",
                                                                       "network_latency"};
  return kNames[static_cast<std::size_t>(resource)];
}
std::string_view title_of(LinkResource resource) {
  constexpr std::array<std::string_view, kLinkResources.size()> kTitles{
      "bandwidth of links between GPUs", "bandwidth of the network", "latency of the network"};
  return kTitles[static_cast<std::size_t>(resource)];
}

Cluster with_more(const Cluster& cluster, LinkResource resource, double factor) {
  Cluster more = cluster;
  switch (resource) {
    case LinkResource::link_bandwidth:
      for (BytesPerSecond* rate :
           {&more.links.rate, &more.pcie.rate, &more.pcie.host, &more.pcie.uplink, &more.pcie.socket})
        *rate = *rate * factor;
      break;
    case LinkResource::network_bandwidth: more.nics.rate = cluster.nics.rate * factor; break;
    case LinkResource::network_latency: more.nics.latency = cluster.nics.latency / factor; break;
  }
  return more;
}

Sensitivity resource_sensitivity(const StepRun& run, double factor) {
  const Scenario& scenario = run.scenario();
  Sensitivity result{run.timeline().step, {}, scenario.gpu.sm.count, 0, {}, {}};
  for (const Resource resource : kResources) {
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, resource, factor);
    changed.host = with_more(scenario.host, resource, factor);
    if (resource == Resource::sm_count) result.more_sms = changed.gpu.sm.count;
    result.note(resource, time_of(run, changed));
  }
  for (const LinkResource resource : kLinkResources) {
    if (!scenario.cluster || scenario.training.parallel.gpus() == 1) break;
    if (resource != LinkResource::link_bandwidth && scenario.cluster->nodes == 1) continue;
    Scenario changed = scenario;
    changed.cluster = with_more(*scenario.cluster, resource, factor);
    result.links.push_back({resource, result.time - time_of(run, changed)});
  }
  return result;
}

Sensitivity step_sensitivity(const StepRun& run, double factor) {
  const Scenario& scenario = run.scenario();
  Sensitivity result = resource_sensitivity(run, factor);
  for (const HardwareKey& key : hardware_keys()) {
    if (!key.is_number() || key.get(scenario.gpu) == 0.0) continue;
    Scenario changed = scenario;
    changed.gpu = with_more(scenario.gpu, key, factor);
    result.keys.push_back({&key, result.time - time_of(run, changed)});
  }
  return result;
}

}  // namespace ridgeline
