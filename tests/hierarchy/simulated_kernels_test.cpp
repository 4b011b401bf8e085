// A simulated kernel's time and figures against the traffic it was given: no byte is lost, no kernel is faster than its
// bytes, waits add up to the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/hierarchy/kernel_simulation.h"
#include "sim/hierarchy/traffic.h"
#include "sim/kernels/lowering.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/kernel_profile.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"
#include "tests/support/random_kernel_cases.h"

namespace ridgeline {
namespace {

/// Kernels of random operations, each on cold caches.
class SimulatedKernels : public ::testing::Test {
 protected:
  static std::vector<KernelLaunch> launches() {
    std::vector<KernelLaunch> all;
    const Software software;  // outlives the lowering
    const Lowering lowering(gpu(), software);
    for (const auto& known : ridgeline::testing::RandomKernelCases(47).of_every_op(3)) {
      try {
        for (const KernelLaunch& launch : lowering.lower(known.kernel.op).launches) {
          double bytes = launch.read_bytes() + launch.written_bytes();
          if (bytes < 4e8) all.push_back(launch);
        }
      } catch (const std::invalid_argument&) {
        continue;  // this GPU has no kernel for it
      }
    }
    return all;
  }
  static const Gpu& gpu() {
    static const Gpu h200 = load_gpu("nvidia-h200-sxm-141gb");
    return h200;
  }
  static KernelTraffic traffic_of(const KernelLaunch& launch) {
    std::vector<Operand> operands;
    for (std::uint32_t i = 0; i < 16; ++i) operands.push_back({i, 0});
    AccessPlaces places;
    L2Cache l2(gpu().l2);
    return simulate_traffic(launch, places.of(launch, operands), gpu(), l2);
  }
};

double share(const KernelTime& time, Stall stall) { return time.profile->stalls[static_cast<std::size_t>(stall)]; }

TEST_F(SimulatedKernels, move_what_their_traffic_does_and_are_no_faster_than_the_dram) {
  int kernels = 0;
  for (const KernelLaunch& launch : launches()) {
    SCOPED_TRACE(launch.name);
    const KernelTraffic traffic = traffic_of(launch);
    const TrafficStep sum = traffic.total();
    const KernelTime time = simulated_time(launch, traffic, gpu());
    ASSERT_NE(time.profile, nullptr);
    const bool attention = std::holds_alternative<AttentionWork>(launch.work);
    // Attention's law may fetch panels again that the traffic did not.
    EXPECT_GE(time.dram_read_bytes, sum.dram_read * (1.0 - 1e-12));
    if (!attention) {
      EXPECT_DOUBLE_EQ(time.dram_read_bytes, sum.dram_read);
    }
    EXPECT_DOUBLE_EQ(time.dram_write_bytes, sum.dram_write);
    EXPECT_DOUBLE_EQ(time.l2_bytes, sum.lookups);
    EXPECT_NEAR(time.l2_hit_rate, sum.lookups > 0.0 ? sum.hits / sum.lookups : 0.0, 1e-12);
    EXPECT_EQ(time.occupancy, time.profile->achieved_occupancy);
    EXPECT_GE(time.time.value(),
              (time.dram_read_bytes + time.dram_write_bytes) / gpu().dram.bandwidth.value() * (1.0 - 1e-9));
    double all = 0.0;
    for (const double stall : time.profile->stalls) {
      EXPECT_GE(stall, 0.0);
      all += stall;
    }
    EXPECT_NEAR(all, 1.0, 1e-9);
    if (!time.profile->samples.empty()) {
      EXPECT_NEAR(time.profile->samples.back().end_s, time.time.value(), 1e-6 * time.time.value());
    }
    ++kernels;
  }
  EXPECT_GT(kernels, 100);
}

/// Streams take the law's time at the shares that hit; what they wait for is the memory as long as it takes, then the
/// pipe or their own steps; the rest is the launch.
TEST_F(SimulatedKernels, streams_wait_for_the_memory_then_for_themselves) {
  int streams = 0;
  const AchievedBandwidth achieved = achieved_bandwidth(gpu());
  for (const KernelLaunch& launch : launches()) {
    if (!std::holds_alternative<MemoryBoundWork>(launch.work)) continue;
    SCOPED_TRACE(launch.name);
    const KernelTraffic traffic = traffic_of(launch);
    const TrafficStep sum = traffic.total();
    const KernelTime law = AnalyticEngine(gpu()).time(launch, traffic.hit_shares),
                     time = simulated_time(launch, traffic, gpu());
    const double least = (sum.dram_read + sum.dram_write) / gpu().dram.bandwidth.value();
    EXPECT_NEAR(time.time.value(), std::max(law.time.value(), least), 1e-12 * time.time.value());
    if (least > law.time.value()) continue;
    const double seconds = law.time.value(), fixed = gpu().launch.kernel_fixed.value(), body = seconds - fixed;
    const double memory = std::max(sum.dram_read / achieved.dram_read + sum.dram_write / achieved.dram_write,
                                   sum.l2_read / achieved.l2_read + sum.l2_write / achieved.l2_write);
    EXPECT_NEAR(share(time, Stall::drain), fixed / seconds, 1e-9);
    EXPECT_NEAR(share(time, Stall::long_scoreboard), std::min(memory, body) / seconds, 1e-9);
    const Stall own = law.limiter == Limiter::compute ? Stall::math_pipe_throttle : Stall::barrier;
    EXPECT_NEAR(share(time, own), std::max(0.0, body - memory) / seconds, 1e-9);
    ++streams;
  }
  EXPECT_GT(streams, 60);
}

/// A product or attention is busy with its pipe as its law says, and waits for more memory the longer that takes.
TEST_F(SimulatedKernels, products_and_attention_are_busy_as_their_law_says) {
  Gpu slow = gpu();
  slow.dram.bandwidth = gpu().dram.bandwidth * 0.1;
  int kernels = 0, waiting = 0;
  for (const KernelLaunch& launch : launches()) {
    const auto* product = std::get_if<GemmWork>(&launch.work);
    const auto* attention = std::get_if<AttentionWork>(&launch.work);
    if (product == nullptr && (attention == nullptr || attention->part == AttentionWork::Part::layout_copy)) continue;
    if (product != nullptr && (product->reduces_splits || product->gathering.role != Gathering::Role::none)) continue;
    SCOPED_TRACE(launch.name);
    const KernelTraffic traffic = traffic_of(launch);
    const KernelTime time = simulated_time(launch, traffic, gpu()), slower = simulated_time(launch, traffic, slow);
    EXPECT_GT(share(time, Stall::drain), 0.0);
    EXPECT_GT(share(time, Stall::math_pipe_throttle), 0.0);
    EXPECT_GE(slower.time.value(), time.time.value() * (1.0 - 1e-9));
    if (slower.time.value() > 1.5 * time.time.value()) {
      EXPECT_GT(share(slower, Stall::long_scoreboard), share(time, Stall::long_scoreboard));
      ++waiting;
    }
    ++kernels;
  }
  EXPECT_GT(kernels, 20);
  EXPECT_GT(waiting, 5);
}

}  // namespace
}  // namespace ridgeline
