// Names of drivers, and measured kernels carried over to another GPU.
#include "sim/answer/carried_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/scenario/driver_names.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kGiB64 = std::int64_t{1} << 30;

TEST(DriverNames, EveryShippedGpuIsFoundByTheNameOfItsDriver) {
  struct Named {
    const char *driver, *hardware;
    std::int64_t memory;
  };
  const std::vector<Named> names = {{"NVIDIA A100-SXM4-40GB", "nvidia-a100-sxm4-40gb", 0},
                                    {"NVIDIA A100-SXM4-80GB", "nvidia-a100-sxm4-80gb", 0},
                                    {"A100-SXM4-80GB", "nvidia-a100-sxm4-80gb", 79 * kGiB64},
                                    {"NVIDIA A100-PCIE-40GB", "nvidia-a100-pcie-40gb", 39 * kGiB64},
                                    {"NVIDIA A100 80GB PCIe", "nvidia-a100-pcie-80gb", 79 * kGiB64},
                                    {"NVIDIA A10G", "nvidia-a10g", 0},
                                    {"NVIDIA A40", "nvidia-a40", 0},
                                    {"NVIDIA B200", "nvidia-b200", 0},
                                    {"NVIDIA B300", "nvidia-b300", 0},
                                    {"NVIDIA GB200", "nvidia-gb200", 0},
                                    {"NVIDIA H20-3e", "nvidia-h20-3e", 0},
                                    {"NVIDIA GH200 480GB", "nvidia-gh200-96gb", 0},
                                    {"NVIDIA H100 PCIe", "nvidia-h100-pcie-80gb", 0},
                                    {"NVIDIA H100 80GB HBM3", "nvidia-h100-sxm5-80gb", 0},
                                    {"NVIDIA H200", "nvidia-h200-sxm-141gb", 0},
                                    {"NVIDIA L4", "nvidia-l4", 0},
                                    {"NVIDIA L40S", "nvidia-l40s", 0},
                                    {"NVIDIA GeForce RTX 3090", "nvidia-rtx-3090", 0},
                                    {"NVIDIA GeForce RTX 4090", "nvidia-rtx-4090", 0},
                                    {"NVIDIA RTX A6000", "nvidia-rtx-a6000", 0},
                                    {"Tesla T4", "nvidia-t4", 0},
                                    {"Tesla V100-PCIE-32GB", "nvidia-v100-pcie-32gb", 0},
                                    {"Tesla V100-SXM2-16GB", "nvidia-v100-sxm2-16gb", 0},
                                    {"Tesla V100-SXM2-32GB", "nvidia-v100-sxm2-32gb", 0},
                                    {"Tesla V100-SXM2", "nvidia-v100-sxm2-32gb", 31 * kGiB64}};
  std::set<std::string> found;
  for (const Named& named : names) {
    EXPECT_EQ(hardware_of_driver_name(named.driver, named.memory), named.hardware) << named.driver;
    found.insert(named.hardware);
  }
  for (const std::string& known : hardware_names()) EXPECT_TRUE(found.contains(known)) << known;
  EXPECT_EQ(hardware_of_driver_name("NVIDIA GeForce GTX 1080", 0), "");
  EXPECT_EQ(hardware_of_driver_name("", 0), "");
}

TEST(CarriedTime, IsTheRecordedOneOnTheGpuOfTheRecordingAndGoesWithWhatTheClassNeeds) {
  const Gpu v100 = load_gpu("nvidia-v100-sxm2-16gb"), t4 = load_gpu("nvidia-t4"),
            h100 = load_gpu("nvidia-h100-sxm5-80gb");
  trace::MeasuredKernel product, sweep;
  product.name = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn";
  sweep.name = "void at::native::vectorized_elementwise_kernel<4>";
  product.seconds = sweep.seconds = 1e-3;
  for (const trace::MeasuredKernel& kernel : {product, sweep}) {
    EXPECT_NEAR(carried_seconds({kernel}, v100, v100), 1e-3, 1e-12);
    EXPECT_LT(carried_seconds({kernel}, v100, h100), 0.6e-3);
    EXPECT_GT(carried_seconds({kernel}, v100, t4), 1.5e-3);
  }
}

TEST(CarriedTime, CopiesFromTheHostGoWithTheLinkToIt) {
  const Gpu v100 = load_gpu("nvidia-v100-sxm2-16gb"), gh200 = load_gpu("nvidia-gh200-96gb");
  trace::MeasuredKernel copy;
  copy.name = "Memcpy HtoD (Pinned -> Device)";
  copy.seconds = 1e-3;
  EXPECT_NEAR(carried_seconds({copy}, v100, v100), 1e-3, 1e-12);
  EXPECT_NEAR(carried_seconds({copy}, v100, gh200), 1e-3 * ratio(v100.host_link.bandwidth, gh200.host_link.bandwidth),
              1e-12);
}

TEST(CarriedTime, ItsBytesTakeThatLong) {
  const Gpu v100 = load_gpu("nvidia-v100-sxm2-16gb");
  const auto bytes = carried_bytes(v100, v100, load_software("pytorch-2.11"), "analytic");
  trace::MeasuredKernel kernel;
  std::int64_t before = 0;
  for (const double seconds : {3e-6, 1e-5, 1e-4, 1e-3, 1e-2}) {
    kernel.seconds = seconds;
    const std::int64_t now = bytes({kernel});
    EXPECT_GT(now, before);
    before = now;
  }
  // 10 ms of DRAM's bandwidth, within what no kernel reaches of it.
  EXPECT_NEAR(static_cast<double>(before), 10e-3 * v100.dram.bandwidth.value(),
              0.3 * 10e-3 * v100.dram.bandwidth.value());
}

}  // namespace
}  // namespace ridgeline
