#include "sim/other_simulators/machine_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "sim/config/parse_yaml.h"
#include "sim/input/text_source.h"
#include "sim/other_simulators/gpgpusim.h"
#include "sim/units/user_error.h"

namespace ridgeline::other_simulators {
namespace {

using config::Node;

/// Dotted keys and their texts; a list's elements have their number as a step.
using Flat = std::map<std::string, std::string, std::less<>>;

constexpr double kGiga = 1e9, kTera = 1e12, kMebi = 1 << 20, kGibi = 1 << 30;

void flatten(const Node& node, const std::string& path, Flat& out) {
  const auto below = [&](const std::string& step) { return path.empty() ? step : path + "." + step; };
  for (const config::Entry& entry : node.entries) flatten(entry.value, below(entry.key), out);
  for (std::size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], below(std::to_string(i)), out);
  if (node.kind == Node::Kind::scalar) out.emplace(path, node.scalar);
}

std::optional<double> number(const Flat& flat, std::string_view key) {
  const auto found = flat.find(key);
  if (found == flat.end()) return {};
  double value = 0.0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

struct Row {
  std::string_view kind, key;
  Fact fact;
  double unit;
};

// The first key that is there counts where several have one fact.
constexpr std::array kRows{
    Row{"calculon", "matrix.float16.tflops", Fact::tensor_flops, kTera},
    Row{"calculon", "matrix.bfloat16.tflops", Fact::tensor_flops, kTera},
    Row{"calculon", "matrix.tflops", Fact::tensor_flops, kTera},
    Row{"calculon", "mem1.GiB", Fact::memory, kGibi},
    Row{"calculon", "mem1.GBps", Fact::memory_bandwidth, kGiga},
    Row{"calculon", "networks.0.bandwidth", Fact::link, kGiga},
    Row{"calculon", "networks.0.size", Fact::gpus, 1.0},
    Row{"calculon", "networks.1.bandwidth", Fact::nic, kGiga},
    Row{"calculon", "networks.1.latency", Fact::nic_latency, 1.0},
    Row{"simumax", "accelerator.op.matmul.tflops", Fact::tensor_flops, kTera},
    Row{"simumax", "accelerator.op.default.tflops", Fact::tensor_flops, kTera},
    Row{"simumax", "accelerator.mem_gbs", Fact::memory, kGibi},
    Row{"simumax", "accelerator.bandwidth.default.gbps", Fact::memory_bandwidth, kGiga},
    Row{"simumax", "accelerator.bandwidth.gbps", Fact::memory_bandwidth, kGiga},
    Row{"simumax", "networks.high_intra_node.bandwidth.gbps", Fact::link, kGiga},
    Row{"simumax", "networks.inter_node.bandwidth.gbps", Fact::nic, kGiga},
    Row{"simumax", "networks.inter_node.bandwidth.latency_us", Fact::nic_latency, 1e-6},
    Row{"simumax", "num_per_node", Fact::gpus, 1.0},
    Row{"llmcompass", "device.frequency_Hz", Fact::clock, 1.0},
    Row{"llmcompass", "device.compute_chiplet.core_count", Fact::sms, 1.0},
    Row{"llmcompass", "device.memory.total_capacity_GB", Fact::memory, kGibi},
    Row{"llmcompass", "device.io.global_buffer_MB", Fact::l2, kMebi},
    Row{"llmcompass", "device.compute_chiplet.core.SRAM_KB", Fact::l1_and_shared, 1024.0},
    Row{"llmcompass", "device.compute_chiplet.core.register_file.num_registers", Fact::registers, 4.0},
    Row{"llmcompass", "device_count", Fact::gpus, 1.0},
    Row{"llmservingsim", "nodes.0.instances.0.npu_mem.mem_size", Fact::memory, kGibi},
    Row{"llmservingsim", "nodes.0.instances.0.npu_mem.mem_bw", Fact::memory_bandwidth, kGiga},
    Row{"llmservingsim", "npu_mem.mem_size", Fact::memory, kGibi},
    Row{"llmservingsim", "npu_mem.mem_bw", Fact::memory_bandwidth, kGiga},
    Row{"llmservingsim", "link_bw", Fact::link, kGiga},
    Row{"llmservingsim", "num_nodes", Fact::nodes, 1.0},
    Row{"astra-system", "local-mem-bw", Fact::memory_bandwidth, kGiga},
    Row{"astra-system", "peak-perf", Fact::tensor_flops, kTera},
    Row{"astra-network", "bandwidth.0", Fact::link, kGiga},
    Row{"astra-network", "npus_count.0", Fact::gpus, 1.0},
    Row{"astra-network", "bandwidth.1", Fact::nic, kGiga},
    Row{"astra-network", "latency.1", Fact::nic_latency, 1e-9},
    Row{"astra-network", "link-bandwidth.0", Fact::link, kGiga},
    Row{"astra-network", "units-count.0", Fact::gpus, 1.0},
    Row{"astra-network", "link-bandwidth.1", Fact::nic, kGiga},
    Row{"astra-network", "hbm-bandwidth.0", Fact::memory_bandwidth, kGiga},
};

struct Tool {
  std::string_view kind, name, title;  ///< `title`: key of the machine's name
};
constexpr std::array kTools{Tool{"calculon", "Calculon", "name"},
                            Tool{"simumax", "SimuMax", "sys_name"},
                            Tool{"llmcompass", "LLMCompass", "name"},
                            Tool{"genz", "GenZ", ""},
                            Tool{"llmservingsim", "LLMServingSim", "nodes.0.instances.0.hardware"},
                            Tool{"astra-network", "ASTRA-sim", ""},
                            Tool{"astra-system", "ASTRA-sim", ""},
                            Tool{"gpgpusim", "GPGPU-Sim", ""}};

double product_of(const Flat& flat, std::initializer_list<std::string_view> keys) {
  double product = 1.0;
  for (const std::string_view key : keys) product *= number(flat, key).value_or(0.0);
  return product;
}

/// Rates that LLMCompass's file gives as counts of units.
void add_units_of_llmcompass(const Flat& flat, MachineFacts& machine) {
  const std::string array = "device.compute_chiplet.core.systolic_array.";
  const double units =
      product_of(flat, {"device.compute_chiplet.core_count", "device.compute_chiplet.core.sublane_count",
                        array + "array_width", array + "array_height", array + "mac_per_cycle", "device.frequency_Hz"});
  machine.set(Fact::tensor_flops, 2.0 * units, array + "array_width and others");
  constexpr double kBits = 8.0;
  machine.set(Fact::memory_bandwidth,
              product_of(flat, {"device.io.memory_channel_active_count", "device.io.pin_count_per_channel",
                                "device.io.bandwidth_per_pin_bit"}) /
                  kBits,
              "device.io.bandwidth_per_pin_bit and others");
  machine.set(
      Fact::link,
      product_of(flat, {"interconnect.link.bandwidth_per_direction_byte", "interconnect.link_count_per_device"}),
      "interconnect.link and link_count_per_device");
}

/// Dimensions behind the first count machines.
void add_nodes_of_astra(const Flat& flat, MachineFacts& machine) {
  constexpr int kMostDimensions = 8;
  for (const std::string key : {"npus_count.", "units-count."}) {
    double nodes = 1.0;
    for (int i = 1; i < kMostDimensions; ++i) nodes *= number(flat, key + std::to_string(i)).value_or(1.0);
    if (nodes > 1.0) machine.set(Fact::nodes, nodes, key + "1 and further");
  }
}

/// GPUs of all instances of LLMServingSim's first node.
void add_gpus_of_llmservingsim(const Flat& flat, MachineFacts& machine) {
  double gpus = 0.0;
  constexpr int kMostInstances = 64;
  for (int i = 0; i < kMostInstances; ++i)
    for (const char* key : {"npu_num", "num_npus"})
      gpus += number(flat, fmt::format("nodes.0.instances.{}.{}", i, key)).value_or(0.0);
  machine.set(Fact::gpus, gpus, "npu_num of the instances");
  for (int i = 1; i < kMostInstances; ++i)
    if (const auto other = flat.find(fmt::format("nodes.0.instances.{}.hardware", i));
        other != flat.end() && other->second != machine.title)
      machine.notes.push_back(
          fmt::format("instance {} has another device, {}: a machine of one kind is written", i, other->second));
}

/// A part of GenZ's dictionary as YAML reads it: {'A100': {'Flops': 312, ...}}.
Flat genz_system(const std::string& text, const std::string& file, const std::string& wanted, MachineFacts& machine) {
  std::size_t begin = text.find("system_configs");
  begin = begin == std::string::npos ? text.find('{') : text.find('{', text.find('=', begin));
  if (begin == std::string::npos) throw UserError(fmt::format("{}: no dictionary of systems in it", file));
  std::string dictionary;
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '#') {  // a comment of Python, up to its line's end
      i = std::min(text.find('\n', i), text.size() - 1);
      dictionary += '\n';
      continue;
    }
    dictionary += text[i] == '\t' ? ' ' : text[i];
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) break;
  }
  // YAML wants a blank behind a colon.
  for (std::size_t i = dictionary.find("':"); i != std::string::npos; i = dictionary.find("':", i + 2))
    dictionary.insert(i + 2, " ");
  const Node all = config::parse_yaml(dictionary, file);
  const bool one = all.find("Memory_BW") != nullptr;
  for (const config::Entry& entry : all.entries)
    if (entry.value.find("Memory_BW") != nullptr) machine.systems.push_back(entry.key);
  const Node* chosen = one ? &all : nullptr;
  if (!one && !machine.systems.empty()) {
    machine.title = wanted.empty() ? machine.systems.front() : wanted;
    chosen = all.find(machine.title);
  }
  if (chosen == nullptr)
    throw UserError(
        fmt::format("--system: {} has no system '{}'; it has {}", file, wanted, fmt::join(machine.systems, ", ")));
  Flat flat;
  flatten(*chosen, "", flat);
  return flat;
}

