#include "sim/hardware/derived_defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/hardware/describe_gpu.h"
#include "sim/hardware/keys.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

using config::Node;

// Shares and counts that were measured on one board and are taken for all where nothing else is known.
constexpr double kWritesOfReads = 0.65;  // H200: L2 writes over reads
constexpr double kSharedReads = 1.45;    // H200: reads of lines that many SMs ask for, over other reads; two partitions
constexpr double kAtomicsPerSmClock = 2.16;  // H200
constexpr double kAtomicsOfAddress = 0.69;   // H200, a clock
constexpr double kBlocksPerClock = 0.81;     // H200
constexpr double kIdleShare = 0.17;          // of the limit: what the shipped boards draw with clocks up
constexpr double kTf32Energy = 1.9;          // H200: tf32 over bf16, a FLOP

struct MemoryKind {
  std::string_view type;
  double read, write, turnaround;
  double energy;  ///< pJ a byte
  std::string_view source;
};
/// By the start of dram.type, the longest match first.
constexpr std::array kMemories{
    MemoryKind{"GDDR6X", 0.92, 0.92, 0.045, 160, "as an RTX 3090"},
    MemoryKind{"GDDR7", 0.92, 0.92, 0.045, 130, "as GDDR6X; no achieved figure is known"},
    MemoryKind{"GDDR6", 0.85, 0.85, 0.06, 150,
               "between an A40 (0.98) and a T4 or A10 (0.80), boards with error correction in band"},
    MemoryKind{"HBM3e", 0.92, 0.92, 0.05, 80, "typical of HBM3"},
    MemoryKind{"HBM3", 0.92, 0.92, 0.05, 90, "typical of HBM3"},
    MemoryKind{"HBM2e", 0.92, 0.92, 0.08, 117, "typical of HBM2"},
    MemoryKind{"HBM2", 0.92, 0.92, 0.08, 117, "typical of HBM2"}};

