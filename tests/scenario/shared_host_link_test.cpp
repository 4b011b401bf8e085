// Copies with the host's memory of GPUs that hang from one PCIe switch.
#include <gtest/gtest.h>

#include <string>

#include "sim/scenario/scenario.h"

namespace ridgeline {
namespace {

double host_rate(const std::string& cluster, const std::string& parallel) {
  ScenarioSource source;
  source.text =
      "cluster: " + cluster +
      "\nmodel: gpt2\ntraining: {micro_batch: 1, sequence_length: 128, precision: bf16, parallel: " + parallel + "}\n";
  source.text_name = "scenario";
  return load_scenario(source).gpu.host_link.bandwidth.value();
}

TEST(SharedHostLink, is_the_uplink_over_the_gpus_behind_the_switch_that_run) {
  const double alone = host_rate("a100-pcie-x8", "{data: 1}"), four = host_rate("a100-pcie-x8", "{data: 4}");
  EXPECT_GT(alone, 1.0);
  EXPECT_NEAR(four, 24e9 / 4, 1) << "four of a socket's switch";
  EXPECT_DOUBLE_EQ(host_rate("a100-pcie-x8", "{data: 8}"), four) << "the other four have a switch of their own";
  EXPECT_DOUBLE_EQ(host_rate("dgx-a100", "{data: 8}"), host_rate("dgx-a100", "{data: 1}"))
      << "nobody says how the slots of this one are joined";
}

}  // namespace
}  // namespace ridgeline
