#include "sim/memory/token_memory.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "sim/allocator/settings.h"

namespace ridgeline {

TokenMemory::TokenMemory(const StepProgram& program)
    : loop_(*program.trace->tokens),
      kernels_(*program.token_kernels),
      storages_(program.storages.begin(), program.storages.end()),
      most_temporaries_(kernels_.slots) {
  for (std::size_t i = 0; i < kernels_.varying.size(); ++i) {
    std::size_t& most = most_temporaries_[i % kernels_.slots];
    most = std::max(most, kernels_.varying[i]->temporaries.size());
  }
  for (std::size_t step = 0; step < program.tokens.size(); ++step) {
    add_step(program, step);
    find_blocks(*program.trace, step);
  }
  find_small_requests();
}

void TokenMemory::add_step(const StepProgram& program, std::size_t step) {
  const OpTrace& trace = *program.trace;
  const TokenLoop::Place& place = loop_.places[step];
  Step& made = steps_.emplace_back();
  const std::vector<StorageId> before = births_in(trace, place.before), own = births_in(trace, place.body);
  // A token gives on what the next one asks of it; the first that is written out may have other births.
  for (std::size_t i = 0; i < std::min(before.size(), own.size()); ++i) made.births.emplace_back(before[i], own[i]);
  for (std::size_t i = 0; i < loop_.varying_births().size(); ++i)
    made.sized.push_back({own[loop_.varying_births()[i]], i, 0});

  std::unordered_map<std::uint32_t, std::uint32_t> slot_of;  // by call
  std::uint32_t call = 0;
  for (std::uint32_t i = place.body.begin; i < place.body.end; ++i)
    if (trace.records[i].kind == Record::Kind::op) slot_of[trace.records[i].index] = loop_.slots[call++];
  const std::vector<std::uint32_t>& varying = loop_.varying_slots();
  const StepRange body = program.tokens[step].body;
  std::uint32_t last_call = Action::kNoCall;
  for (std::uint32_t i = body.begin; i < body.end; ++i) {
    const Action& action = program.actions[i];
    const bool moves = action.kind == Action::Kind::allocate || action.kind == Action::Kind::free;
    if (moves && action.index < trace.storages.size()) made.actions.push_back(action);
    const bool of_call = action.call != Action::kNoCall &&
                         (action.kind == Action::Kind::launch || (moves && action.index >= trace.storages.size()));
    if (!of_call) continue;
    if (moves && program.storages[action.index].category == Category::workspaces) continue;  // made once
    const auto slot = std::lower_bound(varying.begin(), varying.end(), slot_of.at(action.call));
    if (slot == varying.end() || *slot != slot_of.at(action.call)) {
      if (moves) made.actions.push_back(action);
      continue;
    }
    if (std::exchange(last_call, action.call) == action.call) continue;
    const auto number = static_cast<std::size_t>(slot - varying.begin());
    const Call& of = trace.calls[action.call];
    const auto first = static_cast<StorageId>(storages_.size());
    const auto count = static_cast<std::uint32_t>(most_temporaries_[number]);
    for (std::uint32_t k = 0; k < count; ++k) {
      made.actions.push_back({Action::Kind::allocate, HostClass::other, 0, first + k, action.call});
      made.temporaries.push_back({first + k, number, k});
      storages_.push_back({0, Category::temporaries, of.layer, of.stream, of.module});
    }
    for (std::uint32_t k = count; k-- > 0;)
      made.actions.push_back({Action::Kind::free, HostClass::other, 0, first + k, action.call});
  }
}

namespace {

constexpr std::int64_t kMostReach = 4;

/// Compares blocks of a network: do they allocate and free alike?
class BlockComparison {
 public:
  explicit BlockComparison(std::span<const std::pair<StorageId, StorageId>> births) {
    for (const auto& [before, own] : births) own_of_[before] = own;
  }
  /// The next block, whose storages are born in it.
  void add(std::uint32_t number, std::span<const Action> actions) {
    for (std::uint32_t i = 0; i < actions.size(); ++i)
      if (actions[i].kind == Action::Kind::allocate) born_[actions[i].index] = {number, i};
  }
  /// The storage that an action of block `number` names: where it was born, by block and place; the kinds of names
  /// differ.
  struct Name {
    std::int64_t back = -1, place = -1;
    bool of_token_before = false;
    bool operator==(const Name&) const = default;
  };
  [[nodiscard]] Name name(std::uint32_t number, StorageId storage) const {
    const auto own = own_of_.find(storage);
    const auto born = born_.find(own != own_of_.end() ? own->second : storage);
    if (born == born_.end()) return {};
    return {static_cast<std::int64_t>(number) - born->second.block, born->second.place, own != own_of_.end()};
  }

