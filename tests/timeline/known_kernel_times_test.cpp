// Times of kernels that programs share, many and more than are kept.
#include <gtest/gtest.h>

#include "sim/timeline/step_times.h"

namespace ridgeline {
namespace {

KernelTime lasting(double seconds) {
  KernelTime time;
  time.time = Seconds{seconds};
  return time;
}

TEST(KnownKernelTimes, AreFoundByBothNumbersHoweverManyThereAre) {
  KernelTimes times(1 << 16);
  EXPECT_FALSE(times.find(0, 0));
  for (std::uint64_t launch = 0; launch < 100; ++launch)
    for (std::uint64_t residency = 0; residency < 50; ++residency) {
      EXPECT_FALSE(times.find(launch, residency << 32));
      times.keep(launch, residency << 32, lasting(static_cast<double>(100 * launch + residency)));
    }
  times.keep(7, 0, lasting(-1.0));
  for (std::uint64_t launch = 0; launch < 100; ++launch)
    for (std::uint64_t residency = 0; residency < 50; ++residency) {
      const auto found = times.find(launch, residency << 32);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->time.value(), static_cast<double>(100 * launch + residency)) << "the first that was kept";
    }
  EXPECT_FALSE(times.find(100, 0));
  EXPECT_FALSE(times.find(0, 1));
}

TEST(KnownKernelTimes, AreAllForgottenBeyondTheMost) {
  KernelTimes times(10);
  for (std::uint64_t launch = 0; launch < 11; ++launch) times.keep(launch, 3, lasting(1.0));
  EXPECT_FALSE(times.find(0, 3));
  EXPECT_FALSE(times.find(9, 3));
  EXPECT_TRUE(times.find(10, 3));
}

}  // namespace
}  // namespace ridgeline
