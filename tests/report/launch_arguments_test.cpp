// What a timeline says of a launch: the members of its event's arguments, whole.
#include "sim/report/timeline/launch_arguments.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

using nlohmann::json;

template <typename Add>
json members(const Add& add) {
  TextBuffer text;
  {
    JsonObject object(text);
    add(object);
  }
  return json::parse(std::move(text).take());
}

/// 21 blocks of 5 warps (the fifth holds four threads) on 82 SMs.
TEST(LaunchArguments, AKernelTellsItsGridItsWarpsAndItsTraffic) {
  Gpu gpu = load_gpu("nvidia-rtx-3090");
  gpu.sm.count = 82;
  KernelLaunch launch;
  launch.grid = {7, 3, 1}, launch.threads_per_block = 132;
  launch.registers_per_thread = 40, launch.shared_bytes_per_block = 3072;
  KernelTime time;
  time.time = Seconds{2e-6}, time.limiter = Limiter::l2, time.occupancy = 0.416;
  time.dram_read_bytes = 4096.4, time.dram_write_bytes = 511.5;
  json expected{{"registers per thread", 40},
                {"shared memory", 3072},
                {"blocks per SM", 21.0 / 82.0},
                {"warps per SM", 105.0 / 82.0},
                {"grid", {7, 3, 1}},
                {"block", {132, 1, 1}},
                {"limited by", "l2"},
                {"est. achieved occupancy %", 42},
                {"DRAM read bytes", 4096},
                {"DRAM written bytes", 512}};
  EXPECT_EQ(members([&](JsonObject& a) { add_launch(a, launch, time, gpu); }), expected);

  launch.flops = 1234.0;
  expected["FLOPs"] = 1234;
  EXPECT_EQ(members([&](JsonObject& a) { add_launch(a, launch, time, gpu); }), expected);

  // A block of whole warps, and one thread more.
  launch.threads_per_block = 128;
  EXPECT_EQ(members([&](JsonObject& a) { add_launch(a, launch, time, gpu); })["warps per SM"], 84.0 / 82.0);
  launch.threads_per_block = 129;
  EXPECT_EQ(members([&](JsonObject& a) { add_launch(a, launch, time, gpu); })["warps per SM"], 105.0 / 82.0);
}

TEST(LaunchArguments, ACopyTellsItsBytesAndTheirRate) {
  const FixedWork work{.what = FixedWork::What::memcpy_device, .bytes = 3e6};
  EXPECT_EQ(members([&](JsonObject& a) { add_copy(a, work, 2e-6); }),
            (json{{"bytes", 3000000}, {"memory bandwidth (GB/s)", 1500}}));
  EXPECT_EQ(members([&](JsonObject& a) { add_copy(a, work, 0.0); }),
            (json{{"bytes", 3000000}, {"memory bandwidth (GB/s)", 0}}));
}

}  // namespace
}  // namespace ridgeline
