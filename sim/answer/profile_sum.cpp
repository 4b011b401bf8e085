#include "sim/answer/profile_sum.h"

namespace ridgeline {
namespace {

constexpr double KernelProfile::*kBytes[] = {&KernelProfile::l2_read_bytes, &KernelProfile::l2_write_bytes,
                                             &KernelProfile::l1_read_bytes, &KernelProfile::dram_read_bytes,
                                             &KernelProfile::dram_write_bytes};
constexpr double KernelProfile::*kOverTime[] = {&KernelProfile::dram_bandwidth,
                                                &KernelProfile::dram_share,
                                                &KernelProfile::l2_bandwidth,
                                                &KernelProfile::l2_share,
                                                &KernelProfile::theoretical_occupancy,
                                                &KernelProfile::achieved_occupancy,
                                                &KernelProfile::waves,
                                                &KernelProfile::tail_share,
                                                &KernelProfile::pipe_active};

double l2_bytes(const KernelProfile& p) { return p.l2_read_bytes + p.l2_write_bytes; }

}  // namespace

void ProfileSum::add(const KernelProfile& profile, Seconds time, double runs) {
  const double seconds = time.value();
  time_ += seconds;
  for (const auto bytes : kBytes) sum_.*bytes += runs * profile.*bytes;
  for (const auto value : kOverTime) sum_.*value += profile.*value * seconds;
  for (std::size_t i = 0; i < kStalls; ++i) sum_.stalls[i] += profile.stalls[i] * seconds;
  sum_.l2_hit_rate += runs * profile.l2_hit_rate * l2_bytes(profile);
  sum_.l1_hit_rate += runs * profile.l1_hit_rate * profile.l1_read_bytes;
}

KernelProfile ProfileSum::mean() const {
  KernelProfile mean = sum_;
  if (empty()) return mean;
  for (const auto value : kOverTime) mean.*value /= time_;
  for (double& stall : mean.stalls) stall /= time_;
  mean.l2_hit_rate = l2_bytes(mean) > 0.0 ? mean.l2_hit_rate / l2_bytes(mean) : 0.0;
  mean.l1_hit_rate = mean.l1_read_bytes > 0.0 ? mean.l1_hit_rate / mean.l1_read_bytes : 0.0;
  return mean;
}

}  // namespace ridgeline
