// What blocks ask the memory for together: panels that many of them read, and whose lines stay in the L2 while there is
// room for what comes between.
//
// Blocks that share a panel are not in step: the bytes touched between two readings of a line scatter about a footprint
// F, as times between independent events do, so that a line is gone with probability exp(-C/F) in an L2 of C bytes. F
// is that of the data, not of the chip: more SMs share a panel the more and crowd out nothing. No L2: every request
// goes to the DRAM; one block at work on panels of its own reads nothing again. These are floors: what the laws of
// attention and of convolutions were fitted on stays, and binds first on the GPUs that were measured.
#pragma once

#include "sim/hardware/gpu.h"

namespace ridgeline {

/// Bytes of one kernel.
struct PanelTraffic {
  double asked = 0;        ///< reads asked of the L2 by all blocks
  double first = 0;        ///< of them, each byte's first …
  double cold = 0;         ///< … and those of the first that come from DRAM
  double footprint = 0;    ///< different bytes between two blocks of one panel that are at work together
  double later = 0;        ///< of what is asked again, by blocks that come when those at work have gone …
  double between = 0;      ///< … and the different bytes in between
  double written = 0;      ///< asked of the L2
  double written_out = 0;  ///< to the DRAM
  double waits = 0;        ///< loads that one SM's blocks wait for, one after the other
};

struct PanelFloor {
  double l2 = 0, dram = 0, latency = 0;  ///< seconds
  double refetched = 0;                  ///< bytes read from the DRAM again
  double latency_cycles = 0;             ///< of one load, mean of hits and misses, at the sustained clock
  [[nodiscard]] double most() const;
};

/// `start`: launch, and what the first block waits for: kernel_fixed, three answers of the L2 (parameters, code, data),
/// of which the last comes from the DRAM where data is cold. It is part of every floor.
PanelFloor panel_floor(const PanelTraffic& traffic, const Gpu& gpu, double l2_bandwidth);

/// Cycles of a clock of `hertz` that a load takes of which a share `cold` misses the L2.
double load_latency(const Gpu& gpu, double cold, double hertz);
/// The same on the GPU that the laws were fitted on.
double reference_load_latency(double cold);

}  // namespace ridgeline
