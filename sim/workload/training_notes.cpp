#include "sim/workload/training_notes.h"

#include <fmt/format.h>

namespace ridgeline {
namespace {

/// On what a forward pass does besides: pairs of answers, blocks on the host.
void add_notes_of_passes(OpTrace& trace, const TrainingDescription& training) {
  if (training.preference)
    trace.notes.push_back(
        "preference: passes and losses from the source of TRL, sequences of one length without padding; metrics are a "
        "few small kernels");
  if (training.treated_blocks.has(BlockPart::offload))
    trace.notes.push_back("activation_checkpointing: save_on_cpu around blocks, weights that autograd keeps go along");
}

}  // namespace

void add_notes(OpTrace& trace, const ModelDescription& model, const TrainingDescription& training,
               AttentionChoice attention, std::int64_t trained) {
  if (training.lora)
    trace.notes.push_back(
        fmt::format("lora: {} of {} parameters are trained, adapters in {}; the operations of {}{}", trained,
                    trace.parameters, name_of(training.lora->dtype),
                    training.lora->dtype == DType::fp32 ? "PEFT" : "PEFT before 0.11, torchtune and LitGPT",
                    training.lora->frozen == FrozenWeights::int8 ? "; of LLM.int8 kernels were measured, no step"
                    : training.lora->frozen == FrozenWeights::gptq || training.lora->frozen == FrozenWeights::awq ||
                            training.lora->frozen == FrozenWeights::hqq
                        ? "; frozen weights of four bits in this format were not measured"
                        : ""));
  if (training.optimizer.kind == OptimizerKind::lion || training.optimizer.kind == OptimizerKind::lamb ||
      training.optimizer.kind == OptimizerKind::schedule_free_adamw)
    trace.notes.push_back(
        "optimizer: kernels and states from the source of timm, lion-pytorch, bitsandbytes, apex or schedulefree; not "
        "measured");
  if (training.optimizer.kind == OptimizerKind::muon)
    trace.notes.push_back(
        "muon: torch.optim.Muon for the matrices of blocks, AdamW for embeddings, head and norms; one step measured");
  if (training.optimizer.kind == OptimizerKind::adamw_kahan)
    trace.notes.push_back("adamw-kahan: the operations of foreach AdamW and four more passes; not measured");
  if (training.optimizer.kind == OptimizerKind::adafactor)
    trace.notes.push_back("adafactor: as torch.optim runs it; the one of Transformers holds more temporaries");
  add_notes_of_passes(trace, training);
  if (training.saves_on_cpu() != ActivationOffload::none)
    trace.notes.push_back(
        fmt::format("activation_offload: save_on_cpu around the forward pass, weights that autograd keeps go along; "
                    "measured beside "
                    "one NVIDIA H100{}",
                    training.activation_offload == ActivationOffload::pageable
                        ? ", where memory that is not pinned moved 1.9 to 3.2 GB/s out and 6.4 to 7.8 GB/s in"
                        : ""));
  if (!training.packed_lengths.empty())
    trace.notes.push_back(fmt::format(
        "packed_lengths: {} in a row, FlashAttention by cumulative lengths that come with the batch, "
        "positions "
        "looked up as without packing; its kernels were measured with causal masks and head dimensions 64 and 128 "
        "beside one NVIDIA H100, whole steps were not",
        training.packed_lengths.size() == 1 ? "one sequence"
                                            : fmt::format("{} sequences", training.packed_lengths.size())));
  if (training.parallel.megatron())
    trace.notes.push_back(
        "megatron: operations from its source, its fused kernels timed as generated ones; compared with "
        "published times of GPT on A100s only");
  else if (training.parallel.deepspeed())
    trace.notes.push_back(
        "deepspeed: operations, buffers and collectives from its source (0.19), one group of parameters, the host's "
        "work that of similar code; no step and no memory was measured");
  else if (training.parallel.tensor > 1 && model.family != ModelFamily::llama)
    trace.notes.push_back("tensor parallel ranks: measured with networks of family llama only");
  if (training.parallel.context > 1)
    trace.notes.push_back(
        "context parallel ranks: attention's kernels, memory and host as measured on one GPU for two and four ranks; "
        "their exchanges were not");
  if (training.parallel.several() && training.parallel.strategy == DataStrategy::fsdp1)
    trace.notes.push_back("fsdp1: predicted as fully_shard, without the waits of the host that limit its gathers");
  if (training.parallel.several() && training.parallel.reshard_after_forward.ranks > 1)
    trace.notes.push_back(
        "reshard_after_forward over some ranks: predicted as over all of them; what is kept is not counted");
  if (training.parallel.pipelined() && model.tie_embeddings && !training.parallel.megatron())
    trace.notes.push_back("a pipeline ties nothing: the last stage has an output projection of its own");
  if (attention == AttentionChoice::math)
    trace.notes.push_back("math attention: operations from its source; not measured");
  if (model.sparse_weights) trace.notes.push_back(kSparseWeightsNote);
  const ParallelDescription& how = training.parallel;
  if (how.split > 1)
    trace.notes.push_back(
        "split: the script's own copies between devices, embeddings on the first, final norm and head on the last, "
        "nothing tied");
  if (how.split == 1 && how.one_process())
    trace.notes.push_back(fmt::format(
        "dataparallel: the first GPU's part; how long a new thread plans cuDNN's attention was measured with CUDA 13 "
        "only{}",
        training.precision == Precision::amp_bf16 ? "; its threads enter autocast with fp16, PyTorch's default" : ""));
}

}  // namespace ridgeline
