#include "sim/report/text/workload_words.h"

#include <fmt/format.h>

#include "sim/answer/replay.h"
#include "sim/scenario/assumed_sizes.h"
#include "sim/trace/read_recording.h"

namespace ridgeline {

const char* name_of_precision(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::tf32: return "tf32";
    case Precision::amp_fp16: return "amp-fp16";
    case Precision::amp_bf16: return "amp-bf16";
    case Precision::bf16: return "bf16";
    case Precision::apex_o2: return "apex-o2";
  }
  return "?";
}

std::string assumed_words(const Scenario& s) {
  std::string words = s.assumes_precision ? fmt::format(", {}", name_of_precision(s.training.precision)) : "";
  if (const std::string sizes = assumed_sizes(s); !sizes.empty()) words += ", " + sizes;
  return words.empty() ? "" : words + " because nothing was said";
}

namespace {

/// A micro-batch; images and sounds of a program have no tokens.
std::string samples_words(std::int64_t samples, std::int64_t length) {
  if (length == 1) return fmt::format("{} sample{}", samples, samples == 1 ? "" : "s");
  return fmt::format("{} x {} tokens", samples, length);
}

std::string words_of_weights(FrozenWeights weights) {
  switch (weights) {
    case FrozenWeights::as_stored: return "";
    case FrozenWeights::nf4: return ", weights in NF4";
    case FrozenWeights::nf4_double: return ", weights in NF4, doubly quantized";
    case FrozenWeights::int8: return ", weights in int8 (LLM.int8)";
    case FrozenWeights::gptq: return ", weights in 4 bits (GPTQ)";
    case FrozenWeights::awq: return ", weights in 4 bits (AWQ)";
    case FrozenWeights::hqq: return ", weights in 4 bits (HQQ)";
    case FrozenWeights::int8_only: return ", weights in int8 (torchao)";
    case FrozenWeights::int4_only: return ", weights in int4 (torchao)";
    case FrozenWeights::fp8: return ", weights in fp8 (torchao)";
  }
  return "";
}

/// Parts of blocks that run again or wait on the host.
std::string words_of_treated(const TrainingDescription& t) {
  if (t.activation_checkpointing != ActivationCheckpointing::parts) return "";
  std::string words;
  for (const auto& [name, part] : kBlockParts)
    if (part != BlockPart::offload && t.treated_blocks.has(part)) words += fmt::format(", {} checkpointed", name);
  if (t.treated_blocks.has(BlockPart::offload)) words += ", blocks offloaded";
  return words;
}

}  // namespace

std::string training_line(const TrainingDescription& t) {
  if (t.inference) {
    std::string line =
        fmt::format("{}, {}, without gradients", samples_words(t.inference->sequences, t.sequence_length),
                    name_of_precision(t.precision));
    if (t.inference->new_tokens > 0) line += fmt::format(", {} new tokens", t.inference->new_tokens);
    if (t.inference->beams > 1) line += fmt::format(", {} beams", t.inference->beams);
    line += words_of_weights(t.inference->weights);
    if (t.parallel.tensor > 1) line += fmt::format(", layers over {} GPUs", t.parallel.tensor);
    return line;
  }
  std::string line =
      fmt::format("{}, {}", samples_words(t.micro_batch, t.sequence_length), name_of_precision(t.precision));
  if (t.weight_dtype) line += fmt::format(" over weights in {}", name_of(*t.weight_dtype));
  if (t.gradient_accumulation > 1) line += fmt::format(", {} micro-batches a step", t.gradient_accumulation);
  if (t.activation_checkpointing == ActivationCheckpointing::block) line += ", checkpointed";
  if (t.activation_checkpointing == ActivationCheckpointing::operations) line += ", checkpointed by operation";
  line += words_of_treated(t);
  if (t.preference) line += fmt::format(", DPO of {} pairs", t.micro_batch / 2);
  if (t.activation_offload != ActivationOffload::none)
    line += fmt::format(", saved tensors in the host's {} memory",
                        t.activation_offload == ActivationOffload::pageable ? "pageable" : "pinned");
  if (t.lora)
    line += fmt::format(", adapters of rank {}{}{}", t.lora->rank,
                        t.lora->dtype == t.stored_type() ? "" : fmt::format(" in {}", name_of(t.lora->dtype)),
                        t.lora->frozen == FrozenWeights::as_stored ? ""
                        : t.lora->frozen == FrozenWeights::int8    ? " beside weights of eight bits"
                                                                   : " beside weights of four bits");
  if (t.parallel.pipelined())
    line += fmt::format(", through a pipeline of {} stages{}", t.parallel.pipeline * t.parallel.virtual_stages,
                        t.parallel.virtual_stages > 1 ? fmt::format(" on {} ranks", t.parallel.pipeline) : "");
  if (t.parallel.one_process()) line += fmt::format(", in one process over {} GPUs", t.parallel.gpus());
  else if (t.parallel.several())
    line += t.parallel.pipelined()    ? fmt::format(", {} of them", t.parallel.data)
            : t.parallel.context == 1 ? fmt::format(", on each of {} GPUs", t.parallel.gpus())
                                      : fmt::format(", on {} GPUs", t.parallel.gpus());
  if (t.parallel.context > 1) line += fmt::format(", each sequence cut over {} ranks", t.parallel.context);
  return line;
}

std::string workload_line(const Scenario& s) {
  if (!s.recorded && s.lengths)
    return fmt::format("{}, {}", training_line(s.training), words_of_lengths(*s.lengths, s.training));
  if (!s.recorded) return training_line(s.training);
  const trace::RecordingFile& file = *s.recorded->file;
  const std::string other = undescribed_gpu(*s.recorded), on = other.empty() ? file.gpu().name : other;
  return fmt::format("{}{}", trace::name_of(file.format()), on.empty() ? "" : " recorded on " + on);
}

}  // namespace ridgeline