const Node* find_at(const Node& tree, std::string_view key) {
  const Node* node = &tree;
  for (std::size_t begin = 0; node && begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    node = node->find(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return node;
}

/// False where something that is no section stands in the way; the reader reports that.
bool set_at(Node& tree, std::string_view key, const Node& value) {
  Node* node = &tree;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    const std::string step(key.substr(begin, end - begin));
    if (node->kind == Node::Kind::null) node->kind = Node::Kind::mapping;
    if (node->kind != Node::Kind::mapping) return false;
    Node* next = node->find(step);
    if (!next) {
      Node made;
      made.kind = Node::Kind::mapping;
      made.origin = node->origin;
      node->entries.push_back({step, node->origin, std::move(made)});
      next = &node->entries.back().value;
    }
    node = next;
    begin = end + 1;
  }
  *node = value;
  return true;
}

/// The text of a field's value; empty when it is not there or no scalar.
std::string text_at(const Node& tree, std::string_view key) {
  const Node* field = find_at(tree, key);
  if (!field) return "";
  const Node* value = field->find("value");
  if (!value) value = field;
  return value->kind == Node::Kind::scalar ? value->scalar : "";
}

/// A number in base units, if it is there and one.
std::optional<double> number_at(const Node& tree, std::string_view key) {
  const auto measure = parse_measure(text_at(tree, key));
  if (!measure) return {};
  return measure->value;
}

/// As a file would say it.
std::string written(double value, Dimension dimension) {
  switch (dimension) {
    case Dimension::hertz: return fmt::format("{:.5g} MHz", value * 1e-6);
    case Dimension::bytes_per_second: return fmt::format("{:.4g} GB/s", value * 1e-9);
    case Dimension::watts: return fmt::format("{:.3g} W", value);
    case Dimension::joules_per_flop: return fmt::format("{:.3g} pJ/FLOP", value * 1e12);
    default: return fmt::format("{:.4g}", value);
  }
}

/// Estimates from numbers that the tree has by now.
class Estimates {
 public:
  Estimates(Node& tree, config::Origin origin) : tree_(tree), origin_(std::move(origin)) {}

  /// `key` = factor times the product of `of`, where they are known and it is not.
  void product(std::string_view key, double factor, std::initializer_list<std::string_view> of, Dimension dimension,
               const std::string& why) {
    double value = factor;
    for (const std::string_view other : of) {
      const auto number = number_at(tree_, other);
      const HardwareKey* key_of = find_hardware_key(other);
      if (!number || (key_of && !key_of->allows(*number))) return;  // the reader tells what is wrong with it
      value *= *number;
    }
    set(key, written(value, dimension), why);
  }
  void set(std::string_view key, std::string value, const std::string& why) {
    if (find_at(tree_, key)) return;
    Node field;
    field.kind = Node::Kind::mapping;
    field.origin = origin_;
    field.entries = {{"value", origin_, scalar(std::move(value))}, {"source", origin_, scalar("estimated: " + why)}};
    (void)set_at(tree_, key, field);
  }

 private:
  [[nodiscard]] Node scalar(std::string text) const {
    Node node;
    node.kind = Node::Kind::scalar;
    node.scalar = std::move(text);
    node.origin = origin_;
    return node;
  }
  Node& tree_;
  config::Origin origin_;
};

void estimate_clocks(Estimates& e, const Node& defaults) {
  if (const auto share = number_at(defaults, "derive.knee"))
    e.product("clock.knee", *share, {"clock.boost"}, Dimension::hertz,
              fmt::format("{:g} of clock.boost; {}", *share, find_at(defaults, "derive.knee.source")->scalar));
  for (const std::string_view clock : {"clock.boost_tensor", "clock.sustained", "clock.tensor"})
    e.product(clock, 1.0, {"clock.boost"}, Dimension::hertz, "the boost clock");
  e.set("clock.tensor_droop", "0 MHz", "none is documented");
}

void estimate_power(Estimates& e) {
  e.product("power.idle", kIdleShare, {"power.limit"}, Dimension::watts, "0.17 of power.limit, as the shipped boards");
  e.product("power.tensor_bf16", 1.0, {"power.tensor_fp16"}, Dimension::joules_per_flop, "as fp16");
  e.product("power.tensor_tf32", kTf32Energy, {"power.tensor_fp16"}, Dimension::joules_per_flop,
            "1.9 times fp16, as measured on an NVIDIA H200");
}

void estimate_caches(Estimates& e, const Node& tree, const Node& defaults) {
  if (const auto bytes = number_at(defaults, "derive.l2_read"))
    e.product("l2.read_bandwidth", *bytes, {"sm.count", "clock.boost"}, Dimension::bytes_per_second,
              fmt::format("{} of an SM at clock.boost; {}", text_at(defaults, "derive.l2_read"),
                          find_at(defaults, "derive.l2_read.source")->scalar));
  e.product("l2.write_bandwidth", kWritesOfReads, {"l2.read_bandwidth"}, Dimension::bytes_per_second,
            "0.65 of read, the ratio measured on an NVIDIA H200");
  const bool parted = number_at(tree, "l2.partitions").value_or(1.0) > 1.0;
  e.product("l2.shared_read_bandwidth", parted ? kSharedReads : 1.0, {"l2.read_bandwidth"}, Dimension::bytes_per_second,
            parted ? "1.45 of read, as on an NVIDIA H200, whose L2 has two partitions too" : "as reads; the L2 is one");
  e.product("l2.atomic_rate", kAtomicsPerSmClock, {"sm.count", "clock.boost"}, Dimension::dimensionless,
            "2.16 additions a clock an SM, as on an NVIDIA H200");
  e.product("l2.atomic_address_rate", kAtomicsOfAddress, {"clock.boost"}, Dimension::dimensionless,
            "0.69 additions a clock, as on an NVIDIA H200");
  e.product("launch.blocks_per_second", kBlocksPerClock, {"clock.boost"}, Dimension::dimensionless,
            "0.81 blocks a clock, as measured on an NVIDIA H200");
}

void estimate_dram(Estimates& e, const Node& tree) {
  const std::string type = text_at(tree, "dram.type");
  for (const MemoryKind& kind : kMemories) {
    if (!type.starts_with(kind.type)) continue;
    const std::string why = fmt::format("{}: {}", kind.type, kind.source);
    e.set("dram.read_efficiency", fmt::format("{:g}", kind.read), why);
    e.set("dram.write_efficiency", fmt::format("{:g}", kind.write), why);
    e.set("dram.turnaround", fmt::format("{:g}", kind.turnaround), why);
    e.set("power.dram", fmt::format("{:g} pJ/B", kind.energy), why);
    return;
  }
}

/// The file of defaults for an architecture and what is said of its compute capability; empty when there is none.
std::string defaults_file(const Node& tree) {
  const std::string architecture = text_at(tree, "architecture");
  if (architecture.empty()) return "";
  const std::string major = text_at(tree, "compute_major"), minor = text_at(tree, "compute_minor");
  std::vector<std::string> fitting;
  for (const std::string& name : architecture_names()) {
    if (!name.starts_with(architecture + "-")) continue;
    const std::string capability = name.substr(architecture.size() + 1);
    const std::size_t dot = capability.find('.');
    if (!major.empty() && capability.substr(0, dot) != major) continue;
    if (!minor.empty() && capability.substr(dot + 1) != minor) continue;
    fitting.push_back(name);
  }
  if (fitting.size() > 1)
    throw config::ConfigError(find_at(tree, "architecture")->origin, "architecture",
                              fmt::format("{} has several compute capabilities ({}); give compute_major and "
                                          "compute_minor",
                                          architecture, fmt::join(fitting, ", ")));
  return fitting.empty() ? "" : (config::data_folder("hw") / "architectures" / (fitting.front() + ".yaml")).string();
}

}  // namespace

std::vector<std::string> architecture_names() {
  return config::yaml_names(config::data_folder("hw") / "architectures");
}

void fill_defaults(Node& tree) {
  const auto lacks = [&tree] {
    for (const HardwareKey& key : hardware_keys())
      if (key.required && !find_at(tree, key.key)) return true;
    return false;
  };
  if (!lacks()) return;
  const std::string file = defaults_file(tree);
  if (file.empty()) return;
  const Node defaults = config::load_yaml(file);
  for (const HardwareKey& key : hardware_keys())
    if (const Node* value = find_at(defaults, key.key); value && !find_at(tree, key.key))
      (void)set_at(tree, key.key, *value);
  Estimates estimates(tree, defaults.origin);
  estimate_clocks(estimates, defaults);
  estimate_power(estimates);
  estimate_caches(estimates, tree, defaults);
  estimate_dram(estimates, tree);
}

}  // namespace ridgeline
