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

TEST(Resource, every_bandwidth_grows_by_the_factor) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto grown = [](auto more, auto before) { EXPECT_DOUBLE_EQ((more / before).value(), 1.25); };
  const Gpu on_chip = with_more(gpu, Resource::shared_memory_bandwidth, 1.25);
  grown(on_chip.sm.shared_bandwidth, gpu.sm.shared_bandwidth);
  grown(on_chip.sm.l1_bandwidth, gpu.sm.l1_bandwidth);
  const Gpu l2 = with_more(gpu, Resource::l2_bandwidth, 1.25);
  grown(l2.l2.read_bandwidth, gpu.l2.read_bandwidth);
  grown(l2.l2.write_bandwidth, gpu.l2.write_bandwidth);
  grown(l2.l2.shared_read_bandwidth, gpu.l2.shared_read_bandwidth);
  grown(with_more(gpu, Resource::l2_capacity, 1.25).l2.capacity, gpu.l2.capacity);
  grown(with_more(gpu, Resource::power_limit, 1.25).power.limit, gpu.power.limit);
}

}  // namespace
}  // namespace ridgeline
