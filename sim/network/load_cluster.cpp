#include "sim/network/load_cluster.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>

#include "sim/config/data_folder.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/shipped_names.h"
#include "sim/config/value.h"
#include "sim/hardware/describe_gpu.h"
#include "sim/hardware/field_reader.h"
#include "sim/hardware/hardware_file.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/resolve_file.h"
#include "sim/network/cluster_rows.h"
#include "sim/network/read_link_tree.h"

namespace ridgeline {
namespace {

using config::Node;
using config::Range;
using config::Value;

constexpr std::array<std::pair<std::string_view, Interconnect>, 5> kInterconnects{{{"nvswitch", Interconnect::nvswitch},
                                                                                   {"mesh", Interconnect::mesh},
                                                                                   {"bridge", Interconnect::bridge},
                                                                                   {"pcie", Interconnect::pcie},
                                                                                   {"none", Interconnect::none}}};
constexpr std::array<std::pair<std::string_view, PcieLevel>, 5> kLevels{{{"pix", PcieLevel::pix},
                                                                         {"pxb", PcieLevel::pxb},
                                                                         {"phb", PcieLevel::phb},
                                                                         {"node", PcieLevel::node},
                                                                         {"sys", PcieLevel::sys}}};
// A hundred times more than anything that exists; beyond that a number is a mistake.
constexpr Range kRate{1e6, 1e15}, kShare{0.01, 1.0}, kOversubscription{1.0, 1000.0}, kLatency{0.0, 1.0};
constexpr int kMostNodes = 1 << 20, kMostGpus = 1024, kMostLinks = 1024, kMostNics = 1024;

/// Keys of a description beside those of the table below.
constexpr std::array<std::string_view, 5> kPlainKeys{"title", "aliases", "extends", "source", "gpu"};

struct ClusterKey {
  std::string_view key;
  std::function<void(const Value&, Cluster&)> read;
  bool required = true;
};

int whole(const Value& value, int low, int high) { return static_cast<int>(value.integer({low, high})); }
int whole_links(const Value& value) { return whole(value, 0, kMostLinks); }

std::vector<std::vector<int>> read_matrix(const Value& value) {
  std::vector<std::vector<int>> matrix;
  for (const Value& row : value.list()) {
    matrix.emplace_back();
    for (const Value& item : row.list()) matrix.back().push_back(whole(item, 0, kMostLinks));
  }
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (matrix[i].size() != matrix.size())
      value.fail(fmt::format("row {} has {} numbers, expected {}: one a GPU", i, matrix[i].size(), matrix.size()));
    if (matrix[i][i] != 0) value.fail(fmt::format("GPU {} has links to itself", i));
    for (std::size_t j = 0; j < i; ++j)
      if (matrix[i].size() > j && matrix[j].size() > i && matrix[i][j] != matrix[j][i])
        value.fail(fmt::format("{} links from GPU {} to {} and {} back", matrix[i][j], i, j, matrix[j][i]));
  }
  return matrix;
}

/// A matrix that the description writes out wins over that of nvidia-smi.
void read_topology_into(const Value& value, Cluster& cluster) {
  Topology topology = read_topology(value);
  if (cluster.links.matrix.empty() && topology.has_nvlinks()) cluster.links.matrix = std::move(topology.nvlinks);
  cluster.links.tree = std::move(topology.seats);
}

/// In the order of a file.
const std::vector<ClusterKey>& cluster_keys() {
  static const std::vector<ClusterKey> keys{
      {"nodes", [](const Value& v, Cluster& c) { c.nodes = whole(v, 1, kMostNodes); }},
      {"gpus", [](const Value& v, Cluster& c) { c.gpus = whole(v, 1, kMostGpus); }},
      {"interconnect", [](const Value& v, Cluster& c) { c.interconnect = v.choice<Interconnect>(kInterconnects); }},
      {"nvls", [](const Value& v, Cluster& c) { c.nvls = v.boolean(); }},
      {"links.count", [](const Value& v, Cluster& c) { c.links.count = whole(v, 0, kMostLinks); }},
      {"links.rate", [](const Value& v, Cluster& c) { c.links.rate = v.quantity<BytesPerSecond>(kRate); }},
      {"links.efficiency", [](const Value& v, Cluster& c) { c.links.efficiency = v.number(kShare); }},
      {"links.matrix", [](const Value& v, Cluster& c) { c.links.matrix = read_matrix(v); }, false},
      {"links.tree", [](const Value& v, Cluster& c) { c.links.tree = read_link_tree(v); }, false},
      {"links.topology", read_topology_into, false},
      {"pcie.rate", [](const Value& v, Cluster& c) { c.pcie.rate = v.quantity<BytesPerSecond>(kRate); }},
      {"pcie.peer_to_peer", [](const Value& v, Cluster& c) { c.pcie.peer_to_peer = v.boolean(); }},
      {"pcie.host", [](const Value& v, Cluster& c) { c.pcie.host = v.quantity<BytesPerSecond>(kRate); }},
      {"pcie.p2p_level", [](const Value& v, Cluster& c) { c.pcie.p2p_level = v.choice<PcieLevel>(kLevels); }, false},
      {"pcie.uplink", [](const Value& v, Cluster& c) { c.pcie.uplink = v.quantity<BytesPerSecond>(kRate); }, false},
      {"pcie.socket", [](const Value& v, Cluster& c) { c.pcie.socket = v.quantity<BytesPerSecond>(kRate); }},
      {"nics.count", [](const Value& v, Cluster& c) { c.nics.count = whole(v, 0, kMostNics); }},
      {"nics.rate", [](const Value& v, Cluster& c) { c.nics.rate = v.quantity<BytesPerSecond>(kRate); }},
      {"nics.efficiency", [](const Value& v, Cluster& c) { c.nics.efficiency = v.number(kShare); }},
      {"nics.latency", [](const Value& v, Cluster& c) { c.nics.latency = v.quantity<Seconds>(kLatency); }},
      {"oversubscription", [](const Value& v, Cluster& c) { c.oversubscription = v.number(kOversubscription); }}};
  return keys;
}

/// Reports keys that a description does not have, with their neighbours.
void refuse_unknown_keys(const Value& root) {
  std::vector<std::string> top(kPlainKeys.begin(), kPlainKeys.end());
  std::vector<std::pair<std::string, std::vector<std::string>>> sections;
  for (const ClusterKey& one : cluster_keys()) {
    const std::size_t dot = one.key.find('.');
    const std::string head(one.key.substr(0, dot));
    if (std::find(top.begin(), top.end(), head) == top.end()) top.push_back(head);
    if (dot == std::string_view::npos) continue;
    if (sections.empty() || sections.back().first != head) sections.push_back({head, {}});
    sections.back().second.emplace_back(one.key.substr(dot + 1));
  }
  const config::Mapping whole_tree(root, top);
  for (const auto& [head, keys] : sections)
    if (whole_tree.has(head)) const config::Mapping section(whole_tree[head], keys);
}

/// Bare values (`nodes: 2`) get the source of the whole description.
void give_source(Node& node, const Node& source) {
  if (node.kind == Node::Kind::mapping && node.find("value")) {
    if (!node.find("source")) node.entries.push_back({"source", node.origin, source});
    return;
  }
  if (node.kind == Node::Kind::mapping) {
    for (config::Entry& entry : node.entries) give_source(entry.value, source);
    return;
  }
  Node field;
  field.kind = Node::Kind::mapping;
  field.origin = node.origin;
  Node value = std::move(node);
  field.entries = {{"value", value.origin, value}, {"source", value.origin, source}};
  node = std::move(field);
}

void spread_source(Node& tree, std::string_view where_none) {
  Node text;
  text.kind = Node::Kind::scalar;
  text.scalar = where_none;
  if (const Node* own = tree.find("source")) text = *own;
  else if (where_none.empty()) return;
  for (config::Entry& entry : tree.entries)
    if (std::find(kPlainKeys.begin(), kPlainKeys.end(), entry.key) == kPlainKeys.end()) give_source(entry.value, text);
}

/// The description with what it extends beneath it.
Node over_base(Node tree, std::string_view source, int depth = 0) {
  if (tree.kind != Node::Kind::mapping)
    throw config::ConfigError(tree.origin, "cluster", "expected a mapping, got " + tree.describe());
  refuse_unknown_keys(Value(tree));
  spread_source(tree, source);
  const Value extends = Value(tree)["extends"];
  if (!extends.exists()) return tree;
  if (depth > 4) extends.fail("descriptions that extend others, more than four deep");
  Node whole = over_base(config::load_yaml(described_file("cluster", "clusters", extends.text())), "", depth + 1);
  lay_over(whole, tree);
  return whole;
}

/// The GPU that the tree names; its mistakes are told at the key.
Gpu gpu_of(const Value& root) {
  const Value gpu = root["gpu"];
  const std::string name = gpu.text();
  try {
    return load_gpu(name);
  } catch (const config::ConfigError& error) {
    if (error.origin().line > 0) throw;
    gpu.fail(error.message());
  }
}

void check(const Value& root, const Cluster& cluster) {
  const auto fail = [&](std::string_view key, const std::string& message) {
    const Value at = value_at(root, key);
    if (at.exists()) at.fail(message);
    (root["interconnect"].exists() ? root["interconnect"] : root["gpu"]).fail(fmt::format("{}: {}", key, message));
  };
  const bool linked = cluster.interconnect == Interconnect::nvswitch || cluster.interconnect == Interconnect::mesh ||
                      cluster.interconnect == Interconnect::bridge;
  if (linked && cluster.links.count == 0)
    fail("interconnect", fmt::format("{} needs links, and links.count is 0", name_of(cluster.interconnect)));
  if (cluster.interconnect == Interconnect::mesh && cluster.links.matrix.empty())
    fail("links.matrix", fmt::format("not given: a mesh says how many links join each two of its {} GPUs ([[0, 1, 2], "
                                     "[1, 0, 1], [2, 1, 0]] for three)",
                                     cluster.gpus));
  if (cluster.interconnect == Interconnect::mesh && static_cast<int>(cluster.links.matrix.size()) < cluster.gpus)
    fail("links.matrix",
         fmt::format("counts the links of {} GPUs; the node has {}", cluster.links.matrix.size(), cluster.gpus));
  const std::string_view tree =
      root["links"].exists() && root["links"]["tree"].exists() ? "links.tree" : "links.topology";
  if (!cluster.links.tree.empty() && static_cast<int>(cluster.links.tree.size()) < cluster.gpus)
    fail(tree, fmt::format("describes {} GPUs; the node has {}", cluster.links.tree.size(), cluster.gpus));
  if (cluster.nodes > 1 && cluster.nics.count == 0)
    fail("nodes", fmt::format("{}, and nics.count is 0: say how many NICs join them", cluster.nodes));
}

/// What the architecture's clusters need not say, and over it what those of this board need not. The files that said
/// so, with their names.
std::map<std::string, std::string> lay_defaults(Node& whole, const Gpu& gpu) {
  const auto by_architecture = fmt::format("{}-{}.{}", name_of(gpu.architecture), gpu.compute_major, gpu.compute_minor);
  std::map<std::string, std::string> read;
  for (const std::string& name : {by_architecture, gpu.name}) {
    const std::filesystem::path file = config::data_folder("hw") / "interconnects" / (name + ".yaml");
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    lay_over(whole, config::load_yaml(file));
    read.emplace(file.string(), name);
  }
  return read;
}

/// What a matrix of nvidia-smi says and the description does not: how many GPUs there are, and what joins them.
void take_from_topology(Node& whole, const Node& own) {
  const Value given = value_at(Value(own), "links.topology");
  if (!given.exists()) return;
  Topology topology;
  (void)read_described(given, [&](const Value& value) { topology = read_topology(value); });
  const auto set = [&](const char* key, const std::string& text) {
    if (own.find(key)) return;
    Node value, field;
    field.kind = Node::Kind::mapping;
    value.kind = Node::Kind::scalar;
    value.origin = field.origin = given.origin();
    Node source = value;
    value.scalar = text;
    source.scalar = "links.topology";
    field.entries = {{"value", given.origin(), value}, {"source", given.origin(), source}};
    if (Node* old = whole.find(key)) *old = field;
    else whole.entries.push_back({key, given.origin(), field});
  };
  const std::size_t gpus = topology.seats.size();
  set("gpus", fmt::format("{}", gpus));
  std::size_t joined = 0;
  for (const int links : topology.nvlinks.front()) joined += links > 0 ? 1 : 0;
  int links = 0;  // of a GPU
  for (const int one : topology.nvlinks.front()) links += one;
  const Value count = value_at(Value(whole), "links.count");
  int of_gpu = 0;
  if (count.exists()) (void)read_described(count, [&](const Value& value) { of_gpu = whole_links(value); });
  // Through switches each pair has all links of a GPU.
  const bool switched = gpus > 2 && joined + 1 == gpus && links > of_gpu;
  set("interconnect", switched ? "nvswitch" : topology.has_nvlinks() ? "mesh" : "pcie");
}

Cluster cluster_of(Node tree, std::string_view source, std::string name, const std::vector<config::Override>& overrides,
                   HardwareSheet* sheet) {
  tree = over_base(std::move(tree), source);
  refuse_keys_of_files(overrides);
  for (const config::Override& change : overrides) config::apply_override(tree, change);
  const Gpu gpu = gpu_of(Value(tree));
  Node whole;
  whole.kind = Node::Kind::mapping;
  whole.origin = tree.origin;
  const std::map<std::string, std::string> defaults = lay_defaults(whole, gpu);
  lay_over(whole, tree);
  whole.origin = tree.origin;  // where what is missing is missed
  take_from_topology(whole, tree);
  const Value root(whole);
  refuse_unknown_keys(root);

  Cluster cluster;
  if (sheet)
    sheet->values.push_back(
        {.key = "gpu", .value = gpu.name, .unit = {}, .source = gpu.title, .spread = {}, .note = {}, .inherited = {}});
  cluster.name = std::move(name);
  cluster.title = root["title"].text(cluster.name);
  cluster.gpu_name = root["gpu"].text();
  cluster.architecture = gpu.architecture;
  for (const ClusterKey& one : cluster_keys()) {
    const Value field = value_at(root, one.key);
    if (!field.exists() && !one.required) continue;
    SheetRow row = read_described(field, [&](const Value& value) { one.read(value, cluster); });
    row.key = one.key;
    const auto& origin = field.node().origin;
    if (const auto from = defaults.find(origin.name ? *origin.name : ""); from != defaults.end())
      row.inherited = from->second;
    if (one.key == "links.matrix") row.value = fmt::format("{0} x {0}", cluster.links.matrix.size());
    if (one.key == "links.tree" || one.key == "links.topology")
      row.value = fmt::format("{} GPUs", cluster.links.tree.size());
    if (sheet) sheet->values.push_back(std::move(row));
  }
  check(root, cluster);
  if (sheet) {
    sheet->name = cluster.name;
    sheet->title = cluster.title;
    sheet->derived = derived_rows(cluster);
  }
  return cluster;
}

std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

Cluster from_file(std::string_view name_or_path, const std::vector<config::Override>& overrides, HardwareSheet* sheet) {
  const std::string file = described_file("cluster", "clusters", name_or_path);
  return cluster_of(config::load_yaml(file), "", stem(file), overrides, sheet);
}

}  // namespace

