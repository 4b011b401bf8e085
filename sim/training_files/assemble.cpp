#include "sim/training_files/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <numeric>

#include "sim/config/config_error.h"
#include "sim/config/make_node.h"
#include "sim/training_files/counts.h"
#include "sim/training_files/tree_path.h"
#include "sim/units/nearest_name.h"

namespace ridgeline::training_files {
namespace {

using config::Node;
using config::scalar_node;

using Names = std::pair<std::string_view, std::string_view>;

class Assembler {
 public:
  Assembler(const Facts& facts, const Asked& asked, TrainingFile& result)
      : facts_(facts), asked_(asked), result_(result) {
    result_.scenario.kind = Node::Kind::mapping;
    origin_.name = std::make_shared<const std::string>(result.file);
    result_.scenario.origin = origin_;
  }

  void run() {
    for (const auto& [target, fact] : facts_.all())
      if (target.starts_with("model.")) model_changes_.push_back(target);
      else if (target.find('.') != std::string::npos || target == "software" || target == "model")
        put(target, fact.value);
    network();
    length();
    gpus();
    batch();
    parallel();
    adapters();
    checkpointing();
    if (facts_.flag("packing"))
      note(
          "rows are packed: sequence_length tokens each; training.packed_lengths says how long the sequences in a row "
          "are");
  }

 private:
  void put(const std::string& path, Node value) { set_path(result_.scenario, path, std::move(value)); }
  void put(const std::string& path, const std::string& text, std::string_view from = "") {
    const Fact* fact = facts_.find(from);
    put(path, scalar_node(text, fact != nullptr ? fact->value.origin : origin_));
  }
  void note(std::string text) { result_.notes.push_back(std::move(text)); }
  [[nodiscard]] std::int64_t degree(std::string_view name) const { return degree_of(facts_, name); }

  /// A count that the question says, else the file.
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view path, std::string_view fact) const {
    const Node* said = find_path(asked_.tree, path);
    if (said == nullptr) return facts_.count(fact);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(said->scalar.data(), said->scalar.data() + said->scalar.size(), value);
    if (error != std::errc{} || end != said->scalar.data() + said->scalar.size() || value < 1) return std::nullopt;
    return value;
  }

  void network() {
    if (asked_.tree.find("model") != nullptr) return;
    if (const std::string name = facts_.text("model_name"); !name.empty()) {
      std::error_code ignored;
      const std::filesystem::path path(name);
      const std::filesystem::path beside = std::filesystem::path(result_.file).parent_path() / path / "config.json";
      if (std::filesystem::is_regular_file(beside, ignored)) put("model", beside.string(), "model_name");
      else if (name.front() == '.' || name.front() == '/' || std::count(name.begin(), name.end(), '/') > 1)
        put("model", path.filename().empty() ? path.parent_path().filename().string() : path.filename().string(),
            "model_name");
      else put("model", name, "model_name");
    }
    if (result_.scenario.find("model") != nullptr) {
      for (const std::string& target : model_changes_) {
        const Fact& fact = *facts_.find(target);
        const std::string place = fact.value.origin.line > 0 ? fact.value.origin.to_string() : result_.file;
        result_.model_changes.push_back({target, fact.value.scalar, fmt::format("{}: {}", place, fact.key)});
      }
      return;
    }
    for (const std::string& target : model_changes_) put(target, facts_.find(target)->value);
    if (!facts_.has("layers") || !facts_.has("hidden")) return;
    static constexpr std::array<Names, 12> kSizes{{
        {"layers", "layers"},
        {"heads", "heads"},
        {"kv_heads", "key_value_heads"},
        {"hidden", "hidden"},
        {"head_size", "head_dim"},
        {"feed_forward", "feed_forward"},
        {"vocabulary", "vocabulary"},
        {"max_positions", "max_positions"},
        {"activation", "activation"},
        {"tied", "tie_embeddings"},
        {"bias", "bias"},
        {"dropout", "dropout"},

    }};
    static constexpr std::array<std::string_view, 4> kFamilies{"gpt2", "llama", "bert", "composed"};
    if (const std::string family = facts_.text("model_family");
        !family.empty() && std::find(kFamilies.begin(), kFamilies.end(), family) == kFamilies.end())
      facts_.fail("layers",
                  fmt::format("sizes of {} alone do not say the network: give its config.json with --model", family));
    const bool gated = in_small_letters(facts_.text("activation")).find("glu") != std::string::npos;
    if (facts_.flag("experts"))
      facts_.fail("experts", "sizes alone do not say a network with experts: give its config.json with --model");
    put("model.family", facts_.text("model_family", gated ? "llama" : "gpt2"), "layers");
    for (const auto& [fact, key] : kSizes)
      if (const Fact* found = facts_.find(fact); found != nullptr && found->value.kind != Node::Kind::null) {
        const auto worked_out = product_of(found->value.scalar, facts_.count("hidden").value_or(1));
        put(fmt::format("model.{}", key),
            worked_out ? scalar_node(std::to_string(*worked_out), found->value.origin) : found->value);
      }
  }

