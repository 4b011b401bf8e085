#include "sim/study/plan/plan_base.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/hardware/load_gpu.h"
#include "sim/network/load_cluster.h"
#include "sim/scenario/missing_keys.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using config::Node;
using config::Override;

constexpr std::string_view kParallel = "training.parallel.", kRecompute = "training.activation_checkpointing";
/// Searched whatever the file says, and only where it says nothing.
constexpr std::array<std::string_view, 9> kSearched{"data",           "strategy", "tensor", "pipeline", "schedule",
                                                    "virtual_stages", "context",  "expert", "replicate"};
constexpr std::array<std::string_view, 5> kDegrees{"data", "tensor", "pipeline", "context", "expert"};
constexpr std::array<std::string_view, 3> kSearchedUnlessSaid{"tensor_style", "sequence_parallel", "no_sync"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of a description that the scenario names.
bool of_a_description(std::string_view key) {
  constexpr std::array<std::string_view, 5> kDescriptions{"hardware.", "host.", "software.", "model.", "cluster."};
  return std::any_of(kDescriptions.begin(), kDescriptions.end(), [&](auto prefix) { return key.starts_with(prefix); });
}

void erase(Node* mapping, std::string_view key) {
  if (mapping != nullptr) std::erase_if(mapping->entries, [&](const config::Entry& one) { return one.key == key; });
}

Node* parallel_of(Node& tree) {
  Node* training = tree.find("training");
  return training == nullptr ? nullptr : training->find("parallel");
}

Node tree_of(const ScenarioSource& source) {
  if (source.file) return load_scenario_tree(*source.file, source.recording);
  if (!source.text.empty()) return config::parse_yaml(source.text, source.text_name);
  Node tree;
  tree.kind = Node::Kind::mapping;
  tree.origin.name = std::make_shared<const std::string>(kTheFlags);
  return tree;
}

void refuse_what_does_not_train(const Node& tree, const PlanRequest& request) {
  const auto refuse = [&](std::string_view why) {
    throw UserError(fmt::format("{}: {}", request.source.file.value_or("plan"), why));
  };
  if (tree.kind != Node::Kind::mapping) return;  // the reader says what it expected
  if (tree.find("trace") != nullptr) refuse("a recorded step runs as it was recorded; plan needs a model");
  if (tree.find("inference") != nullptr) refuse("plan is about training; this scenario has inference");
  if (request.source.numbers == Numbers::datasheet) refuse("--datasheet does not go with plan");
}

/// A machine with this GPU that has them on one node, the smallest; else the one with the largest nodes.
std::string cluster_with(const std::string& gpu, std::int64_t gpus) {
  std::string best;
  Cluster chosen;
  std::set<std::string> known;
  for (const std::string& name : cluster_names()) {
    const Cluster one = load_cluster(name);
    known.insert(one.gpu_name);
    if (one.gpu_name != gpu) continue;
    const bool holds = one.gpus >= gpus, held = !best.empty() && chosen.gpus >= gpus;
    const bool better = best.empty() || (holds && (!held || one.gpus < chosen.gpus)) ||
                        (!holds && !held && one.nics.count > 0 && (chosen.nics.count == 0 || one.gpus > chosen.gpus));
    if (!better) continue;
    best = name;
    chosen = one;
  }
  if (best.empty())
    throw UserError(
        fmt::format("plan: no machine of hw/clusters has the GPU {}: name one with --cluster, or describe it "
                    "in the scenario (cluster: {{gpu: {}, gpus: 8, ...}}; docs/clusters.md). There are those "
                    "with {}",
                    gpu, gpu, fmt::join(known, ", ")));
  return best;
}

std::int64_t count_at(const Node* section, std::string_view key, std::string_view path) {
  const Node* given = section == nullptr ? nullptr : section->find(key);
  return given == nullptr ? 1 : config::Value(*given, std::string(path)).integer({1, 1 << 20});
}

/// Sequences of a step as the scenario describes it: of all ranks where its own file names a cluster, else of as many
/// as it says.
std::int64_t batch_of(const PlanRequest& request, const Node& tree, const std::vector<Override>& changes,
                      bool has_cluster, Descriptions& descriptions) {
  if (request.batch) return *request.batch;
  const Node* training = tree.find("training");
  if (training == nullptr || training->find("micro_batch") == nullptr)
    throw UserError(fmt::format("{}: how many sequences does a step have? --batch N says it",
                                request.source.file.value_or("plan")));
  std::int64_t data = 1;
  if (has_cluster) data = load_shared_scenario(tree, changes, descriptions).scenario.training.parallel.data;
  else data = count_at(training->find("parallel"), "data", "training.parallel.data");
  return data * count_at(training, "micro_batch", "training.micro_batch") *
         count_at(training, "gradient_accumulation", "training.gradient_accumulation");
}

/// The changes, shared out: to the tree, to the descriptions, and what the search has to keep.
void take_changes(const PlanRequest& request, Node& tree, PlanBase& base) {
  for (Override change : request.source.overrides) {
    if (change.origin.empty()) change.origin = fmt::format("--set {}={}", change.key, change.value);
    const std::string_view key = change.key;
    const std::string_view last = key.starts_with(kParallel) ? key.substr(kParallel.size()) : std::string_view();
    if (is_one_of(last, kSearched) || is_one_of(last, kSearchedUnlessSaid)) base.kept[std::string(last)] = change;
    else if (key == kRecompute) base.kept["activation_checkpointing"] = change;
    else if (of_a_description(key)) base.changes.push_back(change);
    else config::apply_override(tree, change);
  }
}

void leave_out_what_is_searched(Node& tree, PlanBase& base) {
  Node* parallel = parallel_of(tree);
  for (const std::string_view key : kSearched) erase(parallel, key);
  for (const std::string_view key : kSearchedUnlessSaid) {
    const Node* said = parallel == nullptr ? nullptr : parallel->find(key);
    if (said != nullptr)
      base.kept.emplace(key,
                        Override{std::string(kParallel) + std::string(key), said->scalar, said->origin.to_string()});
    erase(parallel, key);
  }
  erase(tree.find("training"), "activation_checkpointing");
  erase(&tree, "measured");
  config::apply_override(tree, {"training.micro_batch", "1", "plan"});
  config::apply_override(tree, {"training.gradient_accumulation", "1", "plan"});
}

/// A value that no way can have is a mistake, not a reason to leave ways out.
void check_kept(const PlanRequest& request, const PlanBase& base, Descriptions& descriptions) {
  for (const auto& [name, change] : base.kept) {
    if (is_one_of(name, kDegrees)) {
      config::Node node;
      config::apply_override(node, {"value", change.value, change.origin});
      const std::int64_t n = config::Value(*node.find("value"), change.key).integer({1, 1 << 20});
      const auto divides = [&](std::int64_t gpus) { return gpus % n == 0; };
      if (std::none_of(request.gpus.begin(), request.gpus.end(), divides))
        throw UserError(fmt::format("{}: {}: does not divide the {} GPUs", change.origin, change.key,
                                    fmt::join(request.gpus, ", ")));
      continue;
    }
    std::vector<Override> changes = base.changes;
    changes.push_back({std::string(kParallel) + "data", "1", "plan"});
    if (name == "schedule" || name == "virtual_stages")
      changes.push_back({std::string(kParallel) + "pipeline", "2", "plan"});
    changes.push_back(change);
    try {
      (void)load_shared_scenario(base.tree, changes, descriptions);
    } catch (const config::ConfigError& error) {
      if (error.key() == change.key && error.message().starts_with("unknown value")) throw;
    } catch (const UserError&) {
      continue;  // together with other choices it may do
    }
  }
}

bool changes_key(const PlanRequest& request, std::string_view key) {
  return std::any_of(request.source.overrides.begin(), request.source.overrides.end(),
                     [&](const Override& change) { return change.key == key; });
}

/// Its bounds of time and memory know the buffers of PyTorch's wrappers and of Megatron-LM.
void refuse_deepspeed(Node& tree, std::span<const Override> changes) {
  const Node* parallel = parallel_of(tree);
  const Node* framework = parallel == nullptr ? nullptr : parallel->find("framework");
  std::string given = framework != nullptr ? framework->scalar : "";
  for (const Override& change : changes)
    if (change.key == "training.parallel.framework") given = change.value;
  if (given == "deepspeed")
    throw UserError(
        "plan: training.parallel.framework: deepspeed is not searched; expected torch or megatron (sweep tries "
        "DeepSpeed's stages: training.parallel.strategy: [zero1, zero2, zero3])");
}

}  // namespace

