// Allocations and frees of tokens that a program does not write out: those of the last one that is, on sizes of their
// own.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/program/token_kernels.h"

namespace ridgeline {

class TokenMemory {
 public:
  explicit TokenMemory(const StepProgram& program);

  [[nodiscard]] std::int64_t tokens() const { return loop_.tokens(); }
  /// Storages of the program, then temporaries of the operations that differ from token to token; sizes are those of
  /// the token that was begun last.
  [[nodiscard]] const std::vector<Storage>& storages() const { return storages_; }
  /// Allocations and frees of a token of a step: what an action names that is born in the token before is found in the
  /// storages of `before`.
  [[nodiscard]] const std::vector<Action>& actions(std::size_t step) const { return steps_[step].actions; }
  /// Two lists, of the token before and of the one at hand: storages born in the same place of each.
  [[nodiscard]] const std::vector<std::pair<StorageId, StorageId>>& births(std::size_t step) const {
    return steps_[step].births;
  }
  /// Actions of a block of the network, in order; blocks of others lie between two of them, or nothing.
  struct Block {
    std::uint32_t begin = 0, end = 0;
    bool as_before = false;  ///< does what the block before it did, on storages that stand to each other as its own do
  };
  [[nodiscard]] const std::vector<Block>& blocks(std::size_t step) const { return steps_[step].blocks; }
  /// Blocks of the network name storages that are born in so many blocks before them at most.
  [[nodiscard]] std::size_t reach(std::size_t step) const { return steps_[step].reach; }
  /// Sets the sizes of a token, which counts from the first that is not written out.
  void begin(std::int64_t token, std::size_t step);
  /// Equal for tokens that ask the pool of small blocks for the same, and the other one in the same places.
  [[nodiscard]] std::uint64_t small_requests(std::int64_t token) const {
    return small_[static_cast<std::size_t>(token)];
  }
  /// Equal for tokens in a row whose storages are in the same pools.
  [[nodiscard]] std::uint64_t pools(std::int64_t token) const { return pools_[static_cast<std::size_t>(token)]; }

 private:
  void add_step(const StepProgram& program, std::size_t step);
  void find_blocks(const OpTrace& trace, std::size_t step);
  void find_small_requests();
  [[nodiscard]] std::int64_t temporary(std::int64_t token, std::size_t slot, std::size_t number) const;

  const TokenLoop& loop_;
  const TokenKernels& kernels_;
  std::vector<Storage> storages_;
  std::vector<std::size_t> most_temporaries_;  ///< of each varying slot
  struct Sized {
    StorageId storage = 0;
    std::size_t varying = 0, number = 0;  ///< temporary of a slot, or birth
  };
  struct Step {
    std::vector<Action> actions;
    std::vector<std::pair<StorageId, StorageId>> births;
    std::vector<Sized> sized, temporaries;
    std::vector<Block> blocks;
    std::size_t reach = 1;
  };
  std::vector<Step> steps_;
  std::vector<std::uint64_t> small_, pools_;
};

}  // namespace ridgeline