  /// A file that names a network and leaves the length to the data gets one, said.
  void length() {
    constexpr std::int64_t kTaken = 1024;
    if (facts_.has("training.sequence_length") || find_path(asked_.tree, "training.sequence_length") != nullptr) return;
    if (result_.scenario.find("model") == nullptr && !facts_.has("model_name")) return;
    put("training.sequence_length", std::to_string(kTaken));
    note(fmt::format("the length of a sequence is left to the data: {} tokens taken; --seq says another", kTaken));
  }

  void gpus() {
    tensor_ = degree_of(facts_, "tensor"), pipeline_ = degree_of(facts_, "pipeline");
    context_ = degree_of(facts_, "context");
    const std::int64_t cut = tensor_ * pipeline_ * context_;
    result_.gpus_per_node = std::max<std::int64_t>(1, facts_.count("gpus_per_node").value_or(8));
    result_.gpus = gpus_of(facts_, asked_);
    if (result_.gpus < cut && !asked_.gpus) {
      note(fmt::format("the file has {} GPUs, but tensor {} x pipeline {} x context {} need {}: {} taken", result_.gpus,
                       tensor_, pipeline_, context_, cut, cut));
      result_.gpus = cut;
    }
    if (result_.gpus % cut != 0)
      throw config::ConfigError(origin_, "",
                                fmt::format("{} GPUs are no multiple of tensor {} x pipeline {} x context {}",
                                            result_.gpus, tensor_, pipeline_, context_));
    data_ = result_.gpus / cut;
  }

