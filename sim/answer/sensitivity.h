// What a tenth more of each resource, and of each number of the chip, would give: the same laws over a GPU or host
// changed in one thing. Gains and losses are shown as they are.
//
// The libraries choose anew on the changed chip. Tested by tests/study/sensitivity_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/hardware/keys.h"
#include "sim/hardware/resource.h"
#include "sim/network/cluster.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {

class StepRun;

inline constexpr double kSensitivityFactor = 1.1;

/// A tenth more of one number of a hardware file.
struct KeyGain {
  const HardwareKey* key = nullptr;
  Seconds saved;  ///< negative: what it costs
};

/// What joins the GPUs of a cluster and could be faster.
enum class LinkResource : std::uint8_t {
  link_bandwidth,     ///< between the GPUs of a node: NVLink, PCIe, and the host's memory where bytes go through it
  network_bandwidth,  ///< of every NIC
  network_latency     ///< of a message between nodes: divided by the factor
};
inline constexpr std::array kLinkResources{LinkResource::link_bandwidth, LinkResource::network_bandwidth,
                                           LinkResource::network_latency};
/// "link_bandwidth" … as JSON spells it, and "links between GPUs" … as a table does.
std::string_view name_of(LinkResource resource);
std::string_view title_of(LinkResource resource);

struct LinkGain {
  LinkResource resource = LinkResource::link_bandwidth;
  Seconds saved;
};

struct Sensitivity {
  Seconds time;                                  ///< as it is
  std::array<Seconds, kResources.size()> saved;  ///< by Resource
  int sms = 0, more_sms = 0;                     ///< SMs come whole: 132 and 145

  std::vector<LinkGain> links;  ///< of training over several GPUs: those that it uses

  std::vector<KeyGain> keys;  ///< every number of the table that is not 0, in its order

  /// Remembers what a resource saves, `then` being the time with more of it.
  void note(Resource resource, Seconds then) { saved[static_cast<std::size_t>(resource)] = time - then; }
  [[nodiscard]] Seconds saved_by(Resource resource) const { return saved[static_cast<std::size_t>(resource)]; }
  /// Of the time as it is.
  [[nodiscard]] double share(Resource resource) const {
    return time.value() > 0.0 ? ratio(saved_by(resource), time) : 0.0;
  }
};

/// `gpu` with `factor` times one of its numbers: whole numbers by at least one, nothing beyond its range.
Gpu with_more(const Gpu& gpu, const HardwareKey& key, double factor);

/// `cluster` with `factor` times as much of what joins its GPUs.
Cluster with_more(const Cluster& cluster, LinkResource resource, double factor);

/// Of a whole training step: some 80 predictions without memory. Throws as StepRun does.
Sensitivity step_sensitivity(const StepRun& run, double factor = kSensitivityFactor);

}  // namespace ridgeline
