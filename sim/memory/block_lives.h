// Where the blocks of the allocator lie over a run: of each its place, its size, what made it and how long it lives.
//
// Moments count allocations and frees: moment 0 is the state at the begin, each of them makes the next. Told of the
// steady step; of a run out of memory, from the begin of the run to the request that failed.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/memory/memory_run.h"

namespace ridgeline {

struct BlockLives {
  static constexpr std::uint32_t kStays = std::numeric_limits<std::uint32_t>::max();

  /// What asked for a block.
  struct Maker {
    std::string op;  ///< "set-up" for what was there before the first step
    Phase phase = Phase::setup;
    std::int16_t layer = -1;
    std::string module;  ///< "layers.7.attention"; empty where it is not known
    bool operator==(const Maker&) const = default;
  };
  struct Block {
    Address address = 0;
    std::int64_t bytes = 0, requested = 0;
    std::uint32_t from = 0, to = kStays;  ///< moments: there from `from` on until before `to`
    Category category = Category::temporaries;
    std::uint32_t maker = 0;  ///< entry of `makers`
    std::int64_t count = 1;   ///< small neighbours of one maker that come and go together are one entry
  };
  struct Segment {
    Address address = 0;
    std::int64_t bytes = 0;
    std::uint32_t from = 0, to = kStays;
    PoolKind pool = PoolKind::large;
    StreamId stream = 0;
    bool expandable = false;  ///< a mapped part of a growing segment
  };

  std::vector<Maker> makers;
  std::vector<Block> blocks;                 ///< by address, then by time
  std::vector<Segment> segments;             ///< likewise
  std::vector<std::uint32_t> actions;        ///< that made each moment but the first: entries of StepProgram::actions
  std::uint32_t peak = 0;                    ///< the moment with most allocated
  std::int64_t allocated = 0, reserved = 0;  ///< then
  std::uint32_t cut_before = 0, cut_after = 0;  ///< moments left out where there are more than `most_moments`

  [[nodiscard]] std::uint32_t moments() const { return static_cast<std::uint32_t>(actions.size()) + 1; }
};

/// `result` of run_memory with record_samples and record_history. Of longer runs the `most_moments` around the peak.
/// Blocks of less than 1/4096 of what is reserved at the peak are joined with their likes beside them.
BlockLives block_lives(const StepProgram& program, const MemoryResult& result, std::uint32_t most_moments = 20000);

}  // namespace ridgeline
