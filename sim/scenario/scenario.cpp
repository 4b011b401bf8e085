#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/hardware/load_host.h"
#include "sim/hardware/software_choice.h"
#include "sim/network/link_tree.h"
#include "sim/network/load_cluster.h"
#include "sim/scenario/descriptions.h"
#include "sim/scenario/missing_keys.h"
#include "sim/scenario/named_kind.h"
#include "sim/scenario/read_checkpointing.h"
#include "sim/scenario/read_from.h"
#include "sim/scenario/read_inference.h"
#include "sim/scenario/read_parallel.h"
#include "sim/scenario/read_recipe.h"
#include "sim/scenario/read_recorded.h"
#include "sim/scenario/read_training.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/family.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/host_class.h"
#include "sim/workload/load_model.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Node;
using config::Override;
using config::Value;

/// Overrides of the scenario itself, and of the descriptions it names.
struct Split {
  std::vector<Override> scenario, hardware, host, software, model, cluster;
};

Split split_by_target(const std::vector<Override>& overrides) {
  Split result;
  for (const Override& change : overrides) {
    Override inner = change;
    if (inner.origin.empty()) inner.origin = fmt::format("--set {}={}", change.key, change.value);
    const auto below = [&](std::string_view prefix) {
      if (!change.key.starts_with(prefix)) return false;
      inner.key = change.key.substr(prefix.size());
      return true;
    };
    if (below("hardware.")) result.hardware.push_back(inner);
    else if (below("host.")) result.host.push_back(inner);
    else if (below("software.")) result.software.push_back(inner);
    else if (below("model.")) result.model.push_back(inner);
    else if (below("cluster.")) result.cluster.push_back(inner);
    else result.scenario.push_back(inner);
  }
  return result;
}

MeasuredBeside read_measured(const Value& section) {
  MeasuredBeside result;
  if (!section.exists()) return result;
  const Mapping mapping(section,
                        {"step_time", "samples_per_s", "device_used", "peak_allocated", "peak_reserved", "source"});
  const auto positive = config::Range::positive();
  if (mapping.has("step_time")) result.step_time = mapping["step_time"].quantity<Seconds>(positive);
  if (mapping.has("samples_per_s")) result.samples_per_s = mapping["samples_per_s"].number(positive);
  if (mapping.has("device_used")) result.device_used = mapping["device_used"].quantity<Bytes>(positive);
  if (mapping.has("peak_allocated")) result.peak_allocated = mapping["peak_allocated"].quantity<Bytes>(positive);
  if (mapping.has("peak_reserved")) result.peak_reserved = mapping["peak_reserved"].quantity<Bytes>(positive);
  result.source = mapping["source"].text();
  return result;
}

/// `section` is the one that says how the model is trained or used.
void check_together(const Scenario& scenario, const Value& section) {
  check_kept_operations(scenario.model, scenario.training, scenario.compile, section);
  const ModelDescription& model = scenario.model;
  const auto& inference = scenario.training.inference;
  const bool has_position_table = model.has_position_table();
  const std::int64_t tokens_of_one = scenario.training.longest_sequence() + (inference ? inference->new_tokens : 0);
  if (const std::int64_t only = only_length(model); only > 0 && tokens_of_one != only)
    section[inference ? "prompt_length" : "sequence_length"].fail(
        fmt::format("{} tokens, but an image is {} of {}: leave it out", tokens_of_one, only,
                    model.name.empty() ? "the model" : model.name));
  if (has_position_table && tokens_of_one > model.max_positions)
    section[inference ? "prompt_length" : "sequence_length"].fail(
        fmt::format("{} tokens, but {} has positions for {} only", tokens_of_one,
                    model.name.empty() ? "the model" : model.name, model.max_positions));
  if (inference && inference->new_tokens > 0 && model.program.given())
    section["new_tokens"].fail("a program generates no text yet; leave it out for one forward pass");
  if (inference && inference->new_tokens > 0 && !families::sees_backwards(model))
    section["new_tokens"].fail("the network generates no text; leave it out for one forward pass");
  if (inference && inference->new_tokens > 0 && model.plain.value_or(false))
    section["new_tokens"].fail(
        "generate() is Transformers', and a network written out in PyTorch (code: plain) has none; leave it out for "
        "one forward pass");
  const auto& lora = scenario.training.lora;
  if (lora && lora->frozen != FrozenWeights::as_stored && model.composition.given() &&
      model.composition->stack.norm == NormKind::rms_t5)
    section["lora"].fail(
        "frozen_weights: T5 keeps the last layer of its feed-forward parts in fp32 beside a base in few bits, which is "
        "not modelled; expected as stored");
  if (!scenario.training.packed_lengths.empty())
    if (const std::string why = families::why_not_packed(model); !why.empty()) section["packed_lengths"].fail(why);
  if (scenario.training.loss_code != LossCode::whole)
    if (const std::string why = families::why_not_chunked(model); !why.empty()) section["loss_code"].fail(why);
  if (scenario.training.scaled_linear != ScaledLinear::none && scenario.gpu.compute_major != 9)
    section["fp8"].fail(fmt::format("products of fp8 are modelled on Hopper (compute capability 9.0); {} has {}.{}",
                                    scenario.gpu.name, scenario.gpu.compute_major, scenario.gpu.compute_minor));
  if (inference) check_weights(*inference, model, scenario.gpu, section);
  if (section["parallel"].exists()) check_split(model, scenario.training, section["parallel"]);
  const double tokens =
      static_cast<double>(scenario.training.micro_batch) * static_cast<double>(scenario.training.sequence_length);
  const ParallelDescription& parallel = scenario.training.parallel;
  if (parallel.pipelined()) {
    const Value given = section["parallel"]["pipeline"];
    if (const std::string why = families::why_not_cut(model, parallel.framework); !why.empty()) given.fail(why);
    if (const std::int64_t stages = parallel.pipeline * parallel.virtual_stages; stages > model.layers)
      given.fail(fmt::format("{} stages, but {} has {} blocks", stages, model.name.empty() ? "the model" : model.name,
                             model.layers));
  }
  if (tokens > 1e9)
    section[inference ? "sequences" : "micro_batch"].fail(
        fmt::format("{:.3g} tokens in one forward pass are more than any GPU takes", tokens));
}

}  // namespace

