// When the last of a kernel's unequal thread blocks ends: each starts, in launch order, on the first slot that comes
// free.
#pragma once

#include <span>

namespace ridgeline {

/// End of a grid that runs the list `cost` of block times `repeats` times over on `slots` equal slots. Exact up to a
/// few rounds of blocks; beyond, the mean load plus the expected tail, 0.62 of the longest block (heap simulations of
/// linear lists: 0.55 to 0.68 from 4 rounds on, whatever the order of blocks).
double schedule_end(std::span<const double> cost, double repeats, int slots);

/// The same where up to `resident` blocks share an SM: with `j` blocks on it, block `i` takes `alone[i] + (j -
/// 1)·more[i]` for all of its work and goes faster when others end. The first block of each SM comes in order, the
/// further ones of the first round in another order (which block shares with which depends on the chip); then each on
/// the SM that comes free.
double shared_schedule_end(std::span<const double> alone, std::span<const double> more, double repeats, int sms,
                           int resident);

/// The latest such end on as many SMs or more: what a chip with more of them needs, where blocks meet less well there,
/// one with fewer needs too. Falls with `sms` by construction, and is nearer to measured kernels than the end on just
/// as many (causal attention of H200s: mean error of CUTLASS' 16-bit forward kernels 3.9 % against 4.5,
/// FlashAttention's 4.1 against 4.2; the earliest end on as many or fewer, 5.4 and 4.6). Of more than 127 SMs every
/// second is tried, of more than 255 every fourth …; ends are remembered by thread.
double latest_schedule_end(std::span<const double> alone, std::span<const double> more, double repeats, int sms,
                           int resident);
/// No such end is earlier on `sms` SMs.
double least_schedule_end(std::span<const double> alone, std::span<const double> more, double repeats, int sms,
                          int resident);

}  // namespace ridgeline
