#include "sim/memory/play_tokens.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/allocator/settings.h"
#include "sim/units/budget.h"

namespace ridgeline {
namespace {

class TokenPlayer {
 public:
  TokenPlayer(HeldMemory& held, TokenMemory& tokens) : held_(held), tokens_(tokens), kept_{held, 0} {}

  static bool is_small(std::int64_t bytes) { return bytes <= kLargestSmall; }
  /// Hash of all that decides where requests for small blocks go, and where those lie that were born in `actions`.
  [[nodiscard]] std::uint64_t small_state(std::span<const Action> actions) const {
    return with_births(held_.allocator.fingerprint(PoolKind::small), actions);
  }
  [[nodiscard]] std::uint64_t with_births(std::uint64_t hash, std::span<const Action> actions) const {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const BlockId block = held_.blocks[actions[i].index];
      if (actions[i].kind != Action::Kind::allocate || block == kNoBlock) continue;
      if (!is_small(tokens_.storages()[actions[i].index].bytes)) continue;
      hash = (hash ^ static_cast<std::uint64_t>(held_.allocator.address_of(block))) * 0x9e3779b97f4a7c15u ^ i;
      hash ^= hash >> 29;
    }
    return hash;
  }

  bool play_token(std::size_t step, std::int64_t token) {
    tokens_.begin(token, step);
    hand_on(tokens_.births(step));
    return held_.play({tokens_.actions(step), tokens_.storages(), held_.program.tokens[step].body.begin, true});
  }
  /// Storages of this token are those of the token before from here on.
  void hand_on(std::span<const std::pair<StorageId, StorageId>> births) {
    for (const auto& [before, own] : births) held_.blocks[before] = std::exchange(held_.blocks[own], kNoBlock);
  }

  bool play(std::size_t step) {
    own_of_.resize(tokens_.storages().size());
    std::iota(own_of_.begin(), own_of_.end(), StorageId{0});
    for (const auto& [before, own] : tokens_.births(step)) own_of_[before] = own;
    for (std::int64_t token = 0; token < tokens_.tokens();) {
      const std::uint64_t requests = tokens_.small_requests(token);
      std::int64_t alike = token + 1;
      while (alike < tokens_.tokens() && tokens_.small_requests(alike) == requests) ++alike;
      if (!play_alike(step, token, alike)) {
        if (!changed_at_) return false;
        token = *std::exchange(changed_at_, std::nullopt);
        if (!play_again(step, token)) return false;
        continue;
      }
      token = alike;
    }
    return true;
  }
  /// Runs tokens [kept_.token, token) and some behind them, and says where `token` is then.
  bool play_again(std::size_t step, std::int64_t& token) {
    static_cast<HeldState&>(held_) = kept_.state;
    const std::int64_t end = std::min(token + kTokensBetween, tokens_.tokens());
    for (token = kept_.token; token < end; ++token)
      if (!play_token(step, token)) return false;
    return true;
  }
  /// Nothing was passed over that would leave another state in front of `token`.
  void keep(std::int64_t token) {
    if (token - kept_.token < kTokensBetween) return;
    kept_.state = held_;
    kept_.token = token;
  }

  /// Tokens that ask for small blocks alike: until they find their pool as an earlier one did, and then those behind
  /// the last full period.
  bool play_alike(std::size_t step, std::int64_t token, std::int64_t end) {
    std::unordered_map<std::uint64_t, std::int64_t> seen;  // after which token
    keep(token);
    // Blocks that the token before leaves may be in the other pool.
    if (token == 0 || tokens_.pools(token) != tokens_.pools(token - 1)) {
      if (!play_token(step, token)) return false;
      if (++token == end) return true;
    }
    tokens_.begin(token, step);
    const LargeActions large = large_actions(step);
    for (bool passes = true; token < end;) {
      tokens_.begin(token, step);
      hand_on(tokens_.births(step));
      if (!play_blocks(step, large)) return fail_at(token);
      const std::int64_t played = token++;
      if (!passes || end - token < 2) continue;
      const auto [entry, fresh] = seen.try_emplace(small_state(tokens_.actions(step)), played);
      if (fresh) continue;
      const std::int64_t period = played - entry->second, passed = (end - token) / period * period;
      for (const std::int64_t begin = token, until = token + passed; token < until; ++token) {
        if ((token - begin) % period == 0) keep(token);
        tokens_.begin(token, step);
        hand_on(large.births);
        if (!play_large(large, 0, large.actions.size(), {})) return fail_at(token);
      }
      passes = false;
    }
    return true;
  }

