// Profiles of several launches of a kernel as one: bytes added up, rates over the bytes they are about, the rest over
// time.
#pragma once

#include "sim/timing/kernel_profile.h"
#include "sim/units/quantity.h"

namespace ridgeline {

class ProfileSum {
 public:
  /// `time` is of all `runs` of it.
  void add(const KernelProfile& profile, Seconds time, double runs = 1.0);
  /// Without samples; zeros where nothing was added.
  [[nodiscard]] KernelProfile mean() const;
  [[nodiscard]] bool empty() const { return time_ <= 0.0; }

 private:
  KernelProfile sum_;  ///< bytes; all else times seconds, hit rates times bytes
  double time_ = 0;
};

}  // namespace ridgeline
