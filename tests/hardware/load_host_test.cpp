#include "sim/hardware/load_host.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>

#include "sim/workload/host_class.h"

namespace ridgeline {
namespace {

TEST(LoadHost, every_shipped_host_gives_each_class_of_host_work_a_cost) {
  ASSERT_GE(host_names().size(), 3u);
  for (const std::string& name : host_names()) {
    const Host host = load_host(name, host_class_names());
    EXPECT_EQ(host.class_costs.size(), host_class_names().size()) << name;
    EXPECT_GT(host.launch_call.value(), 0.0) << name;
  }
}

TEST(LoadHost, the_costs_stand_in_the_order_of_the_classes) {
  const Host host = load_host("default", host_class_names());
  const YAML::Node classes = YAML::LoadFile(RIDGELINE_SOURCE_DIR "/hw/hosts/default.yaml")["classes"];
  for (const auto& [host_class, name] : {std::pair{HostClass::linear, "linear"},
                                         {HostClass::accumulate_grad, "accumulate_grad"},
                                         {HostClass::dropout, "dropout"}}) {
    const auto text = classes[name]["value"].as<std::string>();  // "28.2 us"
    ASSERT_TRUE(text.ends_with(" us")) << text;
    EXPECT_NEAR(in_microseconds(host.class_costs[static_cast<std::size_t>(host_class)]), std::stod(text), 1e-9) << name;
  }
}

TEST(LoadHost, a_host_based_on_another_takes_what_it_does_not_say) {
  const Host slow = load_host("slow", host_class_names()), normal = load_host("default", host_class_names());
  EXPECT_GT(slow.scale, normal.scale);
  EXPECT_EQ(slow.class_costs, normal.class_costs);
  EXPECT_LT(load_host("fast", host_class_names()).scale, normal.scale);
}

TEST(LoadHost, a_host_that_nobody_measured_may_be_any_of_those_seen) {
  const Host any = load_host("default", host_class_names());
  EXPECT_FALSE(any.known);
  EXPECT_DOUBLE_EQ(any.least_factor(), any.least_scale / any.scale);
  EXPECT_DOUBLE_EQ(any.most_factor(), any.most_scale / any.scale);
  EXPECT_LT(any.least_factor(), 1.0);
  EXPECT_GT(any.most_factor(), 2.0);
  const Host measured = load_host("h200-virtual-machine", host_class_names());
  EXPECT_TRUE(measured.known);
  EXPECT_EQ(measured.scale, any.scale);
  EXPECT_DOUBLE_EQ(measured.most_factor(), 1.0 + measured.spread);
  EXPECT_TRUE(load_host("slow", host_class_names()).known);
}

TEST(LoadHost, who_states_a_scale_or_a_part_knows_the_host) {
  EXPECT_TRUE(load_host("default", host_class_names(), {{"scale", "1.4", ""}}).known);
  const Host slow_launches = load_host("default", host_class_names(), {{"parts.launch", "3", ""}});
  EXPECT_TRUE(slow_launches.known);
  EXPECT_EQ(slow_launches.parts.launch, 3.0);
  EXPECT_EQ(slow_launches.parts.python, 1.0);
  EXPECT_FALSE(load_host("default", host_class_names(), {{"launch_call", "2 us", ""}}).known);
}

TEST(LoadHost, a_class_nobody_knows_is_reported) {
  const std::string_view classes[] = {"linear"};
  EXPECT_THROW((void)load_host("default", classes), config::ConfigError);
}

TEST(LoadSoftware, every_shipped_software_loads) {
  ASSERT_GE(software_names().size(), 2u);
  for (const std::string& name : software_names()) EXPECT_EQ(load_software(name).name, name);
}

// From the sources of the versions.
TEST(LoadSoftware, versions_before_2_0_differ_where_their_sources_do) {
  const auto of = [](const char* version) { return load_software(std::string("pytorch-1.") + version); };
  for (const char* version : {"7", "10", "11", "12", "13"}) {
    const Software software = of(version);
    const int minor = std::stoi(version);
    EXPECT_EQ(software.clipping_waits, minor < 10) << version;
    EXPECT_EQ(software.softmax_saves_input, minor < 11) << version;
    EXPECT_EQ(software.norms_by_vectors, minor >= 11) << version;
    EXPECT_EQ(software.matmul_tf32, minor < 12) << version;
    EXPECT_EQ(software.addmm_fuses_bias, minor >= 12) << version;
    EXPECT_EQ(software.lazy_module_loading, minor >= 13) << version;
    EXPECT_FALSE(software.has_compile || software.has_flash_attention || software.zero_grad_to_none) << version;
  }
}

TEST(LoadSoftware, the_stack_of_2021_has_no_fused_attention_and_loads_all_modules) {
  const Software old = load_software("pytorch-1.10"), today = load_software("pytorch-2.11");
  EXPECT_FALSE(old.has_flash_attention);
  EXPECT_FALSE(old.lazy_module_loading);
  EXPECT_TRUE(today.has_flash_attention);
  EXPECT_TRUE(old.softmax_saves_input && old.mask_always_added);
  EXPECT_FALSE(today.softmax_saves_input || today.mask_always_added);
  EXPECT_FALSE(old.softmax_keeps_long_rows || old.gathers_by_vectors || old.norms_sum_in_parts);
  EXPECT_TRUE(today.softmax_keeps_long_rows && today.gathers_by_vectors && today.norms_sum_in_parts);
  EXPECT_TRUE(today.norms_by_vectors && load_software("pytorch-1.13").norms_by_vectors);
  EXPECT_TRUE(today.compiled_mask && load_software("pytorch-2.11-cuda-12.6").compiled_mask);
  for (const char* of_before_2025 : {"pytorch-2.0", "pytorch-2.1", "pytorch-2.5"})
    EXPECT_FALSE(load_software(of_before_2025).compiled_mask) << of_before_2025;
  EXPECT_FALSE(old.softmax_fills_blocks || load_software("pytorch-2.0").softmax_fills_blocks);
  EXPECT_TRUE(today.softmax_fills_blocks && load_software("pytorch-2.5").softmax_fills_blocks);
  EXPECT_FALSE(old.clips_by_lists || old.clipping_waits || today.clipping_waits);
  EXPECT_TRUE(today.clips_by_lists && load_software("pytorch-2.0").clipping_waits);
  EXPECT_EQ(load_software("pytorch-2.0").foreach_adam_lists, 2);
  EXPECT_EQ(today.foreach_adam_lists, 1);
  EXPECT_EQ(today.cublas_workspace_hopper.value(), 32 * kMiB);
  EXPECT_EQ(load_software("pytorch-2.11", {{"cublas_workspace", "1 MiB", ""}}).cublas_workspace.value(), kMiB);
}

}  // namespace
}  // namespace ridgeline
