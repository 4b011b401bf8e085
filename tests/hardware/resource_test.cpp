#include "sim/hardware/resource.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

TEST(Resource, every_one_has_a_name_of_its_own) {
  std::set<std::string_view> names, titles;
  for (const Resource resource : kResources) {
    names.insert(name_of(resource));
    titles.insert(title_of(resource));
  }
  EXPECT_EQ(names.size(), kResources.size());
  EXPECT_EQ(titles.size(), kResources.size());
}

TEST(Resource, more_of_one_changes_it_by_the_factor_and_no_other) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Gpu dram = with_more(gpu, Resource::dram_bandwidth, 1.1);
  EXPECT_DOUBLE_EQ(dram.dram.bandwidth.value(), 1.1 * 4.8e12);
  EXPECT_DOUBLE_EQ(dram.l2.read_bandwidth.value(), gpu.l2.read_bandwidth.value());
  EXPECT_EQ(dram.sm.count, gpu.sm.count);
  const Gpu tensor = with_more(gpu, Resource::tensor_throughput, 1.1);
  EXPECT_DOUBLE_EQ(tensor.sm.rates.tensor_bf16, 1.1 * 2048);
  EXPECT_DOUBLE_EQ(tensor.sm.rates.fp32, 128);
  const Gpu fma = with_more(gpu, Resource::fma_throughput, 1.1);
  EXPECT_DOUBLE_EQ(fma.sm.rates.fp32, 1.1 * 128);
  EXPECT_DOUBLE_EQ(fma.sm.issue_rate, 1.1);
  EXPECT_DOUBLE_EQ(fma.sm.rates.tensor_bf16, 2048);
}

TEST(Resource, sms_come_whole_and_at_least_one_more) {
  Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_EQ(with_more(gpu, Resource::sm_count, 1.1).sm.count, 145);
  EXPECT_EQ(with_more(gpu, Resource::sm_count, 1.001).sm.count, 133);
  gpu.sm.count = 1;
  EXPECT_EQ(with_more(gpu, Resource::sm_count, 1.1).sm.count, 2);
}

TEST(Resource, a_higher_clock_keeps_the_droop_in_proportion) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Gpu more = with_more(gpu, Resource::core_clock, 1.1);
  EXPECT_DOUBLE_EQ((more.clock.tensor - more.clock.tensor_droop).value(),
                   1.1 * (gpu.clock.tensor - gpu.clock.tensor_droop).value());
}

TEST(Resource, latencies_shorten_and_host_costs_fall) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const Gpu more = with_more(gpu, Resource::latency, 1.1);
  EXPECT_DOUBLE_EQ(more.launch.gap.value(), gpu.launch.gap.value() / 1.1);
  EXPECT_DOUBLE_EQ(more.dram.latency.value(), gpu.dram.latency.value() / 1.1);
  Host host;
  EXPECT_DOUBLE_EQ(with_more(host, Resource::host_speed, 1.25).scale, 0.8);
  EXPECT_DOUBLE_EQ(with_more(host, Resource::latency, 1.25).scale, 1.0);
}

}  // namespace
}  // namespace ridgeline
