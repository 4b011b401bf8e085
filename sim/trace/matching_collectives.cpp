#include "sim/trace/matching_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include "sim/units/user_error.h"

namespace ridgeline::trace {
namespace {

using Sequence = std::vector<Collective>;

std::map<GroupKind, Sequence> sequences_of(const OpTrace& trace) {
  std::map<GroupKind, Sequence> result;
  if (trace.steps.empty()) return result;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const auto* collective = std::get_if<Collective>(&trace.ops[trace.calls[record.index].op]);
    if (collective == nullptr || joins_stages(collective->group) || collective->kind == CollectiveKind::send_recv ||
        collective->kind == CollectiveKind::peer_copy)
      continue;
    result[collective->group].push_back(*collective);
  }
  return result;
}

/// Those around the place where two sequences part, which `>` points at.
std::string around(const Sequence& sequence, std::size_t at) {
  constexpr std::size_t kBefore = 2, kBehind = 2;
  const std::size_t begin = at > kBefore ? at - kBefore : 0;
  std::string text = begin > 0 ? "…, " : "";
  for (std::size_t i = begin; i <= at + kBehind; ++i) {
    if (i == sequence.size()) {
      text += i == at ? "> nothing more" : "end";
      break;
    }
    const Collective& c = sequence[i];
    text += fmt::format("{}{} of {} bytes {} over {} ranks", i == at ? "> " : "", name_of(c.kind), c.bytes,
                        name_of(c.type), c.ranks);
    if (i < at + kBehind) text += ", ";
    else if (i + 1 < sequence.size()) text += ", …";
  }
  return text;
}

}  // namespace

void check_collectives_match(const OpTrace& one, const std::string& name_of_one, const OpTrace& other,
                             const std::string& name_of_other) {
  std::map<GroupKind, Sequence> first = sequences_of(one), second = sequences_of(other);
  for (const auto& [group, sequence] : second) first.try_emplace(group);
  for (const auto& [group, left] : first) {
    const Sequence& right = second[group];
    const std::size_t common = std::min(left.size(), right.size());
    std::size_t at = 0;
    while (at < common && left[at] == right[at]) ++at;
    if (at == left.size() && at == right.size()) continue;
    throw UserError(
        fmt::format("{0}: this rank and that of {1} wait for each other for good: collectives of group {2} differ at "
                    "number {3} of "
                    "the step\n  {0}: {4}\n  {1}: {5}",
                    name_of_one, name_of_other, name_of(group), at + 1, around(left, at), around(right, at)));
  }
}

}  // namespace ridgeline::trace
