// Where launches of a step come again: in each block of a network the same launches, on storages that stand to each
// other as those of the block before did. Sizes do not matter, so programs of one layout share it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/step_program.h"

namespace ridgeline {

/// Entries are launches_before(), then the launches of the steady step.
struct LaunchRepeats {
  /// The launches from one on are, `length` of them, those that stand `back` before them with other storages in the
  /// place of theirs, each always the same.
  struct Run {
    std::uint32_t back = 0, length = 0;  ///< 0: nothing known comes again
  };
  std::vector<Run> runs;
};

/// What is found in one pass: not every repetition, but those of equal blocks.
LaunchRepeats repeats_of_launches(const StepProgram& program);

}  // namespace ridgeline
