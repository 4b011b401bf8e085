// Who holds the memory of a steady step: over time, at its peak by layer and by operation, and what lies unused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/memory/memory_run.h"

namespace ridgeline {

struct MemoryReport {
  /// What a layer holds at the peak; layer -1: outside the blocks.
  struct Layer {
    std::int64_t layer = -1;
    BytesByCategory bytes{};
  };
  /// What tensors made by one operation hold at the peak.
  struct Holder {
    std::string op;  ///< "parameters" and the like for what was there before the step
    Category category = Category::activations;
    Phase phase = Phase::forward;  ///< in which they were made
    std::int64_t count = 0, bytes = 0;
  };
  /// The fullest moment of a stretch of the step.
  struct Stretch {
    Phase phase = Phase::forward;
    std::int64_t first_layer = -1, last_layer = -1;  ///< in the order the step comes to them
    std::int64_t allocated = 0, reserved = 0;
    BytesByCategory bytes{};
  };
  /// Bytes at the peak that are reserved and not allocated, and why.
  struct Unused {
    std::int64_t segments = 0;        ///< held of the device
    std::int64_t free = 0;            ///< in all free blocks
    std::int64_t largest_free = 0;    ///< the largest request that no new segment would be needed for
    std::int64_t whole_segments = 0;  ///< free segments, which could go back to the device
    std::int64_t rounding = 0;        ///< inside allocated blocks, beyond what was asked for
    [[nodiscard]] double share(std::int64_t of_reserved) const {
      return of_reserved > 0 ? static_cast<double>(free) / static_cast<double>(of_reserved) : 0.0;
    }
  };

  Moment peak;
  std::string peak_op;
  std::int64_t allocated = 0, reserved = 0;  ///< at the peak
  BytesByCategory bytes{};                   ///< at the peak
  std::vector<Layer> layers;                 ///< in order
  std::vector<Holder> holders;               ///< most bytes first
  std::vector<Stretch> stretches;            ///< in the order of time
  Unused unused;
};

/// `result` of run_memory with record_samples. At most `most_stretches` stretches. Empty where memory ran out.
MemoryReport report_memory(const StepProgram& program, const MemoryResult& result, std::size_t most_stretches = 28);

}  // namespace ridgeline
