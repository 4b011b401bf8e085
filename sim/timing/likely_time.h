// The time of a product whose kernel a library picks by an estimate that nobody knows.
//
// Each kernel ranks by its law's time, weighted by what speaks against it: shape and tile alone, never the chip. The
// fastest rank is what a perfect choice would take; a library takes one of the next now and then. The time is a mean of
// the ranks in order, R1 <= R2 <= ...: sum of turn_j * min(Rj, kMostSlower * R1). No Rj grows where a kernel becomes
// faster or one is added, so neither does the time, and where two kernels change places it does not jump.
#pragma once

#include <array>
#include <span>

#include "sim/launch/kernel_launch.h"

namespace ridgeline {

/// How often each rank is taken, where a library's choices are known (profiles of Hopper; others fit as well, from 0.54
/// and four further to 1 alone).
inline constexpr std::array kTurns{0.7, 0.3};
/// Nothing slower counts.
inline constexpr double kMostSlower = 1.2;

/// `ranks`: seconds, ascending, as many as there are up to two. Infinite without any.
double likely_of(std::span<const double> ranks, bool often_others);

/// What speaks against a convolution's kernel whatever the chip, its rank over its seconds: cuDNN keeps tf32 from the
/// kernels of cp.async, for which operands are rounded, and splits sums less often than times say. Set on the 1,547
/// convolutions to be fitted that are no plain products: median and mean error 13.3 and 20.3 % with both and the turns
/// above, 14.6 and 21.5 % with the fastest alone.
double dislike_of_form(const GemmWork& work);

/// Seconds of an op in the form of `launch`, which takes `own` without its helpers, or in those that a library may take
/// instead: of convolutions as often_others above, but of those on the CUDA cores and of attention the fastest. Helpers
/// of this form excluded.
double seconds_of_forms(const KernelLaunch& launch, double own, std::span<const double> others);

/// Of both generations of kernels: a share of products keeps to the older one; the others take the faster.
inline double of_generations(double newer, double older, double older_share) {
  return older_share * older + (1.0 - older_share) * (older < newer ? older : newer);
}

}  // namespace ridgeline
