// Kinds of JSON, YAML, TOML and line files that their keys tell.
#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/input/text_source.h"
#include "sim/recognition/outline.h"
#include "sim/recognition/recognise.h"
#include "sim/training_files/training_file.h"
#include "sim/units/user_error.h"

namespace ridgeline::recognition {
namespace {

struct Keys {
  std::string_view kind;
  std::array<std::string_view, 3>
      all;  ///< "KEY" or "KEY=TEXT" of the outline; "!KEY" is not there; empty ones are not asked
};

// Those that say more in front.
constexpr std::array kKeys{
    // recordings
    Keys{"op-trace", {"ridgeline", "version"}},
    Keys{"kineto", {"traceEvents", "schemaVersion"}},
    Keys{"kineto", {"traceEvents", "deviceProperties"}},
    Keys{"kineto", {"schemaVersion", "deviceProperties"}},
    Keys{"execution-trace", {"schema", "nodes"}},
    Keys{"chrome-trace", {"traceEvents"}},
    Keys{"chrome-trace", {"[].ph", "[].name"}},
    Keys{"notebook", {"cells", "nbformat"}},
    Keys{"memory-stats", {"allocated_bytes.all.current"}},
    Keys{"memory-stats", {"allocated_bytes.all"}},
    Keys{"probe", {"format=ridgeline-probe"}},
    Keys{"answer", {"schema", "tool", "question"}},
    Keys{"answer", {"schema=ridgeline/1"}},
    Keys{"kernel-cases", {"op", "params"}},
    Keys{"collective-cases", {"op", "bytes", "gpus"}},
    Keys{"collective-cases", {"op", "bytes", "!params"}},
    Keys{"server-error", {"error", "!model_type", "!op"}},
    // networks and what lies beside them
    Keys{"pipeline", {"_class_name", "_diffusers_version", "vae"}},
    Keys{"pipeline", {"_class_name", "_diffusers_version", "scheduler"}},
    Keys{"pipeline", {"_class_name", "num_train_timesteps", "!sample_size"}},
    Keys{"diffusers", {"_class_name"}},
    Keys{"weight-index", {"weight_map"}},
    Keys{"adapter", {"peft_type"}},
    Keys{"trainer-state", {"log_history"}},
    Keys{"tokenizer", {"added_tokens", "pre_tokenizer"}},
    Keys{"tokenizer", {"truncation", "model", "normalizer"}},
    Keys{"tokenizer", {"tokenizer_class", "!model_type", "!architectures"}},
    Keys{"tokenizer", {"added_tokens_decoder"}},
    Keys{"tokenizer", {"bos_token", "eos_token", "!model_type"}},
    Keys{"tokenizer", {"unk_token", "pad_token", "!model_type"}},
    Keys{"tokenizer", {"<unk>", "</s>"}},
    Keys{"tokenizer", {"<|endoftext|>", "!model"}},
    Keys{"tokenizer", {"[PAD]", "[CLS]"}},
    Keys{"modules", {"[].idx", "[].type"}},
    Keys{"preprocessor", {"image_processor_type"}},
    Keys{"preprocessor", {"feature_extractor_type"}},
    Keys{"preprocessor", {"processor_class", "!model_type", "!architectures"}},
    Keys{"preprocessor", {"image_mean", "image_std"}},
    Keys{"generation", {"transformers_version", "eos_token_id", "!hidden_size"}},
    Keys{"generation", {"max_new_tokens", "!model_type", "!model"}},
    Keys{"generation", {"temperature", "top_p", "!model_type"}},
    Keys{"params", {"dim", "n_layers", "n_heads"}},
    // other simulators
    Keys{"calculon", {"matrix", "mem1"}},
    Keys{"calculon", {"networks", "mem1"}},
    Keys{"calculon-model", {"feedforward", "attn_heads"}},
    Keys{"calculon-run", {"num_procs", "tensor_par"}},
    Keys{"llmcompass", {"device.compute_chiplet"}},
    Keys{"llmcompass", {"compute_chiplet"}},
    Keys{"simumax", {"sys_name", "accelerator"}},
    Keys{"simumax", {"accelerator.mem_gbs"}},
    Keys{"simumax-strategy", {"tp_size", "micro_batch_num"}},
    Keys{"simumax-model", {"hidden_size", "head_num", "layer_num"}},
    Keys{"genz", {"Flops", "Memory_BW"}},
    Keys{"genz", {"real_values", "Memory_size"}},
    Keys{"llmservingsim", {"npu_mem"}},
    Keys{"llmservingsim", {"nodes", "num_nodes"}},
    Keys{"llmservingsim", {"hardware", "npu_num"}},
    Keys{"llmservingsim", {"npu_num", "npu_group"}},
    Keys{"astra-network", {"topology", "npus_count"}},
    Keys{"astra-network", {"topologies-per-dim"}},
    Keys{"astra-network", {"topology-name", "units-count"}},
    Keys{"astra-network", {"dimensions-count"}},
    Keys{"astra-system", {"scheduling-policy"}},
    Keys{"astra-system", {"all-reduce-implementation"}},
    Keys{"astra-system", {"endpoint-delay"}},
    // Ridgeline's own
    Keys{"sweep", {"scenario", "axes"}},
    Keys{"exercise", {"chapter", "question"}},
    Keys{"scenario", {"hardware", "model", "training"}},
    Keys{"scenario", {"hardware", "model", "inference"}},
    Keys{"scenario", {"cluster", "model"}},
    Keys{"scenario", {"training.micro_batch"}},
    Keys{"scenario", {"inference.prompt_length"}},
    Keys{"scenario", {"hardware", "trace"}},
    Keys{"scenario", {"hardware", "from"}},
    Keys{"scenario", {"hardware", "model"}},
    Keys{"chip", {"sm", "dram"}},
    Keys{"chip", {"sm.count"}},
    Keys{"chip", {"dram.bandwidth"}},
    Keys{"chip", {"architecture", "compute_major"}},
    Keys{"cluster", {"gpu", "gpus"}},
    Keys{"cluster", {"gpu", "nodes"}},
    Keys{"cluster", {"gpu", "interconnect"}},
    Keys{"cluster", {"extends", "nodes"}},
    Keys{"network", {"family", "layers"}},
    Keys{"network", {"family", "hidden"}},
    Keys{"network", {"program"}},
    Keys{"software", {"base", "cuda"}},
    Keys{"software", {"has_flash_attention"}},
    Keys{"host", {"base", "scale"}},
    Keys{"host", {"scales_seen"}},
    Keys{"host", {"known", "title"}},
};

bool holds(const Outline& outline, std::string_view asked) {
  if (asked.empty()) return true;
  if (asked.front() == '!') return !outline.contains(asked.substr(1));
  const std::size_t equals = asked.find('=');
  const auto found = outline.find(asked.substr(0, equals));
  return found != outline.end() && (equals == std::string_view::npos || found->second == asked.substr(equals + 1));
}

std::string held(const Outline& outline, std::string_view key) {
  const auto found = outline.find(key);
  return found == outline.end() || found->second.empty() || found->second == "null" ? "" : found->second;
}

/// The tool whose training configuration it is; "" where it is none.
std::string tool_of(const Sample& sample) {
  constexpr std::size_t kLongest = std::size_t{200} << 10;  // no configuration of a tool is as long as a sample
  if (sample.compressed || sample.head.size() >= kLongest) return "";
  try {
    return training_files::tool_of_file(sample.path);
  } catch (const UserError&) {
    return "";
  }
}

Recognised network(const Outline& outline) {
  std::string type = held(outline, "model_type");
  if (type.empty()) type = held(outline, "architectures.[]");
  return {&file_kind("config"), type.empty() ? "" : " (" + type + ")", ""};
}

/// Keys of networks of 2019, before model_type.
bool has_sizes(const Outline& outline) {
  for (const std::string_view layers : {"num_hidden_layers", "n_layer", "num_layers", "n_layers", "depths"})
    for (const std::string_view width : {"hidden_size", "n_embd", "d_model", "dim", "hidden_sizes", "embed_dim"})
      if (outline.contains(layers) && outline.contains(width)) return true;
  return false;
}

/// A sample a line: an object, and another one on the next line.
bool has_several_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  return end != std::string_view::npos && text.substr(0, end).ends_with('}') && text.substr(end + 1).starts_with('{');
}

}  // namespace

Recognised kind_by_keys(const Sample& sample) {
  const bool json = begins_as_json(sample.head);
  const Outline outline = json ? json_outline(sample.head) : yaml_outline(sample.head);
  const bool yaml = sample.ending == ".yaml" || sample.ending == ".yml";
  for (const Keys& keys : kKeys) {
    if (!std::all_of(keys.all.begin(), keys.all.end(), [&](std::string_view one) { return holds(outline, one); }))
      continue;
    if (!json && !yaml && keys.all[0].find_first_of(".=") == std::string_view::npos && keys.all[1].empty()) continue;
    return {&file_kind(keys.kind), "", ""};
  }
  if (outline.contains("model_type") || outline.contains("architectures"))
    if (const std::string tool = tool_of(sample); tool.empty()) return network(outline);
  if (const std::string tool = tool_of(sample); !tool.empty()) return {&file_kind("training"), " (" + tool + ")", ""};
  if ((json || yaml) && has_sizes(outline)) return network(outline);
  if (json && has_several_lines(sample.head)) return {&file_kind("dataset"), "", ""};
  return {};
}

}  // namespace ridgeline::recognition
