#include "sim/scenario/short_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

// clang-format off
constexpr auto kFlags = std::to_array<ShortFlag>({
    {"--model", "model={}", "model={}", "network: a name of models/, a path, a HuggingFace config.json", "gpt2"},
    {"--part", "model.part={}", "model.part={}", "of a multimodal network: text, vision or both (default)", "text"},
    {"--hardware", "hardware={}", "hardware={}", "GPU: a name of hw/ or a path", "h100"},
    {"--cluster", "cluster={}", "cluster={}", "several GPUs: a name of hw/clusters/ or a path", "hgx-h100"},
    {"--batch", "training.micro_batch={}", "inference.sequences={}", "sequences in one forward pass", "8"},
    {"--seq", "training.sequence_length={}", "inference.prompt_length={}", "tokens in a sequence", "1024"},
    {"--accumulation", "training.gradient_accumulation={}", "", "micro-batches in a step", "4"},
    {"--precision", "training.precision={}", "inference.precision={}", "fp32, tf32, amp-fp16, amp-bf16, bf16, apex-o2; not given: bf16 for networks of more than 1 B parameters, fp32 for others", "bf16"},
    {"--lora", "training.lora.rank={}", "", "freeze the network and train adapters (LoRA) of this rank", "16"},
    {"--qlora", "training.lora.rank={} training.lora.frozen_weights=nf4-double", "", "the same beside weights of four bits (NF4, bitsandbytes)", "16"},
    {"--full", "training.lora=none", "", "train all weights, whatever the scenario file says", ""},
    {"--prompt", "inference.prompt_length={}", "inference.prompt_length={}", "use the model: tokens that it reads", "1024"},
    {"--generate", "inference.new_tokens={}", "inference.new_tokens={}", "use the model: tokens that it generates for each sequence", "128"},
    {"--tf32", "training.tf32={}", "inference.tf32={}", "true: fp32 matmuls may use TF32 (default: as PyTorch, false)", "true"},
    {"--cudnn-tf32", "training.cudnn_tf32={}", "inference.cudnn_tf32={}", "false: fp32 convolutions may not use TF32 (default: as PyTorch, true)", "false"},
    {"--attention", "training.attention={}", "inference.attention={}", "eager, sdpa, flash, cudnn, efficient, math", "flash"},
    {"--optimizer", "training.optimizer.name={}", "", "adamw, adam, sgd, sgd-momentum, adafactor, adamw-8bit, adamw-kahan, lion, lion-8bit, lamb, schedule-free-adamw, muon, bert-adam, none", "adamw"},
    {"--implementation", "training.optimizer.implementation={}", "", "of the optimizer: for-loop, foreach, fused", "fused"},
    {"--clipping", "training.gradient_clipping={}", "", "largest gradient norm, or none", "1.0"},
    {"--checkpointing", "training.activation_checkpointing={}", "", "none, block", "block"},
    {"--compile", "training.compile=true", "inference.compile=true", "torch.compile", ""},
    {"--fsdp", "training.parallel.strategy=fsdp", "", "weights, gradients and states sharded over the GPUs of --cluster", ""},
    {"--host", "host={}", "host={}", "host: a name of hw/hosts/ or a path", "default"},
    {"--software", "software={}", "software={}", "software stack: a name of hw/software/ or a path", "pytorch-2.11"},
    {"--from", "from={}", "from={}", "training configuration of another tool: DeepSpeed, torchtitan, LLaMA-Factory ... (docs/tools.md)", "config.yaml"},
    {"--recorded-on", "recorded_on={}", "recorded_on={}", "GPU of a recording: a name of hw/ or a path (default: as the trace names it)", "h100"},
});
// clang-format on

/// Calls `each` with every change of the list.
template <typename Each>
void for_changes(std::string_view list, const Each& each) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end > 0) each(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + 1));
  }
}

/// The value that a change has where the pattern of a flag has {}; null where the change is another one.
const std::string_view* match(std::string_view pattern, std::string_view change, std::string_view& value) {
  const std::size_t place = pattern.find("{}");
  if (place == pattern.npos) return pattern == change ? &value : nullptr;
  if (!change.starts_with(pattern.substr(0, place))) return nullptr;
  value = change.substr(place);
  return &value;
}

/// The changes of `flag` where all of them are among `open`, which loses them; else nothing.
std::string taken(const ShortFlag& flag, std::vector<std::string>& open) {
  for (const std::string_view pattern : {flag.training, flag.inference}) {
    std::vector<std::size_t> found;
    std::string_view value;
    std::size_t wanted = 0;
    for_changes(pattern, [&](std::string_view one) {
      ++wanted;
      for (std::size_t i = 0; i < open.size(); ++i)
        if (match(one, open[i], value) != nullptr) {
          found.push_back(i);
          break;
        }
    });
    if (wanted == 0 || found.size() < wanted) continue;
    const std::string text = std::string(flag.flag) + (flag.has_value() ? " " + std::string(value) : "");
    std::sort(found.rbegin(), found.rend());
    for (const std::size_t i : found) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    return text;
  }
  return "";
}

}  // namespace

std::span<const ShortFlag> short_flags() { return kFlags; }

const ShortFlag* flag_of_key(std::string_view key) {
  const ShortFlag* found = nullptr;
  for (const ShortFlag& flag : kFlags)
    for (const std::string_view list : {flag.training, flag.inference})
      for_changes(list, [&](std::string_view change) {
        if (found == nullptr && change.substr(0, change.find('=')) == key) found = &flag;
      });
  return found;
}

std::vector<config::Override> changes_of(const ShortFlag& flag, std::string_view value, bool inference) {
  if (inference && flag.inference.empty())
    throw UserError(
        fmt::format("{} is of training, and the scenario uses the model (inference): leave one out", flag.flag));
  const std::string origin = flag.has_value() ? fmt::format("{} {}", flag.flag, value) : std::string(flag.flag);
  std::vector<config::Override> changes;
  for_changes(inference ? flag.inference : flag.training, [&](std::string_view pattern) {
    const std::size_t equals = pattern.find('=');
    const std::string_view given = pattern.substr(equals + 1);
    changes.push_back({std::string(pattern.substr(0, equals)), std::string(given == "{}" ? value : given), origin});
  });
  return changes;
}

std::string as_flags(std::span<const std::string> sets) {
  std::vector<std::string> open;
  for (const std::string& set : sets) for_changes(set, [&](std::string_view one) { open.emplace_back(one); });
  std::vector<std::string> words;
  // Flags of several keys first: a part of theirs may be another flag.
  for (const bool several : {true, false})
    for (const ShortFlag& flag : kFlags) {
      if ((flag.training.find(' ') != flag.training.npos) != several) continue;
      if (std::string text = taken(flag, open); !text.empty()) words.push_back(std::move(text));
    }
  std::string parallel;
  constexpr std::string_view kParallel = "training.parallel.";
  for (const std::string& one : open)
    if (one.starts_with(kParallel)) parallel += (parallel.empty() ? "" : ",") + one.substr(kParallel.size());
  if (!parallel.empty()) words.push_back("--parallel " + parallel);
  for (const std::string& one : open)
    if (!one.starts_with(kParallel)) words.push_back("--set " + one);
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace ridgeline
