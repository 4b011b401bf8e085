#include <algorithm>
#include <functional>

#include "sim/config/parse_yaml.h"
#include "sim/hardware/keys.h"
#include "sim/hardware/load_host.h"
#include "sim/network/load_cluster.h"
#include "sim/report/schema/explore_keys.h"
#include "sim/report/schema/program_keys.h"
#include "sim/scenario/descriptions.h"
#include "sim/study/exercise/exercise.h"
#include "sim/study/sweep/sweep.h"
#include "sim/study/sweep/sweep_metric.h"
#include "sim/workload/composition_keys.h"
#include "sim/workload/host_class.h"
#include "sim/workload/load_model.h"
#include "sim/workload/model_keys.h"

namespace ridgeline {
namespace {

using config::Asked;
using config::Node;
using config::Override;

void erase(Node& node, std::string_view path) {
  const auto dot = path.find('.');
  const std::string_view first = path.substr(0, dot);
  for (auto entry = node.entries.begin(); entry != node.entries.end(); ++entry) {
    if (entry->key != first) continue;
    if (dot != path.npos) erase(entry->value, path.substr(dot + 1));
    else node.entries.erase(entry);
    return;
  }
}

/// `read` of a tree, as an exploration asks for it.
auto of_tree(const char* text, std::function<void(const Node&)> read) {
  return [tree = config::parse_yaml(text, "a file"), read = std::move(read)](const std::vector<Override>& changes,
                                                                             const std::string& without) {
    Node changed = tree;
    if (!without.empty()) erase(changed, without);
    for (const Override& change : changes) config::apply_override(changed, change);
    read(changed);
  };
}

InputKey name_of_file(std::string path, bool required = false) {
  return {.path = std::move(path), .asked = {{.kind = Asked::Kind::text}}, .required = required};
}

InputKey name_list(std::string path) { return {.path = std::move(path), .asked = {{.kind = Asked::Kind::list}}}; }

/// A choice between the names of both: families of networks have activations and heads of their own.
void join_choices(InputKey& known, const InputKey& more) {
  const auto is_choice = [](const Asked& asked) { return asked.kind == Asked::Kind::choice; };
  const auto own = std::find_if(known.asked.begin(), known.asked.end(), is_choice);
  const auto other = std::find_if(more.asked.begin(), more.asked.end(), is_choice);
  if (own == known.asked.end() || other == more.asked.end()) return;
  for (const std::string& name : other->names)
    if (std::find(own->names.begin(), own->names.end(), name) == own->names.end()) own->names.push_back(name);
}

/// What `more` has and `keys` lacks.
void join(std::vector<InputKey>& keys, const std::vector<InputKey>& more) {
  for (const InputKey& key : more) {
    const auto known =
        std::find_if(keys.begin(), keys.end(), [&](const InputKey& one) { return one.path == key.path; });
    if (known == keys.end()) {
      // Beside its neighbours.
      const std::string section = key.path.substr(0, key.path.rfind('.') + 1);
      const auto last = std::find_if(keys.rbegin(), keys.rend(), [&](const InputKey& one) {
        return !section.empty() && (one.path.starts_with(section) || one.path + "." == section);
      });
      keys.insert(last.base() == keys.begin() ? keys.end() : last.base(), key);
    } else {
      known->required = known->required && key.required;
      if (known->asked.empty()) known->asked = key.asked;
      else join_choices(*known, key);
    }
  }
}

/// What a scenario that trains, one that generates and a recorded one take.
std::vector<InputKey> scenario_keys() {
  Descriptions known;
  const std::set<std::string> names{"title",  "hardware", "model",       "host",    "software",
                                    "engine", "trace",    "recorded_on", "cluster", "from"};
  const auto read = [&known](const Node& tree) { (void)load_shared_scenario(tree, {}, known); };
  const auto of = [&](const char* text) {
    const auto reader = of_tree(text, read);
    reader({}, "");  // the descriptions it names are read before anybody listens
    return explore_keys({.read = reader, .names = names});
  };
  std::vector<InputKey> keys =
      of("{title: t, hardware: nvidia-a100-sxm4-80gb, host: default, software: pytorch-2.11, model: gpt2, training: "
         "{micro_batch: 1, sequence_length: 128}, measured: {source: s}, run: {examples: 100}}");
  join(keys, of("{hardware: nvidia-a100-sxm4-80gb, model: gpt2, training: {micro_batch: 1, lengths: {mean: 20, "
                "longest: 128}}}"));
  join(keys, of("{hardware: nvidia-a100-sxm4-80gb, model: gpt2, inference: {prompt_length: 128, new_tokens: 2}}"));
  join(keys, of("{cluster: hgx-h100, model: gpt2, inference: {prompt_length: 128, parallel: {tensor: 2}}}"));
  join(keys,
       of("{cluster: hgx-h100, model: gpt2, training: {micro_batch: 1, sequence_length: 128, parallel: {data: 2}}}"));
  join(keys,
       of("{cluster: hgx-h100, model: gpt2, training: {micro_batch: 1, sequence_length: 128, parallel: {framework: "
          "deepspeed, strategy: zero3, zero_optimization: {overlap_comm: true}}}}"));
  join(keys, of("{cluster: hgx-h100, model: gpt2, training: {micro_batch: 1, sequence_length: 128, "
                "gradient_accumulation: 8, parallel: {data: 1, pipeline: 2, schedule: interleaved}}}"));
  for (InputKey& key : keys) {
    if (names.contains(key.path)) key.asked = {{.kind = Asked::Kind::text}};
    if (key.path == "model") key.document = "model";
    if (key.path == "cluster") key.document = "cluster";
    if (key.path == "hardware") key.required = false;                                         // a cluster's
    key.required = key.required && !key.path.starts_with("training") && key.path != "model";  // a recording has none
  }
  // Of a recorded step, which takes a file to read.
  const Asked positive{.kind = Asked::Kind::measure, .range = config::Range::positive()};
  join(keys, {{.path = "training.samples", .asked = {positive}}, {.path = "training.tokens", .asked = {positive}}});
  return keys;
}

std::vector<InputKey> model_keys_of_families() {
  std::vector<InputKey> keys;
  for (const char* text :
       {"{name: n, family: gpt2, layers: 2, heads: 2, hidden: 64, vocabulary: 100}",
        "{family: bert, layers: 2, heads: 2, hidden: 64, vocabulary: 100}",
        "{family: llama, layers: 2, heads: 2, hidden: 64, vocabulary: 100}",
        "{family: composed, layers: 2, heads: 2, hidden: 64, vocabulary: 100, encoder: {layers: 1}}"})
    join(keys, explore_keys({.read = of_tree(text, [](const Node& tree) {
                               (void)load_model(config::Value(tree), std::vector<Override>{});
                             })}));
  join(keys, keys_of_programs());
  join(keys, {name_list("aliases"),
              name_of_file("source"),
              {.path = "parameters", .asked = {{.kind = Asked::Kind::integer, .integers = {1}}}}});
  for (InputKey& key : keys)
    for (const ModelKey& known : model_keys())
      if (key.path == known.name) key.meaning = known.meaning;
  constexpr std::string_view kEncoder = "encoder.";
  for (InputKey& key : keys)
    for (const CompositionKey& known : composition_keys()) {
      const std::string_view path = key.path;
      const bool of_encoder = path.starts_with(kEncoder) && path.substr(kEncoder.size()) == known.name;
      if (key.meaning.empty() && (path == known.name || of_encoder)) key.meaning = known.meaning;
    }
  return keys;
}

Asked asked_of(const HardwareKey& key) {
  switch (key.kind) {
    case KeyKind::flag: return {.kind = Asked::Kind::flag};
    case KeyKind::list: return {.kind = Asked::Kind::list};
    case KeyKind::integer:
      return {.kind = Asked::Kind::integer,
              .integers = {static_cast<std::int64_t>(key.range.low), static_cast<std::int64_t>(key.range.high)}};
    case KeyKind::number:
    case KeyKind::quantity: return {.kind = Asked::Kind::measure, .dimension = key.dimension, .range = key.range};
    case KeyKind::text:
    case KeyKind::choice: break;
  }
  if (key.choices.empty()) return {.kind = Asked::Kind::text};
  Asked choice{.kind = Asked::Kind::choice};
  for (std::size_t begin = 0; begin < key.choices.size();) {
    const std::size_t end = std::min(key.choices.find(", ", begin), key.choices.size());
    choice.names.push_back(key.choices.substr(begin, end - begin));
    begin = end + 2;
  }
  return choice;
}

/// Of the table that the reader walks.
std::vector<InputKey> keys_of_hardware() {
  std::vector<InputKey> keys{name_of_file("title", true),
                             name_list("aliases"),
                             name_of_file("extends"),
                             name_of_file("source"),
                             {.path = "measured"}};
  for (const HardwareKey& key : hardware_keys())
    keys.push_back({.path = std::string(key.key),
                    .asked = {asked_of(key)},
                    .zero_is_none = key.zero_is_none,
                    .described = true,
                    .bare = true,
                    .meaning = std::string(key.meaning)});
  return keys;
}

/// Files whose every number has a source; `title` and `base` are read before.
std::vector<InputKey> described_keys(const std::function<void(const std::vector<Override>&)>& read) {
  std::vector<InputKey> keys =
      explore_keys({.read = [&](const std::vector<Override>& changes, const std::string&) { read(changes); },
                    .names = {"title", "base"}});
  for (InputKey& key : keys)
    if (key.path == "title" || key.path == "base") key.asked = {{.kind = Asked::Kind::text}};
  return keys;
}

std::vector<InputKey> cluster_keys() {
  const std::set<std::string> names{"title", "aliases", "extends", "gpu", "source"};
  std::vector<InputKey> keys =
      explore_keys({.read = [](const std::vector<Override>& changes,
                               const std::string&) { (void)load_cluster("dgx-1-v100", changes); },
                    .names = names});
  join(keys, {name_of_file("title"), name_list("aliases"), name_of_file("extends"), name_of_file("gpu"),
              name_of_file("source")});
  for (InputKey& key : keys) key.required = false;  // what a file leaves out, the architecture's defaults say
  return keys;
}

std::vector<InputKey> sweep_keys() {
  std::vector<InputKey> keys = explore_keys(
      {.read = of_tree("{scenario: {}, axes: {x: [1]}, constraints: {memory: {below: 1}}, sample: {points: 1}, "
                       "goal: {search: pareto, of: [memory]}}",
                       [](const Node& tree) { (void)read_sweep(tree, "sweep.yaml"); }),
       .names = {"scenario", "engine"},
       .free = {{"axes", "x"}, {"constraints", "memory"}},
       .more = {{"axes.x", "{range: [1, 3], step: 1}"},
                {"axes.x", "{log: [1, 2], points: 2}"},
                {"axes.x", "{times: [1]}"},
                {"axes.x", "{cases: {}}"}}});
  Asked metric{.kind = Asked::Kind::choice};
  for (std::size_t i = 0; i < kMetrics; ++i) metric.names.emplace_back(info_of(i).name);
  for (InputKey& key : keys) {
    if (key.path == "scenario") key.document = "scenario";
    if (key.path == "scenario" || key.path == "engine") key.asked = {{.kind = Asked::Kind::text}};
    if (key.path == "goal.of.0") key.asked = {metric};
    if (key.path == "axes.*.times") key.asked = {{.kind = Asked::Kind::list}};
  }
  return keys;
}

std::vector<InputKey> exercise_keys() {
  std::vector<InputKey> keys = explore_keys(
      {.read =
           of_tree("{title: t, chapter: c, minutes: 5, question: q, explore: [e], answer: x, unit: u, tolerance: 0.1, "
                   "wrong: [{answer: x, hint: h}], low: l, high: h, explanation: e, picture: {title: t, unit: u, bars: "
                   "{b: x}}, "
                   "view: memory, measures: {x: {occupancy: {threads: 1, registers: 1, shared: 1 B}, hardware: h, set: "
                   "{}, get: g}}, "
                   "measured: {value: v, source: s}}",
                   [](const Node& tree) { (void)read_exercise(tree, "1-exercise.yaml"); }),
       .free = {{"measures", "x"}, {"picture.bars", "b"}},
       .more = {{"measures.x", "{predict: f, get: g}"},
                {"measures.x", "{kernel: k, hardware: h, get: g}"},
                {"measures.x", "{model: m, get: g}"},
                {"measures.x", "{hardware: h, get: g}"}}});
  for (InputKey& key : keys)
    if (key.path == "measures.*.hardware") key.required = false;  // of an occupancy, which the file at hand has
  return keys;
}

}  // namespace

std::vector<InputDocument> input_documents() {
  std::vector<InputDocument> documents{
      {"scenario", "a question: which model, trained how, on which GPU", scenario_keys()},
      {"model", "a network", model_keys_of_families()},
      {"hardware", "a GPU", keys_of_hardware()},
      {"host", "what dispatching costs", described_keys([](const std::vector<Override>& changes) {
         (void)load_host("default", host_class_names(), changes);
       })},
      {"software", "what a version of PyTorch launches",
       described_keys([](const std::vector<Override>& changes) { (void)load_software("pytorch-2.11", changes); })},
      {"cluster", "several GPUs and what joins them", cluster_keys()},
      {"sweep", "a grid or sample over any keys", sweep_keys()},
      {"exercise", "a question whose answer is computed", exercise_keys()}};
  for (InputDocument& document : documents)
    for (InputKey& key : document.keys)
      if (key.meaning.empty()) key.meaning = meaning_of(document.name, key.path);
  return documents;
}

}  // namespace ridgeline
