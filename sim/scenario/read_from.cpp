#include "sim/scenario/read_from.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "sim/config/data_folder.h"
#include "sim/config/make_node.h"
#include "sim/config/named_file.h"
#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/training_files/counts.h"
#include "sim/training_files/training_file.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

using config::Node;
using config::scalar_node;

/// Keys of `over` stand, and those of `base` where `over` has none.
Node laid_over(Node base, const Node& over) {
  if (over.kind == Node::Kind::mapping && base.kind == Node::Kind::scalar && over.find("name") == nullptr) {
    Node named = config::mapping_node(base.origin);  // `optimizer: adamw` is short for a mapping with that name
    named.entries.push_back({"name", base.origin, std::move(base)});
    base = std::move(named);
  }
  if (base.kind != Node::Kind::mapping || over.kind != Node::Kind::mapping) return over;
  for (const config::Entry& entry : over.entries)
    if (Node* known = base.find(entry.key)) *known = laid_over(std::move(*known), entry.value);
    else base.entries.push_back(entry);
  return base;
}

/// A shipped machine of nodes with so many of the GPU, for its NICs; empty where there is none.
std::string machine_of(const std::string& gpu, std::int64_t of_node) {
  const std::filesystem::path folder = config::data_folder("hw") / "clusters";
  const std::string wanted = std::filesystem::path(hardware_file(gpu)).stem().string();
  for (const std::string& name : config::yaml_names(folder)) {
    const Cluster machine = load_cluster(name);
    if (machine.gpus == of_node && machine.nics.count > 0 && machine.gpu_name == wanted) return name;
  }
  return "";
}

/// Several of the GPU that the scenario names, joined as its board is by default; nodes as those of a shipped machine.
void make_cluster(Node& tree, const training_files::TrainingFile& read, std::vector<std::string>& notes) {
  const Node* hardware = tree.find("hardware");
  if (read.gpus <= 1 || tree.find("cluster") != nullptr || hardware == nullptr) return;
  const std::int64_t of_node = std::min(read.gpus, read.gpus_per_node), nodes = (read.gpus + of_node - 1) / of_node;
  const std::string machine = nodes > 1 ? machine_of(hardware->scalar, of_node) : "";
  const config::Origin origin = hardware->origin;
  Node cluster = config::mapping_node(origin);
  if (!machine.empty()) cluster.entries.push_back({"extends", origin, scalar_node(machine, origin)});
  else cluster.entries.push_back({"gpu", origin, *hardware});
  cluster.entries.push_back({"nodes", origin, scalar_node(std::to_string(nodes), origin)});
  cluster.entries.push_back({"gpus", origin, scalar_node(std::to_string(of_node), origin)});
  notes.push_back(fmt::format("{} node{} of {} GPUs, joined as {}; --cluster names another", nodes,
                              nodes == 1 ? "" : "s", of_node, machine.empty() ? "servers of this GPU are" : machine));
  std::erase_if(tree.entries, [](const config::Entry& entry) { return entry.key == "hardware"; });
  tree.entries.push_back({"cluster", origin, std::move(cluster)});
}

/// Sizes of DeepSpeed that are "auto" follow from the network's width: "0.9*hidden*hidden".
void work_out_sizes(Node& tree) {
  Node* training = tree.find("training");
  Node* parallel = training != nullptr ? training->find("parallel") : nullptr;
  Node* zero = parallel != nullptr ? parallel->find("zero_optimization") : nullptr;
  if (zero == nullptr || tree.find("model") == nullptr) return;
  for (config::Entry& entry : zero->entries)
    if (entry.value.scalar.find("hidden") != std::string::npos)
      if (const auto size =
              training_files::product_of(entry.value.scalar, load_model(config::Value(tree)["model"], {}).hidden))
        entry.value.scalar = std::to_string(*size);
}

/// Refuses a question that neither the file nor anything beside it says enough for, with the flags to add.
void mind_what_is_missing(const Node& tree, const std::string& file, const std::string& tool) {
  std::vector<std::string> missing, flags;
  const auto mind = [&](bool there, const char* what, const char* flag) {
    if (!there) missing.emplace_back(what), flags.emplace_back(flag);
  };
  mind(tree.find("model") != nullptr, "the network", "--model NETWORK");
  mind(tree.find("hardware") != nullptr || tree.find("cluster") != nullptr, "the GPU", "--hardware GPU");
  if (missing.empty()) return;
  const Node* training = tree.find("training");
  const auto says = [&](const char* key) { return training != nullptr && training->find(key) != nullptr; };
  mind(says("micro_batch"), "the batch", "--batch SEQUENCES");
  mind(says("sequence_length"), "the length of sequences", "--seq TOKENS");
  throw config::ConfigError({std::make_shared<const std::string>(file), 0, 0}, "",
                            fmt::format("as {} has it, the file leaves open {}: add {}", tool, fmt::join(missing, ", "),
                                        fmt::join(flags, " ")));
}

}  // namespace

LaidUnder lay_under(Node& tree) {
  const Node* named = tree.find("from");
  if (named == nullptr) return {};
  const std::string file = config::named_file(config::Value(tree)["from"]);
  std::erase_if(tree.entries, [](const config::Entry& entry) { return entry.key == "from"; });
  training_files::Asked asked{tree, {}};
  if (const Node* cluster = tree.find("cluster")) {
    const Cluster machine =
        cluster->kind == Node::Kind::scalar ? load_cluster(cluster->scalar) : load_cluster(*cluster);
    asked.gpus = machine.nodes * machine.gpus;
  }
  const training_files::TrainingFile result = training_files::read_training_file(file, asked);
  std::vector<std::string> notes{fmt::format("{} as {} has it: {} keys used, {} without effect on time and memory",
                                             file, result.tool, result.used.size(), result.without_effect.size())};
  if (!result.unknown.empty())
    notes.push_back(fmt::format("not known and not used: {}", fmt::join(result.unknown, ", ")));
  notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  tree = laid_over(result.scenario, tree);
  mind_what_is_missing(tree, file, result.tool);
  make_cluster(tree, result, notes);
  work_out_sizes(tree);
  return {std::move(notes), result.model_changes};
}

}  // namespace ridgeline
