// How many thread blocks the fullest SM runs, whose end is the kernel's.
//
// Blocks that share an SM do not end evenly spaced, so that the blocks of the last set are not handed out evenly: an SM
// whose blocks end together takes several before others had one. Counted block by block (%smid) in hw/probe's
// wave_staircase: of 132 SMs with two blocks each, some SM was given a fifth of 528 blocks in 19 of 20 launches.
#pragma once

namespace ridgeline {

/// Blocks of the fullest SM in the mean of launches, where `blocks` run on `sms` SMs that hold `resident` each.
double fullest_sm(double blocks, double sms, double resident);

}  // namespace ridgeline