  void batch() {
    std::optional<std::int64_t> micro = count("training.micro_batch", "micro_batch");
    std::optional<std::int64_t> global = facts_.count("global_batch");
    std::string_view from = "global_batch";
    if (const auto tokens = facts_.count("global_tokens"); !global && tokens)
      if (const auto length = count("training.sequence_length", "training.sequence_length"); length) {
        global = *tokens / *length;
        from = "global_tokens";
      }
    // A default of the tool yields to a count that the file says of all GPUs.
    const bool of_all = global || facts_.has("total_accumulation");
    const Fact* own = facts_.find("accumulation");
    const bool yields = of_all && own != nullptr && own->key.empty() &&
                        find_path(asked_.tree, "training.gradient_accumulation") == nullptr;
    constexpr std::int64_t kUnsaid = -1;
    std::int64_t accumulation =
        yields ? kUnsaid : count("training.gradient_accumulation", "accumulation").value_or(kUnsaid);
    if (const auto total = facts_.count("total_accumulation"); accumulation == kUnsaid && total)
      accumulation = divided(*total, data_, "total_accumulation");
    if (!micro && global) {
      micro = divided(*global, times(facts_, from, data_, std::max<std::int64_t>(1, accumulation)), from);
      note(fmt::format("micro batch {} = {} sequences a step / ({} ranks x {} micro-batches)", *micro, *global, data_,
                       std::max<std::int64_t>(1, accumulation)));
    } else if (micro && global && accumulation == kUnsaid) {
      accumulation = divided(*global, times(facts_, from, *micro, data_), from);
      note(fmt::format("accumulation {} = {} sequences a step / ({} of a micro-batch x {} ranks)", accumulation,
                       *global, *micro, data_));
    }
    if (const auto piece = facts_.count("pipeline_micro_batch"); pipeline_ > 1 && piece && micro && *piece > 0) {
      accumulation = times(facts_, "pipeline_micro_batch", std::max<std::int64_t>(1, accumulation),
                           divided(*micro, *piece, "pipeline_micro_batch"));
      micro = *piece;
    }
    if (const auto each = facts_.count("sequences_per_sample"); each && micro)
      micro = times(facts_, "sequences_per_sample", *micro, *each);
    if (micro) put("training.micro_batch", std::to_string(*micro), "micro_batch");
    if (accumulation != kUnsaid) put("training.gradient_accumulation", std::to_string(accumulation), "accumulation");
  }
  [[nodiscard]] std::int64_t divided(std::int64_t whole, std::int64_t by, std::string_view from) const {
    if (by < 1 || whole < by || whole % by != 0)
      facts_.fail(from,
                  fmt::format("{} is no multiple of {}, what the GPUs take at once; say --batch, --accumulation or "
                              "other GPUs (--cluster, --parallel data=N)",
                              whole, by));
    return whole / by;
  }

  void parallel() {
    if (result_.gpus <= 1 && !asked_.gpus) {
      if (facts_.has("sharding") && facts_.text("sharding") != "none" && facts_.text("sharding") != "ddp")
        note(fmt::format(
            "one GPU, as nothing says more: {} shards nothing there; --cluster NAME (or cluster: in a scenario) "
            "says the machine",
            facts_.text("sharding")));
      if (Node* training = result_.scenario.find("training"))
        std::erase_if(training->entries, [](const config::Entry& entry) { return entry.key == "parallel"; });
      return;
    }
    const std::string at = "training.parallel.";
    put(at + "data", std::to_string(data_), "gpus");
    sharding();
    if (facts_.text("framework", "torch") != "torch") put(at + "framework", facts_.text("framework"), "framework");
    for (const auto& [name, value] : {std::pair{"tensor", tensor_}, {"pipeline", pipeline_}, {"context", context_}})
      if (value > 1) put(at + name, std::to_string(value), name);
    if (const std::int64_t expert = degree("expert"); expert > 1) put(at + "expert", std::to_string(expert), "expert");
    if (tensor_ > 1 && facts_.flag("sequence_parallel")) put(at + "sequence_parallel", "true", "sequence_parallel");
    if (pipeline_ > 1) {
      std::int64_t stages = degree("virtual_stages");
      if (const auto layers = facts_.count("layers"), each = facts_.count("layers_per_virtual_stage"); layers && each)
        stages =
            divided(*layers, times(facts_, "layers_per_virtual_stage", pipeline_, *each), "layers_per_virtual_stage");
      if (stages > 1) put(at + "virtual_stages", std::to_string(stages), "virtual_stages");
      if (find_path(result_.scenario, at + "schedule") == nullptr)
        put(at + "schedule", stages > 1 ? "interleaved" : "1f1b");
    }
    if (facts_.flag("offload_optimizer") && facts_.text("framework") == "deepspeed")
      facts_.fail("offload_optimizer",
                  "DeepSpeed's optimizer in the host's memory is not modelled: leave it out, or ask "
                  "with fully_shard's CPUOffloadPolicy (training.parallel.offload)");
    if (facts_.flag("offload_parameters") || facts_.flag("offload_optimizer")) {
      if (facts_.text("framework") == "deepspeed")
        facts_.fail("offload_parameters", "DeepSpeed's parameters in the host's memory are not modelled: leave it out");
      put(at + "offload", "true", facts_.has("offload_parameters") ? "offload_parameters" : "offload_optimizer");
    }
  }
  void sharding() {
    const std::string at = "training.parallel.";
    std::string kind = facts_.text("sharding", "");
    const std::int64_t shard = facts_.count("shard").value_or(0), replicate = degree("replicate");
    if (kind.empty() && facts_.has("shard")) {
      const bool shards = shard < 0 ? data_ > replicate : shard > 1;
      kind = shards ? (replicate > 1 ? "hsdp" : "fsdp") : "ddp";
    }
    if (kind == "none" || kind.empty()) kind = "ddp";
    if (kind == "shard-gradients") {
      kind = "fsdp1";
      put(at + "sharding", "gradients", "sharding");
    }
    if (kind == "fsdp" && replicate > 1) kind = "hsdp";
    const std::int64_t groups = std::max(replicate, degree("nodes"));
    if (kind == "hsdp" && groups < 2) kind = "fsdp1";
    if (data_ * context_ <= 1) return;  // nothing to share
    put(at + "strategy", kind, facts_.has("sharding") ? "sharding" : "shard");
    if (kind == "hsdp") put(at + "replicate", std::to_string(groups), "replicate");
  }