std::string Descriptions::key(std::string_view name, const std::vector<Override>& changes) {
  std::string key(name);
  for (const Override& change : changes) key += fmt::format("\n{}={}", change.key, change.value);
  return key;
}

namespace {

/// What a section need not say: tokens of a sequence where the network takes no others.
std::optional<std::int64_t> own_length(const ModelDescription& model) {
  const std::int64_t only = only_length(model);
  return only > 0 ? std::optional(only) : std::nullopt;
}

/// Facts of the network that `training` asks for; parameters are counted beside adapters alone.
NetworkFacts facts_of(const ModelDescription& model, const Value& training, Precision usual) {
  NetworkFacts facts{.only_length = own_length(model),
                     .chunks_loss = families::why_not_chunked(model).empty(),
                     .usual_precision = usual};
  if (training.exists() && training["lora"].exists())
    facts.published_in_half = static_cast<double>(parameter_count(model)) > kPublishedInHalf;
  return facts;
}

/// Networks of more than a billion parameters are trained and used in 16 bits, unless the GPU has no bf16.
Precision usual_precision(const ModelDescription& model, const Gpu& gpu) {
  if (gpu.sm.rates.tensor_bf16 <= 0.0) return Precision::fp32;
  return static_cast<double>(parameter_count(model)) > kPublishedInHalf ? Precision::bf16 : Precision::fp32;
}

/// What `read` makes of the description that `key` names: a mistake without a place, or of a file that is not there, is
/// told at the key.
template <typename Read>
auto read_named(const Value& key, const Read& read) {
  try {
    return read();
  } catch (const config::ConfigError& error) {
    const config::Origin& origin = error.origin();
    if (!key.exists() || key.node().kind != Node::Kind::scalar) throw;
    if (error.key() == key.path())
      if (const std::string other = other_kind(key.path(), key.node().scalar); !other.empty()) key.fail(other);
    if (origin.line > 0) throw;
    if (!origin.name) key.fail(error.message());
    if (*origin.name == key.node().scalar) key.fail(*origin.name + ": " + error.message());
    throw;
  }
}

/// A model and how it is trained or used.
void read_described(const Mapping& root, const std::vector<Override>& changes, Descriptions& known,
                    Scenario& scenario) {
  if (root.has("recorded_on")) root["recorded_on"].fail("goes with a recorded step: trace: FILE");
  const Value model = root["model"];
  const auto read_model = [&] { return load_model(model, changes); };
  const bool named = model.exists() && model.node().kind == Node::Kind::scalar;
  scenario.model =
      named ? *read_named(model,
                          [&] { return known.models.get(Descriptions::key(model.node().scalar, changes), read_model); })
            : read_model();
  if (root.has("inference") && root.has("training"))
    root["inference"].fail("a scenario trains a model or uses it: leave out training or inference");
  const Precision usual = usual_precision(scenario.model, scenario.gpu);
  const TrainingSection section =
      root.has("inference")
          ? read_inference(root["inference"], scenario.software, scenario.cluster ? &*scenario.cluster : nullptr, usual)
          : read_training(root["training"], scenario.software, scenario.cluster ? &*scenario.cluster : nullptr,
                          facts_of(scenario.model, root["training"], usual));
  scenario.assumes_precision = section.assumes_precision;
  if (root.has("run") && root.has("inference"))
    root["run"].fail("counts steps of training: leave out run or inference");
  scenario.training = section.training;
  scenario.compile = section.compile;
  scenario.cuda_graphs = section.cuda_graphs;
  scenario.title = root["title"].text(
      fmt::format("{} on {}", scenario.model.name.empty() ? "model" : scenario.model.name, scenario.gpu.name));
  check_together(scenario, root[scenario.training.inference ? "inference" : "training"]);
  if (!section.lengths) return;
  // The longest was checked; Transformers hands a mask to attention where a row is padded.
  TrainingDescription& t = scenario.training;
  t.mask_of_padding = t.micro_batch > 1 && t.attention == AttentionRequest::sdpa && !scenario.model.written_plain();
  scenario.lengths = section.lengths;
  t.sequence_length = typical_length(*section.lengths, t);
}

/// Of GPUs that are the scenario's own where it names one too.
Cluster read_cluster(const Mapping& root, const std::vector<Override>& changes, Descriptions& known) {
  const Node& node = root["cluster"].node();
  const auto read = [&] { return load_cluster(node, changes); };
  Cluster cluster = node.kind == Node::Kind::scalar
                        ? *read_named(root["cluster"],
                                      [&] { return known.clusters.get(Descriptions::key(node.scalar, changes), read); })
                        : read();
  const auto is_of_cluster = [&](const std::string& gpu) {
    return gpu.find('/') != std::string::npos || gpu == cluster.gpu_name ||
           hardware_file(gpu) == hardware_file(cluster.gpu_name);
  };
  if (root.has("hardware") && !read_named(root["hardware"], [&] { return is_of_cluster(root["hardware"].text()); }))
    root["hardware"].fail(fmt::format("{} consists of {}: leave hardware out, or name that",
                                      cluster.name.empty() ? "the cluster" : cluster.name, cluster.gpu_name));
  return cluster;
}

/// GPUs behind one switch copy from and to the host's memory over one uplink, all at the same time.
void share_host_link(SharedScenario& shared) {
  Scenario& scenario = shared.scenario;
  if (!scenario.cluster || scenario.cluster->links.tree.empty()) return;
  const std::int64_t at_once = std::min<std::int64_t>(scenario.training.parallel.gpus(), scenario.cluster->gpus);
  Gpu gpu = scenario.gpu;
  gpu.host_link.bandwidth = host_copy_rate(*scenario.cluster, gpu.host_link.bandwidth, static_cast<int>(at_once));
  if (gpu.host_link.bandwidth == scenario.gpu.host_link.bandwidth) return;
  scenario.gpu = gpu;
  shared.gpu = std::make_shared<const Gpu>(std::move(gpu));
}

/// A cluster named on the command line stands in the place of the file's GPU.
void leave_hardware_to_cluster(Node& tree, const std::vector<Override>& changes) {
  const auto changed = [&](std::string_view key) {
    return std::any_of(changes.begin(), changes.end(), [&](const Override& change) { return change.key == key; });
  };
  if (changed("cluster") && !changed("hardware"))
    std::erase_if(tree.entries, [](const config::Entry& entry) { return entry.key == "hardware"; });
}

/// `optimizer: adamw` is short for a mapping with that name: its other keys find the mapping.
void open_short_optimizer(Node& tree, const Override& change) {
  if (!change.key.starts_with("training.optimizer.")) return;
  Node* training = tree.find("training");
  Node* optimizer = training != nullptr ? training->find("optimizer") : nullptr;
  if (optimizer == nullptr || optimizer->kind != Node::Kind::scalar) return;
  Node mapping;
  mapping.kind = Node::Kind::mapping;
  mapping.origin = optimizer->origin;
  mapping.entries.push_back({"name", optimizer->origin, *optimizer});
  *optimizer = std::move(mapping);
}

SharedScenario load(Node tree, const std::vector<Override>& overrides, Numbers numbers, Descriptions& known,
                    const std::string* asked_of = nullptr) {
  Split changes = split_by_target(overrides);
  for (const Override& change : changes.scenario) {
    open_short_optimizer(tree, change);
    config::apply_override(tree, change);
  }
  leave_hardware_to_cluster(tree, changes.scenario);
  LaidUnder from = lay_under(tree);
  for (Override& change : from.model_changes) change.key.erase(0, std::string_view("model.").size());
  changes.model.insert(changes.model.begin(), from.model_changes.begin(), from.model_changes.end());

  const Mapping root(Value(tree), {"title", "hardware", "model", "training", "inference", "host", "software", "cluster",
                                   "allocator", "measured", "run", "engine", "trace", "recorded_on", "from"});
  SharedScenario shared;
  Scenario& scenario = shared.scenario;
  if (root.has("cluster")) scenario.cluster = read_cluster(root, changes.cluster, known);
  else if (!changes.cluster.empty())
    throw UserError(fmt::format("{}: the scenario names no cluster", changes.cluster.front().origin));
  std::string gpu;
  if (!root.has("hardware")) gpu = scenario.cluster ? scenario.cluster->gpu_name : recorded_hardware(root, known);
  if (gpu.empty()) gpu = root["hardware"].text();
  const std::string host = root["host"].text("default");
  shared.gpu = read_named(root["hardware"], [&] {
    return known.gpus.get(Descriptions::key(gpu, changes.hardware),
                          [&] { return load_gpu(gpu, changes.hardware, numbers); });
  });
  const std::string software = root.has("software") ? root["software"].text()
                               : root.has("trace")  ? recorded_software(root, known, *shared.gpu)
                                                    : default_software(*shared.gpu);
  shared.software = read_named(root["software"], [&] {
    return known.software.get(Descriptions::key(software, changes.software),
                              [&] { return load_software(software, changes.software); });
  });
  scenario.gpu = *shared.gpu;
  if (!changes.hardware.empty())
    scenario.shipped = *known.gpus.get(Descriptions::key(gpu, {}), [&] { return load_gpu(gpu, {}, numbers); });
  scenario.host = *read_named(root["host"], [&] {
    return known.hosts.get(Descriptions::key(host, changes.host),
                           [&] { return load_host(host, host_class_names(), changes.host); });
  });
  scenario.software = *shared.software;
  scenario.allocator = read_allocator(root["allocator"]);
  scenario.measured = read_measured(root["measured"]);
  scenario.run = read_run(root["run"]);
  if (root.has("trace")) read_recorded(root, root.has("host"), !changes.model.empty(), known, scenario);
  else read_described(root, changes.model, known, scenario);
  share_host_link(shared);
  if (asked_of != nullptr) {
    const Node* model = tree.find("model");
    scenario.asked = std::make_shared<const AskedScenario>(
        AskedScenario{*asked_of, tree, overrides, gpu, software, host,
                      model != nullptr && model->kind == Node::Kind::scalar ? model->scalar : "",
                      numbers == Numbers::datasheet, std::move(from.notes)});
  }
  return shared;
}

}  // namespace

