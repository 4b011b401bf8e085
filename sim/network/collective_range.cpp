#include "sim/network/collective_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/network/tables/collective_range.inc"

namespace ridgeline {
namespace {

namespace range_table = collective_range_table;

constexpr double kLeast = 0.25;        // of a prediction
constexpr double kNotValidated = 3.0;  // times as wide where nothing was compared
constexpr double kOtherHost = 2.0;  // over PCIe, of which one machine was: that description's errors are large already

/// Short, middle, long.
using BySize = std::array<CollectiveRange, 3>;
constexpr BySize kVolta{range_table::volta_short, range_table::volta_middle, range_table::volta_long};
constexpr BySize kAmpere{range_table::ampere_short, range_table::ampere_middle, range_table::ampere_long};
constexpr BySize kHopper{range_table::hopper_short, range_table::hopper_middle, range_table::hopper_long};
constexpr BySize kBlackwell{range_table::blackwell_short, range_table::blackwell_middle, range_table::blackwell_long};
constexpr BySize kPcie{range_table::pcie_short, range_table::pcie_middle, range_table::pcie_long};

const BySize& by_size(Architecture architecture, CollectiveLimiter links) {
  if (links != CollectiveLimiter::links) return kPcie;
  switch (architecture) {
    case Architecture::volta:
    case Architecture::turing: return kVolta;
    case Architecture::ampere:
    case Architecture::ada: return kAmpere;
    case Architecture::blackwell: return kBlackwell;
    case Architecture::hopper: break;
  }
  return kHopper;
}

double flag_of(const CollectiveRange& measured, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier: return measured.reductions;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: return measured.gathers;
    case CollectiveKind::all_to_all: return measured.exchanges;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
    case CollectiveKind::peer_copy: break;
  }
  return measured.copies;
}

}  // namespace

const CollectiveRange& measured_range(Architecture architecture, CollectiveLimiter links, std::int64_t bytes) {
  return by_size(architecture, links)[bytes <= kShortCollective ? 0 : bytes <= kMiddleCollective ? 1 : 2];
}

std::string not_among(const CollectiveRange& measured, const Collective& collective, int ranks) {
  if (measured.ranks_from == 0.0) return "no collective of this size over such links was compared";
  if (flag_of(measured, collective.kind) == 0.0)
    return fmt::format("no {} of this size over such links was compared", name_of(collective.kind));
  if (ranks < measured.ranks_from || ranks > measured.ranks_to)
    return fmt::format("no collective of {} than {:.0f} GPUs of a node was compared",
                       ranks > measured.ranks_to ? "more" : "fewer",
                       ranks > measured.ranks_to ? measured.ranks_to : measured.ranks_from);
  return "";
}

CollectiveRange collective_range(Architecture architecture, CollectiveLimiter links, const Collective& collective,
                                 const Placement& placement, bool validated) {
  CollectiveRange range =
      placement.nodes > 1 ? range_table::nodes : measured_range(architecture, links, collective.bytes);
  if (range.ranks_from == 0.0 && placement.nodes == 1)  // of the same links, the sizes that were measured
    range = by_size(architecture, links)[1];
  if (collective.kind == CollectiveKind::all_to_all || collective.kind == CollectiveKind::send_recv) {
    range.low = range.pair_low;
    range.high = range.pair_high;
  }
  if (validated) return range;
  const bool pcie = placement.nodes == 1 && links != CollectiveLimiter::links;
  const double wider = pcie ? kOtherHost : kNotValidated;
  range.low = std::max(kLeast, 1.0 - (1.0 - range.low) * wider);
  range.high = 1.0 + (range.high - 1.0) * wider;
  return range;
}

}  // namespace ridgeline
