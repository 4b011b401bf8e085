// Where a launch's accesses lie: tensors of the run by storage, memory inside ops by its size, lists anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/hierarchy/l2_cache.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

/// One access with its place in memory.
struct PlacedAccess {
  L2Cache::Run run;      ///< all of it
  bool once = false;     ///< lists of tensors swept once: no place of their own
  double requested = 0;  ///< bytes asked of the L2
};

class AccessPlaces {
 public:
  /// Reads of `launch`, then its writes, in order. Views of one storage that a launch uses together lie side by side.
  std::vector<PlacedAccess> of(const KernelLaunch& launch, std::span<const Operand> operands);

 private:
  /// Storages of memory inside ops come first: an op's kernels pass it on by its size, and the allocator hands the same
  /// memory to the next op that asks for as much.
  static constexpr std::uint32_t kTemporaries = 4096;
  std::unordered_map<std::int64_t, std::uint32_t> temporaries_;
};

}  // namespace ridgeline
