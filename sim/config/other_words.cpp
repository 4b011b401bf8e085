#include "sim/config/other_words.h"

#include <algorithm>
#include <array>

#include "sim/units/meant_name.h"
#include "sim/units/nearest_name.h"

namespace ridgeline::config {
namespace {

// clang-format off
constexpr auto kWords = std::to_array<OtherWord>({
    {"network model-name model-name-or-path base-model pretrained-model-name-or-path", "model"},
    {"gpu gpu-name gpu-type device card accelerator hw", "hardware"},
    {"gpus num-gpus n-gpus nodes node machine world-size nproc-per-node", "cluster", "hgx-h100"},
    {"batch batch-size micro-batch micro-batch-size per-device-train-batch-size per-gpu-batch-size train-batch-size bs mbs", "training.micro_batch"},
    {"seq seq-len seq-length sequence-length sequence-len max-length max-seq-length max-seq-len context context-length block-size ctx seqlen cutoff-len", "training.sequence_length"},
    {"accumulation gradient-accumulation gradient-accumulation-steps grad-accum grad-accumulation accumulate-grad-batches", "training.gradient_accumulation"},
    {"dtype torch-dtype mixed-precision compute-dtype", "training.precision"},
    {"bf16 bfloat16", "training.precision", "bf16"},
    {"fp16 float16 half", "training.precision", "amp-fp16"},
    {"amp autocast", "training.precision", "amp-bf16"},
    {"lora lora-rank lora-r r peft adapters adapter rank", "training.lora.rank"},
    {"qlora qlora-rank load-in-4bit nf4 bnb-4bit", "training.lora.frozen_weights"},
    {"full full-finetuning full-fine-tuning", "training.lora"},
    {"prompt prompt-length prompt-len input-len input-tokens", "inference.prompt_length"},
    {"generate new-tokens max-new-tokens output-len output-tokens", "inference.new_tokens"},
    {"allow-tf32", "training.tf32"},
    {"attn attn-implementation flash-attention flash-attn attention-implementation", "training.attention"},
    {"optim optimiser", "training.optimizer.name"},
    {"clipping max-grad-norm grad-clip clip-grad-norm gradient-clip-val max-norm", "training.gradient_clipping"},
    {"checkpointing gradient-checkpointing activation-checkpoint recompute gradient-checkpoint", "training.activation_checkpointing"},
    {"torch-compile", "training.compile"},
    {"fsdp fully-shard fsdp2 zero3 sharded zero", "training.parallel.strategy"},
    {"tp tensor-parallel tensor-parallel-size tensor-model-parallel-size tp-size", "training.parallel.tensor"},
    {"pp pipeline-parallel pipeline-parallel-size pipeline-model-parallel-size", "training.parallel.pipeline"},
    {"dp data-parallel-size ddp", "training.parallel.data"},
    {"cp context-parallel context-parallel-size", "training.parallel.context"},
    {"cpu", "host"},
    {"pytorch torch pytorch-version torch-version", "software"},
    {"config config-file deepspeed accelerate-config training-config", "from"},
    {"memory vram memory-size dram-capacity hbm mem", "dram.capacity"},
    {"bandwidth memory-bandwidth hbm-bandwidth", "dram.bandwidth"},
    {"sms num-sms sm-count multiprocessors", "sm.count"},
    {"tdp watts power-limit", "power.limit"},
    {"frequency boost boost-clock clock-speed", "clock.boost"},
    {"l2-cache l2-size l2-capacity", "l2.capacity"},
    {"arch compute-capability", "architecture"},
    {"name", "title"},
    {"price cost", "price_per_hour"},
    {"hidden-size d-model n-embd dim", "hidden"},
    {"num-layers n-layer n-layers num-hidden-layers depth", "layers"},
    {"num-heads n-head n-heads num-attention-heads", "heads"},
    {"num-key-value-heads n-kv-heads kv-heads", "key_value_heads"},
    {"vocab vocab-size n-vocab", "vocabulary"},
    {"intermediate-size ffn-dim d-ff mlp-dim", "feed_forward"},
    {"json", "--format", "json"},
    {"verbose details detailed long breakdown", "--explain"},
    {"silent short brief summary", "--quiet"},
    {"all-gpus every-gpu", "--on-every-gpu"},
    {"lr learning-rate epochs num-epochs num-train-epochs max-steps warmup warmup-steps weight-decay seed dataset data scheduler lr-scheduler dropout shuffle output-dir logging-steps eval-steps save-steps", ""},
});

struct OtherValue {
  std::string_view key, words, value;
};
constexpr auto kValues = std::to_array<OtherValue>({
    {"precision", "fp16 float16 half f16 16 torch-float16 fp16-mixed 16-mixed", "amp-fp16"},
    {"precision", "bfloat16 torch-bfloat16 bf16-true", "bf16"},
    {"precision", "mixed amp autocast bf16-mixed", "amp-bf16"},
    {"precision", "float32 full 32 single torch-float32 float no", "fp32"},
    {"precision", "fp8 float8 e4m3 te", "bf16 with --set training.fp8=tensorwise"},
    {"precision", "int8 int4 4bit 8bit fp4 nf4 4 8", "bf16 with --qlora 16"},
    {"activation_checkpointing", "true yes on full all 1 every blocks layers layer", "block"},
    {"activation_checkpointing", "false no off 0", "none"},
    {"attention", "fa2 fa3 flash2 flash3 xformers-flash", "flash"},
    {"attention", "xformers memory-efficient mem-efficient", "efficient"},
    {"attention", "default native pytorch true", "sdpa"},
    {"name", "adam8bit adam-8bit adamw8bit adamw-bnb-8bit", "adamw-8bit"},
    {"name", "momentum nesterov", "sgd-momentum"},
    {"op", "matmul gemm linear dot", "mm"},
    {"strategy", "fsdp2 full-shard zero3 zero-3 3", "fsdp"},
});
// clang-format on

std::string bare(std::string_view text) {
  std::string out;
  for (const char c : in_small_letters(text))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  return out;
}

bool has_word(std::string_view words, const std::string& wanted) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (bare(words.substr(0, end)) == wanted) return true;
    words.remove_prefix(std::min(words.size(), end + 1));
  }
  return false;
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }
std::string first_part(std::string_view key) { return std::string(key.substr(0, key.find('.'))); }

