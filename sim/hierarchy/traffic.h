// The traffic of one kernel in the order its blocks cause it: the L2 is asked, what misses comes from the DRAM, what
// has to leave goes there.
//
// Blocks run in cohorts of as many as the SMs hold at once, in launch order. A cohort's step is a part of its blocks'
// main loop; everything its blocks ask for in that part is asked at once, each granule one time, since blocks that want
// the same data at the same time share its arrival. Tested by tests/hierarchy/traffic_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "sim/hierarchy/access_place.h"
#include "sim/hierarchy/l2_cache.h"

namespace ridgeline {

struct TrafficStep {
  int cohort = 0;
  double work = 0;                   ///< share of the kernel's arithmetic
  double l2_read = 0, l2_write = 0;  ///< bytes asked by blocks
  double dram_read = 0, dram_write = 0;
  double lookups = 0, hits = 0;  ///< bytes, as the L2's counters see them
  TrafficStep& operator+=(const TrafficStep& other);
};

struct KernelTraffic {
  std::vector<TrafficStep> steps;
  std::vector<double> hit_shares;  ///< of each access's distinct bytes: reads that are there, writes to what is dirty
  double l1_read = 0, l1_hit = 0;  ///< bytes read again through the L1, and found there
  int cohorts = 1;
  [[nodiscard]] TrafficStep total() const;
};

KernelTraffic simulate_traffic(const KernelLaunch& launch, std::span<const PlacedAccess> accesses, const Gpu& gpu,
                               L2Cache& l2);

}  // namespace ridgeline
