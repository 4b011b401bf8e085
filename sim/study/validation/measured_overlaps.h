// Collectives beside kernels as they were timed (files of kind "overlaps"), and which of them no fit may see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/network/overlap.h"
#include "sim/study/validation/measured_files.h"

namespace ridgeline {

/// One time of two: of a kernel or of a collective while the other ran too, back to back on streams of their own.
struct MeasuredOverlap {
  std::string name{};           ///< what ran beside what
  CollectiveTime collective{};  ///< its time alone as measured
  KernelBesides kernel{};
  int gpu = 0;  ///< index into MeasuredOverlaps::gpus
  bool of_collective = false;
  Seconds beside;
  bool held_out = false;    ///< no fit sees it
  std::uint64_t shape = 0;  ///< hash of collective, kernel and ranks
  std::uint64_t row = 0;    ///< hash of the line and of whose time it is
};

struct MeasuredOverlaps {
  std::vector<Gpu> gpus;
  std::vector<MeasuredOverlap> rows;  ///< without those that ended before the other did
  int disturbed = 0;                  ///< rows left out whose collective was not alone when it was timed alone
  int disturbed_held_out = 0;         ///< of those, held out
};

/// Throws UserError for a file that cannot be read or a kernel that nothing is known of.
MeasuredOverlaps load_measured_overlaps(const MeasurementIndex& index);

}  // namespace ridgeline