bool among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The rest of `key` inside of the section at `path`; empty where the section has no such key.
std::string_view inside(std::string_view key, const std::string& path, const std::vector<std::string>& known) {
  if (!path.empty()) {
    if (!key.starts_with(path + ".")) return "";
    key.remove_prefix(path.size() + 1);
  }
  return among(first_part(key), known) ? key : "";
}

}  // namespace

std::span<const OtherWord> other_words() { return kWords; }

const OtherWord* other_word(std::string_view word) {
  const std::string wanted = bare(word);
  const auto found =
      std::find_if(kWords.begin(), kWords.end(), [&](const OtherWord& row) { return has_word(row.words, wanted); });
  return found == kWords.end() ? nullptr : &*found;
}

std::string_view other_value(std::string_view key, std::string_view word) {
  const std::string wanted = bare(word);
  for (const OtherValue& row : kValues)
    if (row.key == last_part(key) && has_word(row.words, wanted)) return row.value;
  return "";
}

std::string unknown_key_fix(const std::string& path, const std::string& given, const std::vector<std::string>& known) {
  const auto meant = [&](std::string_view key, std::string_view value) {
    return "did you mean " + std::string(key) + (value.empty() ? "" : ": " + std::string(value)) + "?";
  };
  if (const std::string near = meant_name(given, known); !near.empty())
    return meant(near, "") + " Allowed: " + some_names(known);
  if (const OtherWord* word = other_word(given); word != nullptr && !word->key.starts_with("--")) {
    if (word->key.empty()) {
      if (path.empty() || path == "training") return std::string(kWithoutEffect);
    } else if (const std::string_view key = inside(word->key, path, known); !key.empty() && last_part(key) != given) {
      return meant(key, word->value);
    }
  }
  for (const OtherWord& row : kWords) {
    // The key of another section: micro_batch without the blanks that put it below training.
    if (const std::string_view key = inside(row.key, path, known); last_part(row.key) == given && !key.empty())
      return meant(key, "") + " Two blanks before it put it below " + first_part(key) + ":";
    // A section of the hardware's file.
    if (path.empty() && row.key.find('.') != row.key.npos && first_part(row.key) == given && among("hardware", known))
      return meant("hardware." + given, "");
  }
  return "expected one of " + some_names(known);
}

}  // namespace ridgeline::config
