// The time of a product whose kernel a library picks by an estimate that nobody knows.
//
// Each kernel ranks by its law's time, weighted by what speaks against it: shape and tile alone, never the chip. The
// fastest rank is what a perfect choice would take; a library takes one of the next now and then. The time is a mean of
// the ranks in order, R1 <= R2 <= ...: sum of turn_j * min(Rj, kMostSlower * R1). No Rj grows where a kernel becomes
// faster or one is added, so neither does the time, and where two kernels change places it does not jump.
#pragma once

#include <array>
#include <span>

namespace ridgeline {

/// How often each rank is taken, where a library's choices are known (profiles of Hopper; others fit as well, from 0.54
/// and four further to 1 alone).
inline constexpr std::array kTurns{0.7, 0.3};
/// Nothing slower counts.
inline constexpr double kMostSlower = 1.2;

/// `ranks`: seconds, ascending, as many as there are up to two. Infinite without any.
double likely_of(std::span<const double> ranks, bool often_others);

/// The same of convolutions on tensor cores, of which cuDNN's choices are further from the fastest. Set on the 1,547
/// convolutions of random shape to be fitted (h200/wide) that are no plain products: median and mean error 13.0 and
/// 19.8 %, of the fastest alone 14.5 and 21.4.
inline constexpr std::array kTurnsOfForms{0.4, 0.2, 0.2, 0.2};
inline constexpr double kMostSlowerForm = 1.5;
double likely_of_forms(std::span<const double> ranks);

/// Seconds of an op in the form of `launch`, which takes `own` without its helpers, or in those that a library may take
/// instead: of convolutions as above, but of those on the CUDA cores and of attention the fastest. Helpers of this form
/// excluded.
double seconds_of_forms(const KernelLaunch& launch, double own, std::span<const double> others);

/// Of both generations of kernels: a share of products keeps to the older one; the others take the faster.
inline double of_generations(double newer, double older, double older_share) {
  return older_share * older + (1.0 - older_share) * (older < newer ? older : newer);
}

}  // namespace ridgeline
