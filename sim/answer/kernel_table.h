// Answers to a profiler's table of sums: time by kernel and family, and what limits each, without a timeline.
//
// A table holds no shapes. A kernel of a mean up to kShortKernel times an empty one is limited by its launch; matrix
// multiplications, attention and convolutions by arithmetic, except of vectors; collectives and copies to or from the
// host by links; all others by the DRAM. On another GPU it takes what carried_time.h says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/timing/kernel_time.h"
#include "sim/trace/nsight/profile_tables.h"
#include "sim/units/quantity.h"
#include "sim/workload/kernel_family.h"

namespace ridgeline {

inline constexpr double kShortKernel = 1.5;

struct TableKernel {
  std::string name;
  KernelFamily family = KernelFamily::other;
  Limiter limiter = Limiter::dram;
  Seconds measured{};
  double count = 0.0;
  std::optional<Seconds> carried{};  ///< on the GPU asked for
};

struct TableFamily {
  KernelFamily family = KernelFamily::other;
  Seconds measured{};
  double count = 0.0;
  std::optional<Seconds> carried{};
};

struct KernelTable {
  std::vector<std::string> reports;
  std::vector<TableKernel> kernels;     ///< copies and memsets among them; the longest first
  std::vector<TableFamily> families;    ///< the longest first
  std::vector<trace::TableRow> others;  ///< calls of the host, NVTX ranges
  Seconds measured{};                   ///< of all kernels
  std::string recorded_on, hardware;    ///< names in hw/; empty: not said
};

/// `recorded`: the GPU of the recording, whose launch cost tells short kernels; `target`: another one, or null.
KernelTable kernel_table(const trace::ProfileTables& tables, const Gpu* recorded, const Gpu* target);

}  // namespace ridgeline
