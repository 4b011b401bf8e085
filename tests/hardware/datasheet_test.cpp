// What a datasheet states follows from cores, operations a clock and clock within 1 %.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

struct Datasheet {
  const char* name;
  double fp32, fp16, bf16, tf32;  ///< TFLOP/s, dense; 0 = the unit does not exist
  double bandwidth;               ///< GB/s
  double l2_mib, watts, gigabytes;
  const char* source;
};

constexpr Datasheet kDatasheets[] = {
    {"nvidia-v100-sxm2-16gb", 15.7, 125, 0, 0, 900, 6, 300, 16, "Tesla V100 whitepaper WP-08608, table 1"},
    {"nvidia-v100-sxm2-32gb", 15.7, 125, 0, 0, 900, 6, 300, 32, "V100 datasheet, 2020"},
    {"nvidia-v100-pcie-32gb", 14, 112, 0, 0, 900, 6, 250, 32, "V100 datasheet, 2020"},
    {"nvidia-t4", 8.1, 65, 0, 0, 320, 4, 70, 16, "T4 datasheet, 2019"},
    {"nvidia-rtx-3090", 35.6, 71, 71, 35.6, 936, 6, 350, 24,
     "GA102 whitepaper, table 2: fp16 and bf16 with fp32 accumulation"},
    {"nvidia-a100-sxm4-40gb", 19.5, 312, 312, 156, 1555, 40, 400, 40, "A100 whitepaper, table 4"},
    {"nvidia-a100-sxm4-80gb", 19.5, 312, 312, 156, 2039, 40, 400, 80, "A100 datasheet, 2021"},
    {"nvidia-a100-pcie-40gb", 19.5, 312, 312, 156, 1555, 40, 250, 40, "A100 datasheet, 2020"},
    {"nvidia-a100-pcie-80gb", 19.5, 312, 312, 156, 1935, 40, 300, 80, "A100 datasheet, 2021"},
    {"nvidia-h100-sxm5-80gb", 66.9, 989.4, 989.4, 494.7, 3350, 50, 700, 80, "H100 whitepaper, table 2"},
    {"nvidia-h100-pcie-80gb", 51.2, 756, 756, 378, 2039, 50, 350, 80, "H100 whitepaper, table 2; datasheet: 2 TB/s"},
    {"nvidia-h200-sxm-141gb", 67, 989, 989, 494, 4800, 60, 700, 141,
     "H200 datasheet, halved where it counts sparsity; L2 as the driver reports it"},
    {"nvidia-l4", 30.3, 121, 121, 60, 300, 48, 72, 24, "L4 datasheet, halved where it counts sparsity"},
    {"nvidia-a10g", 35, 70, 70, 35, 600, 6, 300, 24, "A10G datasheet"},
    {"nvidia-a40", 37.4, 149.7, 149.7, 74.8, 696, 6, 300, 48, "A40 datasheet"},
    {"nvidia-rtx-a6000", 38.7, 154.8, 154.8, 77.4, 768, 6, 300, 48, "RTX A6000 datasheet, halved for sparsity"},
    {"nvidia-rtx-4090", 82.6, 165.2, 165.2, 82.6, 1008, 72, 450, 24, "Ada whitepaper, fp32 sums"},
    {"nvidia-l40s", 91.6, 362, 362, 183, 864, 96, 350, 48, "L40S datasheet"},
    {"nvidia-gh200-96gb", 67, 990, 990, 494, 4000, 50, 700, 96, "GH200 datasheet, halved for sparsity"},
};

TEST(Datasheet, peaks_follow_from_cores_operations_and_clock_within_one_percent) {
  for (const Datasheet& sheet : kDatasheets) {
    for (const Numbers numbers : {Numbers::datasheet, Numbers::measured}) {
      const Gpu gpu = load_gpu(sheet.name, {}, numbers);
      const MathRates& rates = gpu.sm.rates;
      const auto within = [&](FlopsPerSecond peak, double stated, const char* type) {
        if (stated == 0) EXPECT_EQ(peak.value(), 0) << sheet.name << " " << type;
        else EXPECT_NEAR(peak.value() * 1e-12 / stated, 1.0, 0.01) << sheet.name << " " << type << ", " << sheet.source;
      };
      within(gpu.peak(rates.fp32), sheet.fp32, "fp32");
      within(gpu.tensor_peak(rates.tensor_fp16), sheet.fp16, "fp16");
      within(gpu.tensor_peak(rates.tensor_bf16), sheet.bf16, "bf16");
      within(gpu.tensor_peak(rates.tensor_tf32), sheet.tf32, "tf32");
    }
  }
}

TEST(Datasheet, bandwidth_cache_and_power_are_the_stated_ones) {
  for (const Datasheet& sheet : kDatasheets) {
    const Gpu gpu = load_gpu(sheet.name);
    EXPECT_DOUBLE_EQ(gpu.dram.bandwidth.value(), sheet.bandwidth * 1e9) << sheet.name;
    EXPECT_EQ(gpu.l2.capacity.value(), sheet.l2_mib * kMiB) << sheet.name;
    EXPECT_EQ(gpu.power.limit.value(), sheet.watts) << sheet.name;
    // What a program can use lies a little below the binary size (HBM of 80 GB boards is 80 GiB) and never above it.
    EXPECT_LE(gpu.dram.capacity.value(), sheet.gigabytes * kGiB) << sheet.name;
    EXPECT_GT(gpu.dram.capacity.value(), sheet.gigabytes * 0.91 * kGiB) << sheet.name;
  }
}

TEST(Datasheet, achieved_streams_stay_below_the_datasheet_and_above_seventy_percent) {
  for (const Datasheet& sheet : kDatasheets) {
    const DramSpec dram = load_gpu(sheet.name).dram;
    const double copy = 1.0 / (0.5 / dram.read_efficiency + 0.5 / dram.write_efficiency + dram.turnaround);
    EXPECT_GT(copy, 0.70) << sheet.name;
    EXPECT_LT(copy, 0.97) << sheet.name;
  }
}

TEST(Datasheet, published_copies_are_reproduced) {
  const auto copy = [](const char* name) {
    const DramSpec dram = load_gpu(name).dram;
    return dram.bandwidth.value() * 1e-9 / (0.5 / dram.read_efficiency + 0.5 / dram.write_efficiency + dram.turnaround);
  };
  EXPECT_NEAR(copy("nvidia-v100-pcie-32gb"), 806,
              12);  // gpu-benches gpu-stream scale, V100 PCIe 16 GB: 804 and 809 GB/s
  EXPECT_NEAR(copy("nvidia-a100-sxm4-40gb"), 1381, 20);  // the same, A100 SXM4 40 GB: 1381 and 1382 GB/s
  EXPECT_NEAR(copy("nvidia-a100-sxm4-80gb"), 1752, 25);  // the same, asymptote of large arrays
  EXPECT_NEAR(copy("nvidia-h100-pcie-80gb"), 1704, 25);  // the same, H100 PCIe
  EXPECT_NEAR(copy("nvidia-t4"), 240, 5);                // chsasank/device-benchmarks
  EXPECT_NEAR(copy("nvidia-rtx-3090"), 831, 10);         // chsasank/device-benchmarks
}

}  // namespace
}  // namespace ridgeline
