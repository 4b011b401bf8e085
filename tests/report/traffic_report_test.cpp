// Bytes and hits come out under the key and the unit that they have.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/report/json/kernel_json.h"
#include "sim/report/json/launch_json.h"
#include "sim/report/json/prediction_json.h"
#include "sim/report/text/notes.h"
#include "sim/report/text/prediction_text.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

TEST(TrafficReport, AKernelReadsWhatItReadsAndWritesWhatItWrites) {
  KernelPrediction kernel;
  kernel.launches.resize(1);
  kernel.times.resize(1);
  kernel.dram_read_bytes = 700.0;
  kernel.dram_write_bytes = 30.0;
  kernel.l2_hit_rate = 0.2;
  const auto told = kernel_json(kernel, {}, "");
  EXPECT_EQ(told["dram_read_bytes"], 700.0);
  EXPECT_EQ(told["dram_write_bytes"], 30.0);
  EXPECT_EQ(told["l2_hit_rate"], 0.2);
}

TEST(TrafficReport, ALaunchTellsItsGridAndItsBlock) {
  KernelPrediction kernel;
  kernel.launches.resize(1);
  kernel.times.resize(1);
  kernel.launches[0].grid = {7, 3, 2};
  kernel.launches[0].threads_per_block = 96;
  kernel.launches[0].registers_per_thread = 40;
  kernel.launches[0].shared_bytes_per_block = 1024;
  const auto told = kernel_json(kernel, {}, "")["kernels"].at(0);
  EXPECT_EQ(told["grid"], (std::vector<std::int64_t>{7, 3, 2}));
  EXPECT_EQ(told["block"], 96);
  EXPECT_EQ(told["registers"], 40);
  EXPECT_EQ(told["shared_bytes"], 1024);
}

TEST(TrafficReport, AProfileKeepsItsLevelsApart) {
  KernelProfile p;
  p.l1_read_bytes = 1.0, p.l1_hit_rate = 0.1;
  p.l2_read_bytes = 2.0, p.l2_write_bytes = 3.0, p.l2_hit_rate = 0.2;
  p.dram_read_bytes = 4.0, p.dram_write_bytes = 5.0;
  p.theoretical_occupancy = 0.3, p.achieved_occupancy = 0.25;
  const auto told = profile_json(p);
  EXPECT_EQ(told["l1_read_bytes"], 1.0);
  EXPECT_EQ(told["l1_hit_rate"], 0.1);
  EXPECT_EQ(told["l2_read_bytes"], 2.0);
  EXPECT_EQ(told["l2_write_bytes"], 3.0);
  EXPECT_EQ(told["l2_hit_rate"], 0.2);
  EXPECT_EQ(told["dram_read_bytes"], 4.0);
  EXPECT_EQ(told["dram_write_bytes"], 5.0);
  EXPECT_EQ(told["theoretical_occupancy"], 0.3);
  EXPECT_EQ(told["achieved_occupancy"], 0.25);
}

TEST(TrafficReport, ALaunchNamesOperandsAndTraffic) {
  KernelKind kind;
  kind.launch.work = MemoryBoundWork{};
  kind.launch.reads = {{0, 64.0}, {1, 36.0}};
  kind.launch.writes = {{2, 7.0}};
  kind.each.dram_read_bytes = 50.0;
  kind.each.dram_write_bytes = 6.0;
  kind.each.l2_bytes = 107.0;
  kind.each.l2_hit_rate = 0.75;
  const auto traffic = launch_json(kind, load_gpu("nvidia-t4"))["traffic"];
  EXPECT_EQ(traffic["operands_read_bytes"], 100.0);
  EXPECT_EQ(traffic["operands_written_bytes"], 7.0);
  EXPECT_EQ(traffic["l2_bytes"], 107.0);
  EXPECT_EQ(traffic["l2_hit_rate"], 0.75);
  EXPECT_EQ(traffic["dram_read_bytes"], 50.0);
  EXPECT_EQ(traffic["dram_write_bytes"], 6.0);
}

TEST(TrafficReport, AGroupOfAStepSaysWhatShareOfItsRequestsHit) {
  Prediction prediction;
  KernelGroup& group = prediction.kernels.emplace_back();
  group.time = Seconds{2.0};
  group.read_bytes = 90.0, group.written_bytes = 10.0, group.dram_bytes = 40.0;
  group.l2_bytes = 100.0, group.l2_hit_bytes = 60.0;
  group.occupied_s = 0.5;
  const auto told = prediction_json(prediction)["kernels"][0];
  EXPECT_EQ(told["read_bytes"], 90.0);
  EXPECT_EQ(told["written_bytes"], 10.0);
  EXPECT_EQ(told["dram_bytes"], 40.0);
  EXPECT_EQ(told["l2_hit_rate"], 0.6);
  EXPECT_EQ(told["occupancy"], 0.25);
}

// 3 GiB are 3.22 GB: a wrong divisor under the heading shows.
TEST(TrafficReport, TheTableOfGpusIsInTheUnitOfItsHeading) {
  Prediction prediction;
  prediction.hardware = "nvidia-t4";
  prediction.memory.peak_allocated = std::int64_t{3} << 30;
  prediction.memory.peak_reserved = std::int64_t{5} << 30;
  prediction.memory.device_used = std::int64_t{7} << 30;
  const std::string text = prediction_table("", std::span(&prediction, 1));
  EXPECT_NE(text.find("GiB    GiB    GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("3.00   5.00   7.00"), std::string::npos) << text;
}

// Beyond four kinds without a rule, the others are one line that counts them all.
TEST(TrafficReport, KindsWithoutARuleBeyondTheFirstAreCountedTogether) {
  Prediction p;
  p.step.gpu_busy = Seconds{1.0};
  for (int kind = 0; kind < 6; ++kind) {
    const std::string name = "op" + std::to_string(kind);
    p.approximated.push_back({name, name + " has no rule", 10 + kind, Seconds{0.1 - 0.01 * kind}});
    p.notes.push_back(name + " has no rule");
  }
  const std::string told = notes_text(p, nullptr, Notes::folded);
  EXPECT_NE(told.find("10 x op0"), std::string::npos) << told;
  EXPECT_NE(told.find(std::to_string(13 + 14 + 15) + " x 3 other operations"), std::string::npos) << told;
}

}  // namespace
}  // namespace ridgeline