 private:
  struct Born {
    std::uint32_t block = 0, place = 0;
  };
  std::unordered_map<StorageId, StorageId> own_of_;
  std::unordered_map<StorageId, Born> born_;
};

}  // namespace

void TokenMemory::find_blocks(const OpTrace& trace, std::size_t step) {
  Step& made = steps_[step];
  const std::span<const Action> actions = made.actions;
  std::int16_t layer = -1;
  for (std::uint32_t i = 0; i < actions.size(); ++i) {
    const std::int16_t now = actions[i].call == Action::kNoCall ? std::int16_t{-1} : trace.calls[actions[i].call].layer;
    if (now == layer) continue;
    if (layer >= 0 && !made.blocks.empty() && made.blocks.back().end == 0) made.blocks.back().end = i;
    layer = now;
    if (now >= 0) made.blocks.push_back({i, 0, false});
  }
  if (!made.blocks.empty() && made.blocks.back().end == 0)
    made.blocks.back().end = static_cast<std::uint32_t>(actions.size());

  // Sizes that change with the token, by what they are: temporaries after births.
  std::unordered_map<StorageId, std::uint64_t> varies;
  for (const Sized& one : made.sized) {
    std::size_t first = 0;
    while (!loop_.same_births(first, one.varying)) ++first;
    varies[one.storage] = first << 1 | 1;
  }
  for (const Sized& one : made.temporaries) varies[one.storage] = one.varying << 20 | one.number << 1;
  const auto same_size = [&](StorageId a, StorageId b) {
    const auto one = varies.find(a), other = varies.find(b);
    if (one != varies.end() || other != varies.end())
      return one != varies.end() && other != varies.end() && one->second == other->second;
    return storages_[a].bytes == storages_[b].bytes;
  };
  BlockComparison names(made.births);
  for (std::uint32_t number = 0; number < made.blocks.size(); ++number) {
    Block& block = made.blocks[number];
    const std::span<const Action> own = actions.subspan(block.begin, block.end - block.begin);
    names.add(number, own);
    if (number == 0) continue;
    const Block& other = made.blocks[number - 1];
    block.as_before = other.end == block.begin && other.end - other.begin == own.size();
    for (std::uint32_t i = 0; i < own.size() && block.as_before; ++i) {
      const Action &one = actions[other.begin + i], &now = own[i];
      const Storage &a = storages_[one.index], &b = storages_[now.index];
      const BlockComparison::Name before = names.name(number - 1, one.index), name = names.name(number, now.index);
      block.as_before = one.kind == now.kind && a.category == b.category && a.stream == b.stream &&
                        same_size(one.index, now.index) && before == name && name.back >= 0 && name.back <= kMostReach;
      if (block.as_before) made.reach = std::max(made.reach, static_cast<std::size_t>(name.back));
    }
  }
}

std::int64_t TokenMemory::temporary(std::int64_t token, std::size_t slot, std::size_t number) const {
  const std::vector<std::int64_t>& all = kernels_.of(token, slot).temporaries;
  std::size_t at = 0;  // those of no bytes are not allocated
  for (const std::int64_t bytes : all)
    if (bytes > 0 && at++ == number) return bytes;
  return 0;
}

void TokenMemory::begin(std::int64_t token, std::size_t step) {
  for (const Sized& one : steps_[step].sized)
    storages_[one.storage].bytes = loop_.bytes(one.varying, loop_.first + token);
  for (const Sized& one : steps_[step].temporaries)
    storages_[one.storage].bytes = temporary(token, one.varying, one.number);
}

void TokenMemory::find_small_requests() {
  small_.resize(static_cast<std::size_t>(loop_.tokens()));
  pools_.resize(small_.size());
  // Births of one size in all tokens stand for each other.
  std::vector<std::size_t> births;
  for (std::size_t i = 0; i < loop_.varying_births().size(); ++i) {
    const bool known =
        std::any_of(births.begin(), births.end(), [&](std::size_t other) { return loop_.same_births(i, other); });
    if (!known) births.push_back(i);
  }
  for (std::int64_t token = 0; token < loop_.tokens(); ++token) {
    std::uint64_t hash = 0;
    const auto add = [&](std::int64_t bytes) {
      const std::int64_t rounded = (bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
      hash = (hash ^ static_cast<std::uint64_t>(std::min(rounded, kLargestSmall + kMinBlock))) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    };
    std::uint64_t pools = 0;
    for (const std::size_t birth : births) {
      const std::int64_t bytes = loop_.bytes(birth, loop_.first + token);
      add(bytes);
      pools = pools * 0x100000001b3u + (bytes > kLargestSmall ? 2 : 1);
    }
    pools_[static_cast<std::size_t>(token)] = pools;
    for (std::size_t slot = 0; slot < kernels_.slots; ++slot)
      for (std::size_t k = 0; k < most_temporaries_[slot]; ++k) add(temporary(token, slot, k));
    small_[static_cast<std::size_t>(token)] = hash;
  }
}

}  // namespace ridgeline
