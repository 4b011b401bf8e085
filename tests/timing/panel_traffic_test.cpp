// Limits of shared panels that can be worked out by hand, and attention that feels the memory it runs on.
#include "sim/timing/products/panel_traffic.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/study/kernel_prediction.h"
#include "sim/workload/kernel_case.h"

namespace ridgeline {
namespace {

Gpu h200() { return load_gpu("nvidia-h200-sxm-141gb"); }

PanelTraffic panels() {
  return {.asked = 64e9,
          .first = 2e9,
          .cold = 2e9,
          .footprint = 20e6,
          .later = 4e9,
          .between = 40e6,
          .written = 0,
          .written_out = 0,
          .waits = 100};
}

/// What every floor begins with, its data in the DRAM.
double start(const Gpu& gpu) {
  return gpu.launch.kernel_fixed.value() + 2.0 * gpu.l2.latency.value() / gpu.clock.sustained.value() +
         gpu.dram.latency.value();
}

TEST(PanelTraffic, without_an_l2_every_request_goes_to_the_dram) {
  Gpu gpu = h200();
  gpu.l2.replacement = L2Replacement::none;
  const PanelFloor floor = panel_floor(panels(), gpu, gpu.l2.read_bandwidth.value());
  EXPECT_DOUBLE_EQ(floor.refetched, 62e9);
  EXPECT_NEAR(floor.dram, start(gpu) + 64e9 / (gpu.dram.bandwidth.value() * gpu.dram.read_efficiency), 1e-12);
}

TEST(PanelTraffic, an_l2_that_holds_all_panels_reads_each_byte_once) {
  Gpu gpu = h200();
  gpu.l2.capacity = gpu.l2.capacity * 100.0;
  const PanelFloor floor = panel_floor(panels(), gpu, gpu.l2.read_bandwidth.value());
  EXPECT_NEAR(floor.refetched, 0.0, 1.0);
  EXPECT_NEAR(floor.dram, start(gpu) + 2e9 / (gpu.dram.bandwidth.value() * gpu.dram.read_efficiency), 1e-12);
}

TEST(PanelTraffic, an_infinite_dram_leaves_the_l2) {
  Gpu gpu = h200();
  gpu.dram.bandwidth = gpu.dram.bandwidth * 1e9;
  const PanelFloor floor = panel_floor(panels(), gpu, 8e12);
  EXPECT_NEAR(floor.dram, start(gpu), 1e-9);
  EXPECT_NEAR(floor.l2, start(gpu) + 8e-3, 1e-9);
}

TEST(PanelTraffic, loads_that_follow_each_other_take_a_latency_each) {
  const Gpu gpu = h200();
  PanelTraffic traffic = panels();
  traffic.cold = 0.0;
  traffic.footprint = traffic.between = 0.0;
  const PanelFloor floor = panel_floor(traffic, gpu, 8e12);
  const double answer = gpu.l2.latency.value() / gpu.clock.sustained.value();
  EXPECT_NEAR(floor.latency, gpu.launch.kernel_fixed.value() + 103.0 * answer, 1e-12);
}

class FlashAttention : public ::testing::TestWithParam<const char*> {
 protected:
  static double seconds(const Gpu& gpu) {
    const KernelCase kernel = kernel_case_from(nlohmann::json::parse(
        R"({"op":"flash_attention","dtype":"bf16","params":{"batch":8,"heads":16,"seq":4096,"head_dim":64,"causal":false}})"));
    const Software software = load_software("pytorch-2.11");
    return predict_kernel(kernel, gpu, software, *make_engine(GetParam(), gpu)).time.value();
  }
  static double slower(void (*change)(Gpu&)) {
    Gpu gpu = h200();
    const double now = seconds(gpu);
    change(gpu);
    return seconds(gpu) / now;
  }
};

TEST_P(FlashAttention, feels_the_l2_and_the_latencies) {
  EXPECT_GT(slower([](Gpu& gpu) { gpu.l2.capacity = Bytes{64.0 * 1024}; }), 1.02);
  EXPECT_GT(slower([](Gpu& gpu) { gpu.l2.read_bandwidth = gpu.l2.read_bandwidth * 0.25; }), 1.02);
  EXPECT_GT(slower([](Gpu& gpu) { gpu.l2.latency = gpu.l2.latency * 8.0; }), 1.005);
  EXPECT_GT(slower([](Gpu& gpu) { gpu.dram.latency = gpu.dram.latency * 8.0; }), 1.005);
}

INSTANTIATE_TEST_SUITE_P(Engines, FlashAttention, ::testing::Values("analytic", "simulate"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
}  // namespace ridgeline
