// What one kernel of the step finds in the caches and pushes out of the L2, operand by operand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

struct KernelCaches {
  /// What the launch reads or writes of one operand. Bytes of all operands add up to those of the kernel's time.
  struct Operand {
    std::string name;  ///< "A", "Q", "input 1"
    bool written = false;
    double bytes = 0;      ///< distinct
    double loaded = 0;     ///< by all threads, with what the L1 and shared memory give them again
    double requested = 0;  ///< of the L2
    double dram = 0;       ///< to or from the DRAM
    double resident = 0;   ///< share of the distinct bytes that is in the L2 when the kernel begins
    [[nodiscard]] double l1_hit_share() const { return loaded > 0.0 ? 1.0 - requested / loaded : 0.0; }
    /// None where the DRAM moves more than was asked for: what is written back, a collective.
    [[nodiscard]] double l2_hit_share() const { return requested > 0.0 ? std::max(0.0, 1.0 - dram / requested) : 0.0; }
  };
  /// A tensor of which less would hit after the kernel than before it.
  struct Evicted {
    std::string op;  ///< that made it; "set-up" where it was there before the step
    Category category = Category::activations;
    std::int16_t layer = -1;
    double bytes = 0;                  ///< of the tensor
    double gone = 0;                   ///< of them, those that would hit before and do not after
    std::int64_t kernels_to_next = 0;  ///< until it is used again in this step; 0: it is not
  };
  std::vector<Operand> operands;           ///< reads, then writes
  std::vector<Evicted> evicted;            ///< most first, the first 20
  double evicted_bytes = 0;                ///< of all
  double held_before = 0, held_after = 0;  ///< bytes of the run's tensors that would hit
};

/// Of launch `launch` of the steady step (entry of StepRun::times()). What the L2 holds is by the law of
/// timing/l2_residency.h; hits of operands are those that the engine saw, where it simulated the kernel.
KernelCaches kernel_caches(const StepRun& run, std::size_t launch);

}  // namespace ridgeline
