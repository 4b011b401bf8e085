// Collectives by the generation of the links that they ran over, inside a node; PCIe and the host's memory are classes.
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
  MeasuredCollective row;
};

/// Bridges and PCIe of which a single time was published say more of their machine than of NCCL.
bool is_fitted_on(const MeasuredCollective& one, const Cluster& cluster, const GroupLinks& links) {
  if (one.placement.nodes > 1 || !shows_the_links(one)) return false;
  // Pairs of the published ones were sent by an older NCCL: 64 to 512 KiB take 4 us longer than with 2.28.9, which is
  // that of PyTorch 2.11 and of our own rows.
  const bool pair = one.collective.kind == CollectiveKind::all_to_all;
  if (pair && one.timed == TimedAs::nccl_tests && cluster.architecture == Architecture::hopper) return false;
  return links.kind == CollectiveLimiter::links || !cluster.links.tree.empty();
}

}  // namespace

std::vector<Problem> network_problems(const Measurements& measurements, const Laboratory&) {
  const MeasuredCollectives measured = load_measured_collectives(measurements.index);
  std::map<std::string, std::pair<std::vector<Observation>, std::vector<TimedCollective>>> collected;
  for (const MeasuredCollective& one : measured.rows) {
    const Cluster& cluster = measured.clusters[static_cast<std::size_t>(one.cluster)].cluster;
    const bool pair = one.collective.kind == CollectiveKind::send_recv;
    const GroupLinks links = pair ? pair_links(cluster, one.placement) : group_links(cluster, one.placement);
    if (!is_fitted_on(one, cluster, links)) continue;
    const bool linked = links.kind == CollectiveLimiter::links;
    auto& [cases, timed] = collected[std::string(linked ? name_of(cluster.architecture) : name_of(links.kind))];
    cases.push_back({one.time.value(), 0, one.held_out, one.shape, one.row});
    timed.push_back(
        {one.collective, one.placement, links, nccl_choice(cluster, one.placement, links, one.collective), one});
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
                          seconds[i] = shown_time(one.row, law.time + microseconds(constants.loop_us),
                                                  law.time + microseconds(constants.call_us))
                                           .value();
                        }
                      }});
  }
  return result;
}

}  // namespace ridgeline::fit
