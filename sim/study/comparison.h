// Two predictions side by side: where their difference comes from, kernel class by kernel class.
//
// The step is the sum of its kernels by class and of the time the GPU waits, so the differences of these add up to the
// difference of the steps; memory in use is the sum of what is held at the peak by category, of cached and of context.
// A class's difference has two parts: the work changed, or the rate at which it is done. With T = W / R,
//
//   dT = L·ln(W'/W) + L·ln(R/R'),   L = (T' - T) / ln(T'/T)     (logarithmic mean; exact)
//
// W is what limits the class: its FLOPs, its DRAM bytes, or its kernels. Tested by tests/study/comparison_test.cpp.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"

namespace ridgeline {

/// What all kernels of one class do in a step.
struct ClassWork {
  Seconds time;
  std::int64_t kernels = 0;
  double flops = 0, tensor_flops = 0;  ///< the second: on tensor cores
  double bytes = 0, dram_bytes = 0;    ///< of the operands, each once a kernel; moved from and to DRAM
  double score_bytes = 0;              ///< written: matrices of attention scores
  std::array<Seconds, kLimiters> limited_by;
  std::map<std::string, std::int64_t> ops;  ///< kernels by op
  std::string main_kernel;                  ///< the one that takes most of the time
  [[nodiscard]] Limiter limiter() const;    ///< of most of the time
};

struct ClassDifference {
  std::optional<KernelClass> kernel_class;  ///< empty: the GPU waits
  ClassWork before, after;                  ///< of waiting: the time alone
  Seconds difference;                       ///< positive: slower
  Seconds from_work, from_rate;             ///< add up to the difference; 0 for waiting
};

/// Parts of the memory in use: by Category, then these.
inline constexpr std::size_t kCachedPart = kCategories, kContextPart = kCategories + 1;
struct MemoryDifference {
  std::size_t part = 0;
  std::int64_t before = 0, after = 0;
};

/// One of the sides, predicted. Memory is that of a device with room without end, so that sums are comparable.
struct ComparedScenario {
  std::string label;
  std::shared_ptr<const StepRun> run;
  [[nodiscard]] const Scenario& scenario() const { return run->scenario(); }
  Prediction prediction;
  bool fits = true;
  std::array<ClassWork, kKernelClasses> classes;
};

/// Of one side against the first, largest first.
struct Difference {
  Seconds time;
  std::vector<ClassDifference> classes;
  std::int64_t memory = 0;  ///< bytes of the device
  std::vector<MemoryDifference> parts;
};

struct Comparison {
  std::vector<ComparedScenario> sides;
  std::vector<Difference> differences;  ///< of side 1 on against side 0
};

inline constexpr std::size_t kMostSides = 6;

/// One side, predicted; throws UserError as StepRun does.
ComparedScenario compared_side(Session& session, const Scenario& scenario, const std::string& label,
                               std::string_view engine);
Difference difference_of(const ComparedScenario& before, const ComparedScenario& after);

/// Throws UserError as StepRun does, and for other than two to kMostSides sides.
Comparison compare(Session& session, std::span<const Scenario> scenarios, std::span<const std::string> labels,
                   std::string_view engine);

}  // namespace ridgeline
