// Files of other simulators, as small as they can be, become descriptions that Ridgeline reads.
#include "sim/other_simulators/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/recognition/recognise.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::other_simulators {
namespace {

using ::testing::HasSubstr;

struct Read {
  MachineFacts facts;
  Translation translation;
  Gpu gpu;
};

/// Reads a file of another simulator, by its kind, as `ridgeline hardware` does.
Read read(const std::string& name, const std::string& text, const std::string& system = "") {
  const std::string file = temporary_path(name);
  std::ofstream(file) << text;
  Read read;
  const recognition::FileKind* kind = recognition::recognise(file).kind;
  EXPECT_NE(kind, nullptr) << name;
  if (kind == nullptr) return read;
  EXPECT_TRUE(is_other_simulators(kind->name)) << kind->name;
  read.facts = machine_facts(file, kind->name, system);
  read.translation = translated(read.facts, file);
  if (!read.translation.chip.empty()) read.gpu = gpu_from_yaml(read.translation.chip, name);
  std::filesystem::remove(file);
  return read;
}

constexpr double kGibi = 1 << 30, kGiga = 1e9;

double peak(const Gpu& gpu) { return 2.0 * gpu.sm.count * gpu.sm.rates.tensor_fp16 * gpu.clock.boost_tensor.value(); }

TEST(Calculon, SystemsHaveRatesMemoriesAndNetworks) {
  const Read both[] = {
      read("h100.json", R"({"matrix": {"float16": {"tflops": 1000}}, "vector": {}, "mem1": {"GiB": 80, "GBps": 3072},
        "networks": [{"bandwidth": 450, "size": 8}, {"bandwidth": 50, "size": 65536, "latency": 0.00002}]})"),
      read("a100.json", R"({"matrix": {"tflops": 312}, "mem1": {"GiB": 80, "GBps": 2048}, "processing_mode": "x",
        "networks": [{"bandwidth": 300, "size": 8}, {"bandwidth": 25, "size": 65536}]})")};
  EXPECT_EQ(both[0].translation.base, "nvidia-h100-sxm5-80gb");
  EXPECT_EQ(both[1].translation.base, "nvidia-a100-sxm4-80gb");
  EXPECT_DOUBLE_EQ(both[0].gpu.dram.bandwidth.value(), 3072 * kGiga);
  EXPECT_DOUBLE_EQ(both[0].gpu.dram.capacity.value(), 80 * kGibi);
  EXPECT_NEAR(peak(both[0].gpu), 1e15, 0.05e15);
  const Cluster cluster = cluster_from_yaml(both[0].translation.cluster, "c");
  EXPECT_EQ(cluster.gpus, 8);
  EXPECT_EQ(cluster.nics.count, 8);
  EXPECT_DOUBLE_EQ(cluster.nics.rate.value(), 50 * kGiga);
  EXPECT_THAT(both[1].facts.unread, ::testing::Contains("processing_mode"));
}

TEST(LlmCompass, UnitsMakeRates) {
  const Read one = read("x.json", R"({"name": "a chip", "device_count": 4,
    "interconnect": {"link": {"bandwidth_per_direction_byte": 25e9}, "link_count_per_device": 12},
    "device": {"frequency_Hz": 1e9, "compute_chiplet": {"core_count": 100, "core": {"sublane_count": 4,
      "systolic_array": {"array_width": 16, "array_height": 16, "mac_per_cycle": 1}, "SRAM_KB": 192}},
      "io": {"global_buffer_MB": 40, "memory_channel_active_count": 5, "pin_count_per_channel": 1024,
             "bandwidth_per_pin_bit": 3.2e9}, "memory": {"total_capacity_GB": 80}}})");
  EXPECT_DOUBLE_EQ(one.facts.at(Fact::tensor_flops), 2.0 * 100 * 4 * 256 * 1e9);
  EXPECT_DOUBLE_EQ(one.facts.at(Fact::memory_bandwidth), 5 * 1024 * 3.2e9 / 8);
  EXPECT_DOUBLE_EQ(one.facts.at(Fact::link), 300 * kGiga);
  EXPECT_EQ(one.gpu.sm.count, 100);
  EXPECT_NEAR(peak(one.gpu), 2.0 * 100 * 4 * 256 * 1e9, 0.05 * 2.0 * 100 * 4 * 256 * 1e9);
}

