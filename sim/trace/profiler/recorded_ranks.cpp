#include "sim/trace/profiler/recorded_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

/// Where in the file the events of a process stand.
struct RankPlaces {
  EventPlace first = std::numeric_limits<EventPlace>::max(), last = -1;
  bool operators = false, launches = false;
  void add(EventPlace place) { first = std::min(first, place), last = std::max(last, place); }
};

/// Of each rank, in the order of the file.
std::vector<RankPlaces> ranks_of(const ProfilerEvents& events) {
  std::map<std::int64_t, RankPlaces> processes;
  for (const OperatorEvent& event : events.operators)
    processes[event.process].add(event.place), processes[event.process].operators = true;
  for (const RuntimeEvent& event : events.runtime)
    processes[event.process].add(event.place), processes[event.process].launches = true;
  for (const HostEvent& event : events.annotations)
    if (const auto rank = processes.find(event.process); rank != processes.end()) rank->second.add(event.place);
  std::vector<RankPlaces> ranks;
  for (const auto& [process, places] : processes)
    if (places.operators && places.launches) ranks.push_back(places);
  std::sort(ranks.begin(), ranks.end(), [](const RankPlaces& a, const RankPlaces& b) { return a.first < b.first; });
  return ranks;
}

}  // namespace

void keep_first_rank(ProfilerEvents& events, const std::string& path) {
  const std::vector<RankPlaces> ranks = ranks_of(events);
  if (ranks.size() < 2) return;
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (ranks[i - 1].last > ranks[i].first)
      throw UserError(fmt::format(
          "{}: the events of {} processes stand mixed, and nothing says whose a kernel is: replay the trace "
          "of one rank",
          path, ranks.size()));
  events.ranks = ranks.size();
  const auto keep = [&](auto& of_kind) {
    std::erase_if(of_kind, [&](const auto& event) { return event.place >= ranks[1].first; });
  };
  keep(events.operators), keep(events.runtime), keep(events.gpu), keep(events.syncs);
  keep(events.annotations), keep(events.overheads), keep(events.memory);
}

}  // namespace ridgeline::trace
