#include "sim/hardware/load_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace ridgeline {
namespace {

TEST(LoadGpu, all_descriptions_load_with_and_without_their_measured_section) {
  const std::vector<std::string> expected{"nvidia-a100-pcie-40gb",
                                          "nvidia-a100-pcie-80gb",
                                          "nvidia-a100-sxm4-40gb",
                                          "nvidia-a100-sxm4-80gb",
                                          "nvidia-h100-pcie-80gb",
                                          "nvidia-h100-sxm5-80gb",
                                          "nvidia-h200-sxm-141gb",
                                          "nvidia-rtx-3090",
                                          "nvidia-t4",
                                          "nvidia-v100-pcie-32gb",
                                          "nvidia-v100-sxm2-16gb",
                                          "nvidia-v100-sxm2-32gb",
                                          "nvidia-l4",
                                          "nvidia-a10g",
                                          "nvidia-a40",
                                          "nvidia-rtx-a6000",
                                          "nvidia-rtx-4090",
                                          "nvidia-l40s",
                                          "nvidia-gh200-96gb",
                                          "nvidia-b200"};
  EXPECT_THAT(hardware_names(), ::testing::IsSupersetOf(expected));
  for (const std::string& name : hardware_names()) {
    EXPECT_EQ(load_gpu(name).name, name);
    EXPECT_FALSE(load_gpu(name).title.empty()) << name;
    EXPECT_NO_THROW((void)load_gpu(name, {}, Numbers::datasheet)) << name;
  }
}

TEST(LoadGpu, the_measured_section_wins_unless_only_the_datasheet_is_asked_for) {
  EXPECT_NEAR(load_gpu("nvidia-h200-sxm-141gb").clock.tensor_droop.value(), 250e6, 1);
  EXPECT_EQ(load_gpu("nvidia-h200-sxm-141gb", {}, Numbers::datasheet).clock.tensor_droop.value(), 0.0);
}

TEST(LoadGpu, an_override_wins_over_the_measured_section_and_over_the_base) {
  const std::vector<config::Override> changes{{"launch.gap", "5 us", ""},
                                              {"dram.capacity", "10 GiB", ""},
                                              {"sm.count", "7", ""},
                                              {"sm.async_copy", "false", ""}};
  for (const Numbers numbers : {Numbers::measured, Numbers::datasheet}) {
    const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb", changes, numbers);
    EXPECT_DOUBLE_EQ(gpu.launch.gap.value(), 5e-6);
    EXPECT_EQ(gpu.dram.capacity.value(), 10 * kGiB);
    EXPECT_EQ(gpu.sm.count, 7);
    EXPECT_FALSE(gpu.sm.async_copy);
  }
}

TEST(LoadGpu, twice_the_datasheet_bandwidth_is_twice_the_achieved_one) {
  for (const std::string& name : hardware_names()) {
    const Gpu gpu = load_gpu(name);
    const std::string twice = std::to_string(2 * gpu.dram.bandwidth.value()) + " B/s";
    const Gpu faster = load_gpu(name, {{"dram.bandwidth", twice, ""}});
    const auto achieved = [](const Gpu& g) { return g.dram.bandwidth.value() * g.dram.read_efficiency; };
    EXPECT_NEAR(achieved(faster) / achieved(gpu), 2.0, 1e-9) << name;
    EXPECT_EQ(faster.dram.write_efficiency, gpu.dram.write_efficiency) << name;
  }
}

TEST(LoadGpu, a_path_and_a_text_work_like_a_name) {
  const std::string file = hardware_file("nvidia-t4");
  EXPECT_EQ(load_gpu(file).sm.count, load_gpu("nvidia-t4").sm.count);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(gpu_from_yaml(text.str(), "mine.yaml").dram.capacity, load_gpu("nvidia-t4").dram.capacity);
}

TEST(LoadGpu, generations_have_the_units_they_had) {
  const Gpu v100 = load_gpu("nvidia-v100-sxm2-16gb"), t4 = load_gpu("nvidia-t4"),
            a100 = load_gpu("nvidia-a100-sxm4-40gb"), h100 = load_gpu("nvidia-h100-sxm5-80gb");
  EXPECT_EQ(v100.sm.rates.tensor_bf16, 0);
  EXPECT_EQ(t4.sm.rates.tensor_tf32, 0);
  EXPECT_EQ(v100.sm.rates.sparsity_factor, 1);
  EXPECT_EQ(a100.sm.rates.sparsity_factor, 2);
  EXPECT_TRUE(a100.sm.async_copy && !a100.sm.warpgroup_mma);
  EXPECT_TRUE(h100.sm.tensor_memory_accelerator && h100.sm.warpgroup_mma);
  EXPECT_EQ(name_of(t4.architecture), "turing");
}

}  // namespace
}  // namespace ridgeline