  void adapters() {
    const std::string method = facts_.text("method", "full");
    if (method != "lora" && method != "qlora") {
      if (facts_.flag("load_in_8bit") || facts_.flag("load_in_4bit"))
        facts_.fail(facts_.flag("load_in_8bit") ? "load_in_8bit" : "load_in_4bit",
                    "weights in few bits are trained beside adapters: say which adapters");
      return;
    }
    const std::string at = "training.lora.";
    put(at + "rank", std::to_string(facts_.count("lora_rank").value_or(8)), "lora_rank");
    std::vector<std::string> targets = words_of("lora_targets");
    for (const auto& [name, fact] : facts_.all())
      if (name.starts_with("lora_target_") && !is_off(fact.value)) targets.push_back(name.substr(12));
    put_layers(at + "targets", targets, kTargets, "lora_targets");
    put_layers(at + "modules_to_save", words_of("lora_modules_to_save"), kSaved, "lora_modules_to_save");
    if (facts_.has("lora_dropout")) put(at + "dropout", facts_.find("lora_dropout")->value);
    if (facts_.flag("lora_dora")) put(at + "dora", "true", "lora_dora");
    if (facts_.has("lora_dtype")) put(at + "dtype", facts_.find("lora_dtype")->value);
    if (facts_.flag("load_in_8bit"))
      facts_.fail("load_in_8bit", "a base in 8 bits is not modelled: expected false, or load_in_4bit");
    if (method == "qlora" || facts_.flag("load_in_4bit"))
      put(at + "frozen_weights", facts_.flag("double_quant") ? "nf4-double" : "nf4", "load_in_4bit");
  }
  [[nodiscard]] std::vector<std::string> words_of(std::string_view fact) const {
    std::vector<std::string> out;
    const Fact* found = facts_.find(fact);
    if (found == nullptr) return out;
    std::vector<std::string> texts;
    for (const Node& item : found->value.items) texts.push_back(item.scalar);
    if (found->value.kind == Node::Kind::scalar && !is_off(found->value)) texts.push_back(found->value.scalar);
    for (const std::string& text : texts)
      for (std::size_t i = 0; i < text.size();) {
        const std::size_t end = std::min(text.find_first_of(", ", i), text.size());
        if (end > i) out.push_back(text.substr(i, end - i));
        i = end + 1;
      }
    return out;
  }
  static constexpr std::array<Names, 38> kTargets{{{"q_proj", "query"},
                                                   {"k_proj", "key"},
                                                   {"v_proj", "value"},
                                                   {"o_proj", "output"},
                                                   {"gate_proj", "gate"},
                                                   {"up_proj", "up"},
                                                   {"down_proj", "down"},
                                                   {"qkv_proj", "qkv"},
                                                   {"c_attn", "qkv"},
                                                   {"query_key_value", "qkv"},
                                                   {"wqkv", "qkv"},
                                                   {"w_pack", "qkv"},
                                                   {"all", "all"},
                                                   {"all-linear", "all"},
                                                   {"lm_head", "head"},
                                                   {"w1", "gate"},
                                                   {"w3", "up"},
                                                   {"w2", "down"},
                                                   {"wq", "query"},
                                                   {"wk", "key"},
                                                   {"wv", "value"},
                                                   {"wo", "output"},
                                                   {"q", "query"},
                                                   {"k", "key"},
                                                   {"v", "value"},
                                                   {"o", "output"},
                                                   {"query", "query"},
                                                   {"key", "key"},
                                                   {"value", "value"},
                                                   {"output_proj", "output"},
                                                   {"out_proj", "output"},
                                                   {"gate_up_proj", "gate"},
                                                   {"fc1", "up"},
                                                   {"fc2", "down"},
                                                   {"dense_h_to_4h", "up"},
                                                   {"dense_4h_to_h", "down"},
                                                   {"head", "head"},
                                                   {"output", "output"}}};
  static constexpr std::array<Names, 7> kSaved{{{"embed_tokens", "embeddings"},
                                                {"wte", "embeddings"},
                                                {"embeddings", "embeddings"},
                                                {"word_embeddings", "embeddings"},
                                                {"lm_head", "head"},
                                                {"head", "head"},
                                                {"output", "head"}}};
  template <std::size_t N>
  void put_layers(const std::string& path, const std::vector<std::string>& words, const std::array<Names, N>& known,
                  std::string_view from) {
    std::vector<std::string> ours;
    for (const std::string& word : words) {
      const std::string small = in_small_letters(word);
      const auto found = std::find_if(known.begin(), known.end(), [&](const Names& one) {
        return small == one.first || small.ends_with(fmt::format(".{}", one.first));
      });
      if (found == known.end())
        facts_.fail(from,
                    fmt::format("'{}' is no layer that is known; {} of a scenario says which layers", word, path));
      if (std::find(ours.begin(), ours.end(), found->second) == ours.end()) ours.emplace_back(found->second);
    }
    if (ours.empty()) return;
    const Fact* fact = facts_.find(from);
    const config::Origin origin = fact != nullptr ? fact->value.origin : origin_;
    if (std::find(ours.begin(), ours.end(), "all") != ours.end()) return put(path, scalar_node("all", origin));
    Node list;
    list.kind = Node::Kind::list;
    list.origin = origin;
    for (std::string& one : ours) list.items.push_back(scalar_node(std::move(one), origin));
    put(path, std::move(list));
  }

  void checkpointing() {
    const Fact* fact = facts_.find("checkpointing");
    if (fact == nullptr) return;
    std::string kind = in_small_letters(fact->value.scalar);
    if (is_off(fact->value)) kind = "none";
    else if (kind == "true" || kind == "full") kind = "block";
    constexpr std::string_view kEach = "selective-";
    if (kind.starts_with(kEach)) {
      put("training.checkpointed_every", kind.substr(kEach.size()), "checkpointing");
      kind = "block";
    }
    put("training.activation_checkpointing", kind, "checkpointing");
  }

  const Facts& facts_;
  const Asked& asked_;
  TrainingFile& result_;
  config::Origin origin_;
  std::vector<std::string> model_changes_;
  std::int64_t tensor_ = 1, pipeline_ = 1, context_ = 1, data_ = 1;
};

}  // namespace

void assemble(const Facts& facts, const Asked& asked, TrainingFile& result) { Assembler(facts, asked, result).run(); }

}  // namespace ridgeline::training_files