  /// Handles a token in which memory ran out, or had to be given back.
  bool fail_at(std::int64_t token) {
    if (std::exchange(changed_, false)) changed_at_ = token;
    return false;
  }

  /// Requests of a token to the pool of large blocks, and what its small ones come to meanwhile.
  struct LargeActions {
    /// The token's small blocks.
    struct Small {
      std::int64_t held = 0;
      BytesByCategory by_category{};
    };
    /// At their most between two requests for large ones.
    struct Gap {
      Small most;
      std::uint32_t action = 0;  ///< that came to it, or the large one in front
    };
    std::vector<std::uint32_t> actions;
    std::vector<Gap> gaps;  ///< in front of the first, and behind each
    std::vector<std::pair<StorageId, StorageId>> births;
    struct Begin {
      std::size_t action = 0;  ///< entry of `actions`
      Small small;
    };
    std::vector<Begin> blocks;  ///< where each block of the network begins
    std::span<const Action> all;
    std::uint32_t number = 0;  ///< Part::number
  };
  [[nodiscard]] LargeActions large_actions(std::size_t step) const {
    LargeActions large;
    large.all = tokens_.actions(step);
    large.number = held_.program.tokens[step].body.begin;
    const std::span<const Storage> storages = tokens_.storages();
    for (const auto& [before, own] : tokens_.births(step))
      if (!is_small(storages[own].bytes)) large.births.emplace_back(before, own);
    LargeActions::Small now;
    large.gaps.push_back({});
    const std::vector<TokenMemory::Block>& blocks = tokens_.blocks(step);
    for (std::uint32_t i = 0; i < large.all.size(); ++i) {
      if (large.blocks.size() < blocks.size() && blocks[large.blocks.size()].begin == i)
        large.blocks.push_back({large.actions.size(), now});
      const Action& action = large.all[i];
      const Storage& storage = storages[own_of_[action.index]];
      if (!is_small(storage.bytes)) {
        large.actions.push_back(i);
        large.gaps.push_back({now, i});
        continue;
      }
      const std::int64_t rounded = (storage.bytes + kMinBlock - 1) / kMinBlock * kMinBlock;
      const std::int64_t change = action.kind == Action::Kind::allocate ? rounded : -rounded;
      now.held += change;
      now.by_category[static_cast<std::size_t>(storages[action.index].category)] += change;
      if (now.held > large.gaps.back().most.held) large.gaps.back() = {now, i};
    }
    return large;
  }

  /// A token, but for blocks of its network that ask for small blocks of memory as earlier ones did and find them
  /// there.
  bool play_blocks(std::size_t step, const LargeActions& large) {
    constexpr std::size_t kMostPeriod = 4;
    const std::vector<TokenMemory::Block>& blocks = tokens_.blocks(step);
    const std::size_t reach = tokens_.reach(step);
    std::vector<std::uint64_t> states(blocks.size());
    std::uint32_t at = 0;
    const auto actions_of = [&](const TokenMemory::Block& block) {
      return large.all.subspan(block.begin, block.end - block.begin);
    };
    const auto play_until = [&](std::uint32_t end) {
      const std::uint32_t begin = std::exchange(at, end);
      return held_.play({large.all.subspan(begin, end - begin), tokens_.storages(), large.number, true});
    };
    std::size_t alike = 0;  // blocks that do as the one before, up to the one at hand
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (!play_until(blocks[i].end)) return false;
      alike = blocks[i].as_before ? alike + 1 : 0;
      states[i] = held_.allocator.fingerprint(PoolKind::small);
      for (std::size_t back = 0; back < std::min(reach, i + 1); ++back)
        states[i] = with_births(states[i] + back, actions_of(blocks[i - back]));
      for (std::size_t period = 1; period <= kMostPeriod && period + reach <= alike + 1; ++period) {
        if (states[i] != states[i - period]) continue;
        std::size_t further = 0;
        while (i + 1 + further < blocks.size() && blocks[i + 1 + further].as_before) ++further;
        const std::size_t passed = further / period * period;
        if (passed == 0) break;
        const std::size_t end = i + 1 + passed < blocks.size() ? large.blocks[i + 1 + passed].action
                                                               : large_until(large, blocks[i + passed].end);
        if (!play_large(large, large.blocks[i + 1].action, end, large.blocks[i + 1].small)) return false;
        for (std::size_t back = 0; back < reach; ++back)
          stand_for(large.all, blocks[i - back], blocks[i + passed - back]);
        at = blocks[i + passed].end;
        std::fill(states.begin() + static_cast<std::ptrdiff_t>(i), states.end(), states[i]);
        i += passed;
        alike = 0;
        break;
      }
    }
    return play_until(static_cast<std::uint32_t>(large.all.size()));
  }
  [[nodiscard]] static std::size_t large_until(const LargeActions& large, std::uint32_t action) {
    return static_cast<std::size_t>(std::lower_bound(large.actions.begin(), large.actions.end(), action) -
                                    large.actions.begin());
  }
  /// Small storages born in a later block of the network lie where those of an earlier one do.
  void stand_for(std::span<const Action> actions, const TokenMemory::Block& earlier, const TokenMemory::Block& later) {
    for (std::uint32_t i = 0; i < earlier.end - earlier.begin; ++i) {
      const Action &old = actions[earlier.begin + i], &now = actions[later.begin + i];
      if (old.kind != Action::Kind::allocate || !is_small(tokens_.storages()[old.index].bytes)) continue;
      held_.blocks[now.index] = std::exchange(held_.blocks[old.index], kNoBlock);
    }
  }