std::string_view name_of(Interconnect kind) {
  for (const auto& [name, value] : kInterconnects)
    if (value == kind) return name;
  return "";
}

Cluster load_cluster(std::string_view name_or_path, const std::vector<config::Override>& overrides) {
  return from_file(name_or_path, overrides, nullptr);
}

Cluster load_cluster(const config::Node& node, const std::vector<config::Override>& overrides) {
  if (node.kind == Node::Kind::mapping) return cluster_of(node, "the scenario", "cluster", overrides, nullptr);
  const Value value(node, "cluster");
  const std::string name = value.text();
  try {
    return from_file(name, overrides, nullptr);
  } catch (const config::ConfigError& error) {
    if (error.origin().line > 0 || error.origin().name) throw;
    value.fail(error.message());
  }
}

Cluster cluster_from_yaml(std::string_view text, std::string_view name,
                          const std::vector<config::Override>& overrides) {
  return cluster_of(config::parse_yaml(text, name), "", stem(std::string(name)), overrides, nullptr);
}

HardwareSheet load_cluster_sheet(std::string_view name_or_path, const std::vector<config::Override>& overrides) {
  HardwareSheet sheet;
  (void)from_file(name_or_path, overrides, &sheet);
  return sheet;
}

std::vector<std::string> cluster_names() { return config::yaml_names(config::data_folder("hw") / "clusters"); }

bool describes_cluster(std::string_view name_or_path) {
  const std::vector<config::ShippedName> names = config::shipped_names(config::data_folder("hw") / "clusters");
  if (!names_a_path(name_or_path) && !config::name_spelled(name_or_path, names, hardware_spelling()).empty())
    return true;
  if (name_or_path.find('/') == std::string_view::npos && !name_or_path.ends_with(".yaml")) return false;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(name_or_path, ignored)) return false;
  const Node tree = config::load_yaml(name_or_path);
  return tree.find("gpu") != nullptr;
}

}  // namespace ridgeline
