// Kernels beside collectives, as measured on two and four H200, and the limits of the law.
#include "sim/network/overlap.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/hardware/load_gpu.h"
#include "sim/network/collective_case.h"
#include "sim/network/load_cluster.h"
#include "sim/study/measured_ops.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

using nlohmann::json;

constexpr double kMedian = 0.08, kWorst = 0.25;  // of both times
constexpr double kDisturbed = 2.0;  // a collective alone that took so many times what the law says was not alone

/// Thread blocks of the libraries' kernels and bytes of their operands, as the shapes say.
const std::map<std::string, KernelBesides>& kernels() {
  static const std::map<std::string, KernelBesides> known{
      {"gemm_8192", {Seconds{}, 2048, 1, Bytes{8e8}, 0}},
      {"gemm_16384x3072x768", {Seconds{}, 1536, 1, Bytes{2.3e8}, 0}},
      {"gemm_fp32_4096", {Seconds{}, 1024, 2, Bytes{2e8}, 0}},
      {"add_512MB", {Seconds{}, 1e6, 8, Bytes{1.61e9}, 1}},
      {"attention_16x12x1024x64", {Seconds{}, 1536, 1, Bytes{1e8}, 0}},
      {"layer_norm_16384x4096", {Seconds{}, 16384, 8, Bytes{2.68e8}, 1}},
      {"add_8MB", {Seconds{}, 4096, 8, Bytes{0}, 1}}};
  return known;
}

TEST(Overlap, both_times_are_what_an_h200_took) {
  std::vector<double> errors;
  int disturbed = 0;
  for_each_row(testing::measurements().file("h200/parallel/overlap.jsonl"), [&](const json& row) {
    const std::string key = row["op"].get<std::string>() + row["compute"].get<std::string>() + row["bytes"].dump();
    if (!held_out_by_shape(hash_of(key + row["world"].dump()))) return;
    const Cluster cluster = load_cluster("h200-x" + std::to_string(row["world"].get<int>()));
    const Gpu gpu = load_gpu(cluster.gpu_name);
    const Collective one{
        .kind = *collective_kind_from(row["op"].get<std::string>()), .ranks = cluster.gpus, .bytes = row["bytes"]};
    CollectiveTime collective = collective_time(cluster, gpu, one, place(cluster, cluster.gpus));
    if (row["collective_us"].get<double>() > kDisturbed * in_microseconds(collective.call)) {
      ++disturbed;
      return;
    }
    collective.time = microseconds(row["collective_us"]);
    KernelBesides kernel = kernels().at(row["compute"]);
    kernel.time = microseconds(row["compute_us"]);
    const SideBySide both = side_by_side(gpu, collective, kernel);
    const auto compare = [&](const char* what, Seconds predicted, double us, bool covered) {
      if (!covered) return;  // the other ended before it
      errors.push_back(std::abs(in_microseconds(predicted) / us - 1.0));
      if (errors.back() > kWorst)
        fmt::print("{} {}: {:.0f} us, measured {:.0f}\n", row["compute"].get<std::string>() + " beside " + key, what,
                   in_microseconds(predicted), us);
    };
    compare("kernel", both.kernel, row["compute_beside_us"], row["covered"][0]);
    compare("collective", both.collective, row["collective_beside_us"], row["covered"][1]);
  });
  ASSERT_GE(errors.size(), 30u);
  std::sort(errors.begin(), errors.end());
  fmt::print("n {}  median {:.1f} %  nine in ten {:.1f} %  worst {:.1f} %\n", errors.size(),
             100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10], 100 * errors.back());
  EXPECT_LE(errors[errors.size() / 2], kMedian);
  EXPECT_LE(errors.back(), kWorst);
  EXPECT_EQ(disturbed, 1);
}

class OverlapLimits : public ::testing::Test {
 protected:
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  CollectiveTime collective = [] {
    CollectiveTime time;
    time.time = microseconds(1000);
    time.channels = 24;
    time.dram = Bytes{5e8};
    return time;
  }();
};

TEST_F(OverlapLimits, a_kernel_of_one_full_wave_takes_two) {
  const KernelBesides full{.time = microseconds(100), .blocks = 132};
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, full), 2.0);
  const KernelBesides small{.time = microseconds(100), .blocks = 108};
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, small), 1.0);
}

TEST_F(OverlapLimits, a_kernel_of_many_waves_loses_the_share_of_sms) {
  const KernelBesides many{.time = microseconds(100), .blocks = 1e6};
  EXPECT_NEAR(compute_slowdown(gpu, collective, many), 132.0 / 108.0, 1e-6);
}

TEST_F(OverlapLimits, nothing_beside_slows_nothing) {
  const KernelBesides kernel{.time = microseconds(100), .blocks = 1000};
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, kernel, 0.0), 1.0);
  collective.channels = 0;
  EXPECT_DOUBLE_EQ(compute_slowdown(gpu, collective, kernel), 1.0);
  EXPECT_DOUBLE_EQ(collective_slowdown(gpu, collective, kernel), 1.0);
}

TEST_F(OverlapLimits, more_channels_and_more_of_the_dram_slow_more) {
  KernelBesides kernel{.time = microseconds(100), .blocks = 1e6, .dram = Bytes{1e8}, .memory_bound = 1};
  CollectiveTime fewer = collective;
  fewer.channels = 8;
  EXPECT_GT(compute_slowdown(gpu, collective, kernel), compute_slowdown(gpu, fewer, kernel));
  collective.dram = Bytes{1e9};
  const double light = collective_slowdown(gpu, collective, kernel);
  kernel.dram = Bytes{4.6e8};
  EXPECT_GT(collective_slowdown(gpu, collective, kernel), light);
}

TEST_F(OverlapLimits, a_collective_waits_until_the_last_blocks_are_placed) {
  const KernelBesides waves{.time = microseconds(100), .blocks = 132 * 4};
  EXPECT_NEAR(in_microseconds(wait_for_room(gpu, waves, microseconds(0))), 75, 1e-9);
  EXPECT_NEAR(in_microseconds(wait_for_room(gpu, waves, microseconds(30))), 45, 1e-9);
  EXPECT_EQ(wait_for_room(gpu, waves, microseconds(90)).value(), 0.0);
  const KernelBesides full{.time = microseconds(100), .blocks = 132}, small{.time = microseconds(100), .blocks = 100};
  EXPECT_NEAR(in_microseconds(wait_for_room(gpu, full, microseconds(10))), 90, 1e-9);
  EXPECT_EQ(wait_for_room(gpu, small, microseconds(10)).value(), 0.0);
}

}  // namespace
}  // namespace ridgeline
