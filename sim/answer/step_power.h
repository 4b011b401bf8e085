// The board's power over a steady step: each kernel's draw and clock, and where the step's energy goes.
#pragma once

#include <array>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

struct StepPower {
  struct Kernel {
    Watts power;  ///< of the board while it runs alone
    Hertz clock;
  };
  Watts limit;                                  ///< of the board; 0: none
  Watts idle;                                   ///< nothing running, at the clock that the limit leaves
  Watts average;                                ///< over the step
  std::vector<Kernel> kernels;                  ///< one a launch of the steady step
  std::array<Joules, kTimeClasses> by_class{};  ///< beyond idling, by TimeClass
  Joules idling;                                ///< of the whole step; with `by_class` all of its energy
};

/// The law of timeline/power.h at the clock that the timeline settled on. Throws as the run does.
StepPower step_power(const StepRun& run);

}  // namespace ridgeline
