// Collectives by the generation of the links that they ran over, inside a node.
#include <map>
#include <memory>
#include <string>

#include "fit/law_problem.h"
#include "sim/network/collective_law.h"
#include "sim/study/validation/measured_collectives.h"

namespace ridgeline::fit {
namespace {

const std::vector<Place<NetworkConstants>> kPlaces{
#include "sim/network/tables/network_fields.inc"
};

/// What a law needs of a case, computed once.
struct TimedCollective {
  Collective collective;
  Placement placement;
  GroupLinks links;
  NcclChoice choice;
};

/// Links between GPUs alone, and long enough for the program around a published one not to count.
bool is_fitted_on(const MeasuredCollective& one, const GroupLinks& links) {
  if (one.placement.nodes > 1 || links.kind != CollectiveLimiter::links) return false;
  return !one.published || one.collective.bytes >= kLargeCollective;
}

}  // namespace

std::vector<Problem> network_problems(const Measurements& measurements, const Laboratory&) {
  const MeasuredCollectives measured = load_measured_collectives(measurements.index);
  std::map<std::string, std::pair<std::vector<Observation>, std::vector<TimedCollective>>> collected;
  for (const MeasuredCollective& one : measured.rows) {
    const Cluster& cluster = measured.clusters[static_cast<std::size_t>(one.cluster)].cluster;
    const bool pair = one.collective.kind == CollectiveKind::send_recv;
    const GroupLinks links = pair ? pair_links(cluster, one.placement) : group_links(cluster, one.placement);
    if (!is_fitted_on(one, links)) continue;
    auto& [cases, timed] = collected[std::string(name_of(cluster.architecture))];
    cases.push_back({one.time.value(), 0, one.held_out, one.shape, one.row});
    timed.push_back({one.collective, one.placement, links, nccl_choice(cluster, one.placement, links, one.collective)});
  }
  std::vector<Problem> result;
  for (auto& [name, both] : collected) {
    auto timed = std::make_shared<const std::vector<TimedCollective>>(std::move(both.second));
    result.push_back({name, std::move(both.first),
                      [timed](const Values& values, std::span<const std::size_t> which, std::span<double> seconds) {
                        const NetworkConstants constants = constants_from(kPlaces, values);
                        for (std::size_t i = 0; i < which.size(); ++i) {
                          const TimedCollective& one = (*timed)[which[i]];
                          const LawTime law =
                              collective_law(one.collective, one.placement, one.links, one.choice, constants);
                          seconds[i] = law.time.value() + constants.call_us * 1e-6;
                        }
                      }});
  }
  return result;
}

}  // namespace ridgeline::fit