std::int64_t nodes_for(const Cluster& cluster, std::int64_t gpus) {
  const std::string name = cluster.name.empty() ? "the cluster" : cluster.name;
  if (gpus <= cluster.gpus) return 1;
  if (cluster.nics.count == 0)
    throw UserError(
        fmt::format("plan: {} GPUs are several nodes of {}, which has {} a node and no NICs (nics.count) that "
                    "would join them",
                    gpus, name, cluster.gpus));
  if (gpus % cluster.gpus != 0)
    throw UserError(fmt::format("plan: {} GPUs are no whole number of nodes: {} has {} a node; {} or {}?", gpus, name,
                                cluster.gpus, gpus / cluster.gpus * cluster.gpus,
                                (gpus / cluster.gpus + 1) * cluster.gpus));
  return gpus / cluster.gpus;
}

PlanBase plan_base(const PlanRequest& request, Descriptions& descriptions) {
  if (request.gpus.empty()) throw UserError("plan: on how many GPUs? --gpus N");
  for (const std::int64_t gpus : request.gpus)
    if (gpus < 1 || gpus > (1 << 16)) throw UserError(fmt::format("plan: --gpus {}: expected 1 to {}", gpus, 1 << 16));
  if (request.batch && *request.batch < 1)
    throw UserError(fmt::format("plan: --batch {}: expected at least one sequence", *request.batch));
  PlanBase base;
  Node tree = tree_of(request.source);
  refuse_what_does_not_train(tree, request);
  const bool file_has_cluster = tree.find("cluster") != nullptr && !changes_key(request, "cluster");
  take_changes(request, tree, base);
  refuse_deepspeed(tree, base.changes);
  if (changes_key(request, "cluster") && !changes_key(request, "hardware")) erase(&tree, "hardware");
  base.batch = batch_of(request, tree, base.changes, file_has_cluster, descriptions);
  leave_out_what_is_searched(tree, base);
  if (tree.find("cluster") == nullptr) {
    const Node* hardware = tree.find("hardware");
    if (hardware == nullptr || hardware->kind != Node::Kind::scalar)
      throw UserError(request.source.file.value_or("plan") +
                      ": on which GPUs? --cluster NAME or --hardware NAME (`ridgeline hardware` lists both)");
    const std::string gpu = std::filesystem::path(hardware_file(hardware->scalar)).stem().string();
    base.cluster_name = cluster_with(gpu, request.gpus.back());
    base.assumed = fmt::format("{} is assumed for {}; --cluster names another", base.cluster_name, gpu);
    config::apply_override(tree, {"cluster", base.cluster_name, "assumed by plan"});
  } else {
    const Node& named = *tree.find("cluster");
    base.cluster_name = named.kind == Node::Kind::scalar ? named.scalar : "described in the scenario";
  }
  base.tree = tree;
  config::apply_override(tree, {"training.parallel.data", "1", "plan"});
  base.scenario = load_shared_scenario(tree, base.changes, descriptions).scenario;
  base.cluster = *base.scenario.cluster;
  for (const std::int64_t gpus : request.gpus) (void)nodes_for(base.cluster, gpus);
  check_kept(request, base, descriptions);
  return base;
}

}  // namespace ridgeline