void add_genz(const Flat& flat, MachineFacts& machine) {
  for (const char* key : {"Flops", "Flops.bf16", "Flops.fp16"})
    if (const auto value = number(flat, key)) machine.set(Fact::tensor_flops, *value * kTera, key);
  if (const auto value = number(flat, "Memory_size")) machine.set(Fact::memory, *value * kGibi, "Memory_size");
  if (const auto value = number(flat, "Memory_BW")) machine.set(Fact::memory_bandwidth, *value * kGiga, "Memory_BW");
  if (const auto value = number(flat, "ICN")) machine.set(Fact::link, *value * kGiga, "ICN");
  if (const auto value = number(flat, "L2_Cache_Size")) machine.set(Fact::l2, *value * kMebi, "L2_Cache_Size");
}

/// Keys whose first step no row of the kind reads.
void list_unread(const Flat& flat, std::string_view kind, MachineFacts& machine) {
  for (const auto& [key, text] : flat) {
    const bool used =
        std::any_of(kRows.begin(), kRows.end(), [&](const Row& row) { return row.kind == kind && row.key == key; }) ||
        std::any_of(machine.facts.begin(), machine.facts.end(), [&](const auto& one) { return one.second.key == key; });
    std::string step = key;
    for (std::size_t dot = step.find('.'); dot != std::string::npos; dot = step.find('.', dot + 1))
      if (dot + 1 < step.size() && std::isdigit(static_cast<unsigned char>(step[dot + 1])) != 0) {
        step.resize(dot);
        break;
      }
    if (!used && (machine.unread.empty() || machine.unread.back() != step)) machine.unread.push_back(step);
  }
  machine.unread.erase(std::unique(machine.unread.begin(), machine.unread.end()), machine.unread.end());
}

}  // namespace