  /// Requests for large blocks alone, from one on to another. `base`: small ones of the token that are counted already.
  bool play_large(const LargeActions& large, std::size_t begin, std::size_t end, const LargeActions::Small& base) {
    const std::span<const Storage> storages = tokens_.storages();
    const Counter& allocated = held_.allocator.statistics().all.allocated_bytes;
    const std::int64_t retries = held_.allocator.statistics().retries,
                       frees = held_.allocator.statistics().device_frees;
    const auto note = [&](const LargeActions::Gap& gap) {
      if (allocated.current + gap.most.held - base.held <= held_.peak) return;
      held_.peak = allocated.current + gap.most.held - base.held;
      for (std::size_t category = 0; category < held_.by_category.size(); ++category)
        held_.result.breakdown[category] =
            held_.by_category[category] + gap.most.by_category[category] - base.by_category[category];
      held_.result.peak = held_.moment(large.all[gap.action], large.number);
    };
    keep_budget_often("the run of the allocations");
    note(large.gaps[begin]);
    for (std::size_t i = begin; i < end; ++i) {
      const Action& action = large.all[large.actions[i]];
      const Storage& storage = storages[action.index];
      std::int64_t& held = held_.by_category[static_cast<std::size_t>(storage.category)];
      BlockId& block = held_.blocks[action.index];
      if (action.kind == Action::Kind::free) {
        if (block == kNoBlock) continue;
        held -= held_.allocator.bytes_of(block);
        held_.allocator.free(block);
        block = kNoBlock;
      } else {
        block = held_.allocator.allocate(storage.bytes, storage.stream);
        const AllocatorStatistics& now = held_.allocator.statistics();
        if (block == kNoBlock || now.retries != retries || now.device_frees != frees) {
          changed_ = true;
          return false;
        }
        held += held_.allocator.bytes_of(block);
      }
      note(large.gaps[i + 1]);
    }
    return true;
  }

  HeldMemory& held_;
  TokenMemory& tokens_;
  std::vector<StorageId> own_of_;  ///< of a storage that is of the token before: the one born in its place; else itself
  /// A device that is full is full for some time: so many tokens are run in full behind one that had to give memory
  /// back, and as many lie between two states that are kept.
  static constexpr std::int64_t kTokensBetween = 64;
  struct Kept {
    HeldState state;
    std::int64_t token = 0;  ///< that follows
  };
  Kept kept_;
  bool changed_ = false;  ///< blocks went back to the device: what was passed over meanwhile was not alike
  std::optional<std::int64_t> changed_at_;  ///< token
};

}  // namespace

bool play_tokens(HeldMemory& held, TokenMemory& tokens, std::size_t step) {
  return TokenPlayer(held, tokens).play(step);
}

}  // namespace ridgeline
