#include "sim/hardware/load_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <variant>

#include "sim/config/parse_yaml.h"
#include "sim/hardware/describe_gpu.h"
#include "sim/hardware/keys.h"
#include "sim/hardware/resolve_file.h"
#include "sim/units/user_error.h"

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
                                          "nvidia-b200",
                                          "nvidia-b300",
                                          "nvidia-gb200",
                                          "nvidia-h20-3e"};
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

/// A chip, or why there is none.
template <class Make>
std::variant<Gpu, std::string> outcome(const Make& make) {
  try {
    return make();
  } catch (const UserError& error) {
    return error.what();
  }
}

/// The whole tree, changed and read anew: what load_gpu must answer however it comes by it.
Gpu read_changed_tree(const std::string& name, const std::vector<config::Override>& changes) {
  const std::string file = hardware_file(name);
  config::Node tree = resolve_file(config::load_yaml(file), file).measured;
  for (const config::Override& change : changes) config::apply_override(tree, change);
  Gpu gpu;
  gpu.name = name;
  read_gpu(config::Value(tree), gpu, nullptr);
  return gpu;
}

TEST(LoadGpu, a_changed_field_is_what_the_changed_file_would_say) {
  int made = 0, refused = 0;
  for (const std::string name : {"nvidia-h100-sxm5-80gb", "nvidia-t4"}) {
    const Gpu as_it_is = load_gpu(name);
    for (const HardwareKey& key : hardware_keys()) {
      std::vector<std::string> values{"many", "-1", "[1, 2]", "{value: 3}", "0", key.show(as_it_is)};
      for (const double factor : {0.01, 0.5, 2.0, 100.0}) {
        Gpu other = as_it_is;
        if (key.set == nullptr) continue;
        key.set(other, factor * key.get(as_it_is));
        values.push_back(key.show(other));
      }
      for (const std::string& value : values) {
        const std::vector<config::Override> changes{{std::string(key.key), value, ""}};
        const auto fast = outcome([&] { return load_gpu(name, changes); });
        EXPECT_EQ(fast, outcome([&] { return read_changed_tree(name, changes); })) << key.key << " = " << value;
        (std::holds_alternative<Gpu>(fast) ? made : refused) += 1;
      }
    }
  }
  EXPECT_GT(made, 500);
  EXPECT_GT(refused, 500);
}

TEST(LoadGpu, changes_that_contradict_each_other_or_lists_of_kernels_are_read_as_a_whole) {
  const std::string name = "nvidia-h100-sxm5-80gb";
  const std::vector<std::vector<config::Override>> several{
      {{"l2.capacity", "60 GiB", ""}, {"dram.capacity", "50 GiB", ""}},
      {{"dram.bandwidth", "nothing", ""}, {"dram.bandwidth", "2 TB/s", ""}},
      {{"dram", "{bandwidth: 2 TB/s}", ""}, {"sm.count", "7", ""}},
      {{"gemm.tiles", "[{kernels: simt, tile: [64, 64, 8], stages: 2, warps: 4, registers: 128}]", ""},
       {"sm.registers", "4096", ""}},
      {{"title", "another", ""}, {"sm.cuont", "7", ""}}};
  for (const auto& changes : several)
    EXPECT_EQ(outcome([&] { return load_gpu(name, changes); }),
              outcome([&] { return read_changed_tree(name, changes); }))
        << changes.front().key;
}

// Files are laid over each other before anything is changed: such a change would do nothing.
TEST(LoadGpu, KeysOfFilesAreNotChanged) {
  for (const char* key : {"extends", "measured", "measured.dram.bandwidth", "base"}) {
    try {
      (void)load_gpu("nvidia-t4", {{key, "nvidia-a10g", ""}});
      ADD_FAILURE() << key;
    } catch (const config::ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith(std::string("--set ") + key + "=nvidia-a10g: "));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("a file says it for itself"));
    }
  }
}

}  // namespace
}  // namespace ridgeline
