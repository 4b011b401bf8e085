// Kernel cases, a line of JSON each, answered with their predictions; a mistake is told on its own line.
#pragma once

#include <string>
#include <string_view>

#include "sim/answer/ranges/residual_ranges.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/software.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// How lines are answered besides.
struct KernelLineOptions {
  bool changed_hardware = false;  ///< said in every answer
  bool sensitivity = false;
  bool text = false;      ///< tables under the names of Nsight Compute in the place of JSON
  bool timeline = false;  ///< the case as a Chrome trace, too
};

class KernelLines {
 public:
  /// Throws UserError for an engine that there is not.
  KernelLines(Gpu gpu, Software software, std::string_view engine, KernelLineOptions options);

  struct Answer {
    std::string text;  ///< without the end of the line
    bool mistake = false;
    std::string timeline;  ///< where it was asked for and the line is a case
  };
  [[nodiscard]] Answer answer(std::string_view line) const;

 private:
  Gpu gpu_;
  Software software_;
  KernelLineOptions options_;
  ChipRanges ranges_;
  std::unique_ptr<TimingEngine> engine_;
  Lowering lowering_;
};

}  // namespace ridgeline
