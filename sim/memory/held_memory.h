// The allocator while a run goes on, with what is held of its memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/memory/memory_run.h"

namespace ridgeline {

/// Copied, it is a moment that a run can return to.
struct HeldState {
  CachingAllocator allocator;
  std::vector<BlockId> blocks;  ///< by storage
  BytesByCategory by_category{};
  std::int64_t peak = 0;  ///< of what is allocated, since the steady state began
  MemoryResult result{};  ///< its failure, and its peak with what that is made of
};

struct HeldMemory : HeldState {
  HeldMemory(const StepProgram& made_of, const MemoryOptions& options, std::size_t storages)
      : HeldState{CachingAllocator(options.settings, DeviceMemory(options.capacity, options.context), options.counts),
                  std::vector<BlockId>(storages, kNoBlock)},
        program(made_of) {}

  /// Actions that are run in order, on storages of their own sizes.
  struct Part {
    std::span<const Action> actions;
    std::span<const Storage> storages;
    std::uint32_t number = 0;  ///< of the first among the program's; of all of a token
    bool of_token = false;
    [[nodiscard]] std::uint32_t number_of(std::size_t action) const {
      return of_token ? number : number + static_cast<std::uint32_t>(action);
    }
  };
  /// Runs them where nothing is asked but what is held. False: memory ran out.
  bool play(const Part& part);
  void fail(const Action& action, const Storage& storage, std::uint32_t index);
  [[nodiscard]] Moment moment(const Action& action, std::uint32_t index) const;

  const StepProgram& program;
};

}  // namespace ridgeline
