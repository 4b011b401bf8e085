// A choice for each block, to keep it, to run it again or to send it to the host, so that a step needs no more than a
// given memory and takes as little longer as it can.
//
// Blocks of one network cost alike: each treatment is predicted once on all blocks, which gives what a block of it
// saves and costs. Combinations of two treatments (an optimum under one bound and one count of blocks has no more) are
// ordered by that estimate; their memory is predicted in this order, and the fastest that fit are timed.
// Tested against all choices of small networks by tests/study/memory_plan_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// A treatment of a block.
struct BlockOption {
  std::uint8_t parts = 0;  ///< bits of BlockPart
  std::int64_t saved = 0;  ///< bytes a block, on average over all
  Seconds cost;            ///< more time a block, likewise
};

/// Blocks [first, last] that are treated alike.
struct TreatedBlocks {
  std::int64_t first = 0, last = 0;
  std::uint8_t parts = 0;
};

struct MemoryPlan {
  std::int64_t budget = 0, blocks = 0;
  std::int64_t needed_before = 0;      ///< by the step that keeps everything
  Seconds time_before;                 ///< had its device room without end
  std::vector<BlockOption> options;    ///< tried, those that save memory
  std::vector<std::string> refused;    ///< treatments that do not go with the scenario, and why
  std::vector<TreatedBlocks> treated;  ///< of the answer; empty: everything is kept
  bool fits = false;                   ///< the answer is within the budget; otherwise the one that needs least
  std::int64_t needed = 0;
  Seconds time;
  int predictions = 0;
};

/// Throws UserError for a scenario that is no training of a described network, or treats blocks itself.
MemoryPlan plan_memory(Session& session, const Scenario& scenario, std::int64_t budget, std::string_view engine);

/// The scenario with these blocks treated so.
Scenario with_treated_blocks(const Scenario& scenario, const std::vector<TreatedBlocks>& treated);

/// "attention + activation"; "kept" where there are none.
std::string words_of_parts(std::uint8_t parts);

}  // namespace ridgeline