TEST(SimuMax, SystemsAreRead) {
  const Read one = read("s.json", R"({"sys_name": "a100_x", "num_per_node": 4, "accelerator": {"mem_gbs": 80,
    "op": {"default": {"tflops": 312}}, "bandwidth": {"default": {"gbps": 1600}}},
    "networks": {"high_intra_node": {"bandwidth": {"gbps": 300}}, "inter_node": {"bandwidth": {"gbps": 25, "latency_us": 35}}}})");
  EXPECT_DOUBLE_EQ(one.gpu.dram.bandwidth.value(), 1600 * kGiga);
  EXPECT_THAT(one.translation.base, HasSubstr("a100"));
  EXPECT_EQ(cluster_from_yaml(one.translation.cluster, "c").gpus, 4);
}

TEST(GenZ, HasSeveralSystemsOfWhichOneIsChosen) {
  const std::string text =
      "from typing import Any, Dict\nsystem_configs: Dict[str, Dict[str, Any]] = {\n"
      "  # TFLOP/s, GB, GB/s\n  'First' : {'Flops': 312, 'Memory_size': 80, 'Memory_BW':2039, 'ICN': 150 , "
      "'real_values':True},\n"
      "  \"Second\": {'Flops': {'bf16': 989, 'fp8': 1979}, 'Memory_size': 80, 'Memory_BW': 3400},\n}\n";
  EXPECT_DOUBLE_EQ(read("genz.py", text).gpu.dram.bandwidth.value(), 2039 * kGiga);
  EXPECT_DOUBLE_EQ(read("genz.py", text, "Second").facts.at(Fact::tensor_flops), 989e12);
  EXPECT_THROW(read("genz.py", text, "Third"), UserError);
}

TEST(LlmServingSim, ClustersNameTheirDevice) {
  const Read one = read("c.json", R"({"num_nodes": 1, "link_bw": 112, "nodes": [{"num_instances": 2, "instances": [
    {"hardware": "A6000", "npu_mem": {"mem_size": 48, "mem_bw": 768}, "npu_num": 1},
    {"hardware": "A6000", "npu_mem": {"mem_size": 48, "mem_bw": 768}, "npu_num": 1}]}]})");
  EXPECT_EQ(one.translation.base, "nvidia-rtx-a6000");
  EXPECT_EQ(cluster_from_yaml(one.translation.cluster, "c").gpus, 2);
}

TEST(AstraSim, NetworksAreClustersAndSystemsAreChips) {
  const Read yaml = read("hgx_h100.yml",
                         "topology: [ Switch, Ring ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 400.0, 50.0 ]  # GB/s\n"
                         "latency: [ 936.25, 1000 ]\n");
  EXPECT_EQ(yaml.translation.chip, "");
  const Cluster cluster = cluster_from_yaml(yaml.translation.cluster, "c");
  EXPECT_EQ(cluster.gpus, 8);
  EXPECT_EQ(cluster.nodes, 4);
  EXPECT_THAT(cluster.gpu_name, HasSubstr("h100"));
  EXPECT_DOUBLE_EQ(read("s.json", R"({"scheduling-policy": "LIFO", "local-mem-bw": 3350, "peak-perf": 900})")
                       .facts.at(Fact::memory_bandwidth),
                   3350 * kGiga);
}

TEST(GpgpuSim, OptionsMakeAChip) {
  const Read one =
      read("gpgpusim.config",
           "-gpgpu_n_clusters 46\n-gpgpu_n_cores_per_cluster 1\n-gpgpu_n_mem 16\n"
           "-gpgpu_n_sub_partition_per_mchannel 2\n-gpgpu_clock_domains 1132:1132:1132:3500.5\n"
           "-gpgpu_shader_registers 65536\n-gpgpu_shader_core_pipeline 1536:32\n"
           "-gpgpu_cache:dl2 S:64:128:16,L:B:m:L:P\n-gpgpu_dram_buswidth 2\n-dram_data_command_freq_ratio 4\n");
  EXPECT_EQ(one.gpu.sm.count, 46);
  EXPECT_EQ(one.gpu.sm.max_warps, 48);
  EXPECT_DOUBLE_EQ(one.gpu.l2.capacity.value(), 64.0 * 128 * 16 * 32);
  EXPECT_DOUBLE_EQ(one.gpu.dram.bandwidth.value(), 16 * 2 * 4 * 3500.5e6);
}

TEST(Translations, SayWhatTheFileDoesNot) {
  const Read one = read("h100.json", R"({"matrix": {"tflops": 1000}, "mem1": {"GiB": 80, "GBps": 3072}})");
  EXPECT_THAT(one.translation.chip, HasSubstr("#   sm.count: 132\n"));
  EXPECT_THAT(one.translation.chip, HasSubstr("#   power.limit: 700 W\n"));
  EXPECT_EQ(one.translation.cluster, "");
}

}  // namespace
}  // namespace ridgeline::other_simulators
