#include "sim/timeline/token_stretches.h"

#include <unordered_map>
#include <utility>

namespace ridgeline {
namespace {

std::uint32_t last_cut(const TokenLaunches::Places& places, const StretchesOfShape::Cuts& cuts) {
  auto at = static_cast<std::uint32_t>(places.size());
  while (at > 0 && !cuts(places[at - 1])) --at;
  return at - 1;
}
std::uint32_t next_cut(const TokenLaunches::Places& places, std::uint32_t from, const StretchesOfShape::Cuts& cuts) {
  while (from + 1 < places.size() && !cuts(places[from])) ++from;
  return from;
}

}  // namespace

StretchesOfShape::StretchesOfShape(const TokenLaunches& launches, std::size_t shape, std::size_t before,
                                   const Cuts& cuts)
    : launches_(launches), shape_(shape), before_(before) {
  const TokenLaunches::Places& places = launches.places(shape);
  kernel_of_.resize(places.size());
  std::uint32_t last = last_cut(launches.places(before), cuts);
  add(last, static_cast<std::uint32_t>(launches.places(before).size()), true, 0, next_cut(places, 0, cuts));
  for (std::uint32_t begin = next_cut(places, 0, cuts); begin + 1 < places.size();) {
    const std::uint32_t end = next_cut(places, begin + 1, cuts);
    add(0, 0, false, begin, end);
    begin = end;
  }
}

/// Places [old_begin, old_end) of the token before, then [begin, end] of this one.
void StretchesOfShape::add(std::uint32_t old_begin, std::uint32_t old_end, bool with_old, std::uint32_t begin,
                           std::uint32_t end) {
  constexpr std::int64_t kToken = 5;  // any, of which names are taken
  Stretch stretch;
  std::unordered_map<StorageId, StorageId> numbers;
  std::vector<std::uint64_t> key;
  std::vector<Operand> operands;
  const auto visit = [&](std::size_t shape, std::uint32_t at, bool old) {
    const TokenLaunches::Place& place = launches_.places(shape)[at];
    launches_.operands(place, old ? kToken - 1 : kToken, operands);
    key.push_back(place.varying == TokenLaunches::kFixed
                      ? reinterpret_cast<std::uintptr_t>(place.fixed)
                      : std::uint64_t{place.varying} << 32 | place.number << 1 | (old ? 1U : 0U));
    for (Operand& operand : operands) {
      operand.storage = numbers.try_emplace(operand.storage, static_cast<StorageId>(numbers.size())).first->second;
      key.push_back(operand.storage);
    }
    stretch.varies = stretch.varies || place.varying != TokenLaunches::kFixed;
    stretch.visited.push_back({at, old, operands});
  };
  if (with_old) {
    for (std::uint32_t at = old_begin; at < old_end; ++at) visit(before_, at, true);
    stretch.first = stretch.visited.size();
    for (std::uint32_t at = begin; at <= end; ++at) visit(shape_, at, false);
  } else {
    for (std::uint32_t at = begin; at <= end; ++at) visit(shape_, at, false);
    stretch.first = 1;
  }
  key.push_back(stretch.first);
  stretch.storages = numbers.size();
  const std::size_t asked = stretch.visited.size() - stretch.first;
  const auto [entry, fresh] = known_.try_emplace(std::move(key), kernels_);
  for (std::uint32_t i = 0; i < asked; ++i) kernel_of_[stretch.visited[stretch.first + i].place] = entry->second + i;
  if (!fresh) return;
  stretch.kernel = kernels_;
  kernels_ += static_cast<std::uint32_t>(asked);
  stretches_.push_back(std::move(stretch));
}

}  // namespace ridgeline