bool is_other_simulators(std::string_view kind) {
  return std::any_of(kTools.begin(), kTools.end(), [&](const Tool& tool) { return tool.kind == kind; });
}

MachineFacts machine_facts(const std::string& file, std::string_view kind, const std::string& system) {
  const auto tool = std::find_if(kTools.begin(), kTools.end(), [&](const Tool& one) { return one.kind == kind; });
  if (tool == kTools.end()) throw UserError(fmt::format("{}: is no file of another simulator", file));
  MachineFacts machine;
  machine.tool = tool->name;
  machine.title = std::filesystem::path(file).stem().string();
  if (machine.title == "gpgpusim" || machine.title == "network" || machine.title == "system")
    if (const std::string folder = std::filesystem::path(file).parent_path().filename().string(); !folder.empty())
      machine.title = folder;
  const std::string text = read_text(file);
  if (kind == "gpgpusim") {
    add_gpgpusim(text, machine);
  } else if (kind == "genz") {
    add_genz(genz_system(text, file, system, machine), machine);
  } else {
    Flat flat;
    flatten(config::parse_yaml(text, file), "", flat);
    if (const auto title = flat.find(tool->title); title != flat.end()) machine.title = title->second;
    for (const Row& row : kRows)
      if (row.kind == kind)
        if (const auto value = number(flat, row.key)) machine.set(row.fact, *value * row.unit, std::string(row.key));
    if (kind == "llmcompass") add_units_of_llmcompass(flat, machine);
    if (kind == "astra-network") add_nodes_of_astra(flat, machine);
    if (kind == "llmservingsim") add_gpus_of_llmservingsim(flat, machine);
    list_unread(flat, kind, machine);
  }
  if (machine.facts.empty()) throw UserError(fmt::format("{}: says no number of a machine that could be used", file));
  return machine;
}

}  // namespace ridgeline::other_simulators