Node load_scenario_tree(const std::string& file, bool recording) {
  if (!recording && !trace::looks_like_recording(file)) return config::load_yaml(file);
  const config::Origin origin{std::make_shared<const std::string>(file), 0, 0};
  Node path;
  path.kind = Node::Kind::scalar;
  path.scalar = file;  // as seen from where one stands: so without a file that names it
  Node tree;
  tree.kind = Node::Kind::mapping;
  tree.origin = origin;
  tree.entries.push_back({"trace", origin, std::move(path)});
  return tree;
}

Scenario load_scenario(const ScenarioSource& source, Descriptions& descriptions) {
  Node tree;
  if (source.file) {
    if (const std::string mistake = no_file_but(*source.file); !mistake.empty()) throw UserError(mistake);
    tree = load_scenario_tree(*source.file, source.recording);
  } else if (!source.text.empty()) tree = config::parse_yaml(source.text, source.text_name);
  else {
    tree.kind = Node::Kind::mapping;
    tree.origin.name = std::make_shared<const std::string>(kTheFlags);
  }
  const std::string file = source.file.value_or("");
  try {
    return load(std::move(tree), source.overrides, source.numbers, descriptions, &file).scenario;
  } catch (const config::ConfigError& error) {
    tell_missing(error, source);
    throw;
  }
}

Scenario load_scenario(const ScenarioSource& source) {
  Descriptions alone;
  return load_scenario(source, alone);
}

Scenario load_changed(const AskedScenario& asked, const std::vector<Override>& changes, Descriptions& descriptions) {
  std::vector<Override> all = asked.changes;
  if (std::any_of(changes.begin(), changes.end(), [](const Override& change) { return change.key == "cluster"; }))
    std::erase_if(all, [](const Override& change) { return change.key == "hardware"; });
  all.insert(all.end(), changes.begin(), changes.end());
  return load(asked.tree, all, asked.datasheet ? Numbers::datasheet : Numbers::measured, descriptions, &asked.file)
      .scenario;
}

SharedScenario load_shared_scenario(const Node& tree, const std::vector<Override>& overrides,
                                    Descriptions& descriptions) {
  return load(tree, overrides, Numbers::measured, descriptions);
}

}  // namespace ridgeline
