// What goes together in training over several GPUs and what does not: each refusal with the key it names, beside the
// nearest scenario that is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/scenario/scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// Four blocks of eight heads (or as `model` says) on eight GPUs; "key: why" of a refusal without its place.
std::string told_together(const std::string& parallel, const std::string& training = "precision: bf16",
                          const std::string& model = "family: llama, code: plain") {
  try {
    (void)load_scenario({.file = {},
                         .text = "cluster: hgx-h100\nmodel: {" + model +
                                 ", layers: 4, heads: 8, hidden: 64, feed_forward: 128, vocabulary: 1024}\n"
                                 "training: {micro_batch: 4, sequence_length: 64, " +
                                 training + ", parallel: {" + parallel + "}}\n",
                         .text_name = "t",
                         .overrides = {}});
  } catch (const UserError& error) {
    const std::string text = error.what();
    const std::size_t at = text.find(": training.");
    return at == text.npos ? text : text.substr(at + 11);
  }
  return "taken";
}

struct Together {
  const char* parallel;
  const char* expected;
  const char* training = "precision: bf16";
  const char* model = "family: llama, code: plain";
};

void expect_together(const std::vector<Together>& rows) {
  for (const Together& row : rows)
    EXPECT_THAT(told_together(row.parallel, row.training, row.model), ::testing::StartsWith(row.expected))
        << row.parallel << " | " << row.training << " | " << row.model;
}

TEST(WaysTogether, DegreesFitEightGpus) {
  expect_together({
      {"data: 8", "taken"},
      {"data: 9", "parallel.data: 9 ranks, but "},
      {"tensor: 8", "taken"},
      {"tensor: 9, data: 1", "parallel.tensor: 9 ranks, but "},
      {"tensor: 3", "parallel.tensor: 3 does not divide the 8 GPUs; data says how many of them are used"},
      {"tensor: 4, data: 2", "taken"},
      {"tensor: 4, data: 3", "parallel.data: 3 x 4 ranks, but "},
      {"context: 8", "taken"},
      {"context: 9", "parallel.context: 9 ranks, but "},
      {"context: 3", "parallel.context: 3 x 1 ranks do not divide the 8 GPUs; data says how many of them are used"},
      {"context: 4, data: 3", "parallel.data: 3 x 4 ranks, but "},
      {"context: 4, tensor: 4", "parallel.context: 4 ranks for each of 4 (tensor x pipeline), but "},
      {"pipeline: 4", "taken", "precision: bf16, gradient_accumulation: 4"},
      {"pipeline: 9", "parallel.pipeline: 9 stages, but "},
      {"pipeline: 8", "parallel.pipeline: 8 stages, but model has 4 blocks",
       "precision: bf16, gradient_accumulation: 8"},
      {"pipeline: 4, data: 3", "parallel.data: 3 ranks of each of 4 stages, but "},
      {"pipeline: 4, tensor: 3, data: 1, tensor_style: by-hand", "parallel.tensor: 3 ranks of each of 4 stages, but "},
      {"pipeline: 2, tensor: 2, data: 3, tensor_style: by-hand",
       "parallel.data: 3 x 2 ranks of each of 2 stages, but "},
      {"split: 4", "taken"},
      {"split: 9", "parallel.split: 9 devices of one process, but a node has 8"},
      {"split: 8", "parallel.split: 8 devices, but model has 4 blocks"},
      {"strategy: hsdp, replicate: 2", "taken"},
      {"strategy: hsdp, replicate: 3", "parallel.replicate: 3 does not divide the 8 data parallel ranks"},
      {"strategy: fsdp, replicate: 2", "parallel.replicate: goes with strategy: hsdp"},
      {"strategy: fsdp, replicate: 1", "taken"},
  });
}

TEST(WaysTogether, OneProcessOverSeveralDevices) {
  expect_together({
      {"split: 2, pieces: 2", "taken"},
      {"split: 2, pieces: 3", "parallel.pieces: 3 does not divide the 4 sequences of a micro-batch"},
      {"pieces: 2", "parallel.pieces: goes with split: the devices of one process"},
      {"split: 2, data: 1", "taken"},
      {"split: 2, data: 2", "parallel.data: one process with its layers on several devices (split) goes with no other"},
      {"split: 2, tensor: 2", "parallel.tensor: one process with"},
      {"split: 2, context: 2", "parallel.context: one process with"},
      {"split: 2, pipeline: 2", "parallel.pipeline: one process with"},
      {"split: 2, strategy: ddp", "parallel.strategy: goes with ranks; split is one process"},
      {"split: 2, framework: torch", "parallel.framework: goes with ranks; split is one process"},
      {"split: 2", "precision: in one process over several devices", "precision: amp-fp16"},
      {"split: 2", "gradient_clipping: over the devices of one process (split) is not modelled",
       "precision: bf16, gradient_clipping: 1"},
      {"split: 2", "data_loader: in one process over several devices is not modelled",
       "precision: bf16, data_loader: tensor-dataset"},
      {"strategy: dataparallel, data: 4", "taken"},
      {"strategy: dataparallel, data: 4", "taken", "precision: bf16, gradient_clipping: 1"},
      {"strategy: dataparallel, data: 3",
       "parallel.strategy: dataparallel: 3 GPUs do not divide the 4 sequences of a micro-batch"},
      {"strategy: dataparallel, tensor: 2", "parallel.strategy: dataparallel is one process"},
      {"strategy: dataparallel, context: 2", "parallel.strategy: dataparallel is one process"},
      {"strategy: dataparallel, data: 4, no_sync: true", "parallel.no_sync: goes with ranks; strategy: dataparallel"},
      {"strategy: dataparallel, data: 4, wrap: model", "parallel.wrap: goes with ranks; strategy: dataparallel"},
  });
}

TEST(WaysTogether, LayersOverRanks) {
  const char *plain_gpt = "family: gpt2, code: plain", *llama = "family: llama";
  expect_together({
      {"tensor: 2", "taken"},
      {"tensor: 2", "taken", "precision: bf16", plain_gpt},
      {"tensor: 2, tensor_style: dtensor", "taken", "precision: bf16", plain_gpt},
      {"tensor: 2", "taken", "precision: bf16", llama},
      {"tensor: 2, tensor_style: by-hand", "taken", "precision: bf16", plain_gpt},
      {"tensor: 2, tensor_style: by-hand, loss_parallel: true",
       "parallel.loss_parallel: goes with tensor_style: dtensor"},
      {"tensor: 2, tensor_style: by-hand, prepared_inputs: true",
       "parallel.prepared_inputs: goes with tensor_style: dtensor"},
      {"tensor: 2, loss_parallel: true, prepared_inputs: false", "taken"},
      {"tensor: 2, sequence_parallel: true", "taken"},
      {"tensor: 2, tensor_style: by-hand, sequence_parallel: true",
       "parallel.sequence_parallel: goes with tensor_style: dtensor, or framework: megatron"},
      {"tensor: 2, pipeline: 2", "taken", "precision: bf16, gradient_accumulation: 4"},
      {"tensor: 2, pipeline: 2, tensor_style: dtensor", "taken", "precision: bf16, gradient_accumulation: 4"},
      {"tensor: 2, pipeline: 2", "taken", "precision: bf16, gradient_accumulation: 4", llama},
      {"tensor: 4", "parallel.tensor: model: 4 does not divide the 2 key/value heads", "precision: bf16",
       "family: llama, key_value_heads: 2"},
      {"tensor: 8, tensor_style: by-hand", "taken", "precision: bf16", "family: llama, key_value_heads: 1"},
      {"tensor: 5, data: 1", "parallel.tensor: model: 5 does not divide the 8 heads: allowed are divisors of 8"},
      {"tensor: 4", "parallel.tensor: model: 4 does not divide the 2 key/value heads", "precision: bf16",
       "family: llama, code: plain, key_value_heads: 2"},
      {"tensor: 2, strategy: fsdp", "taken"},
      {"tensor: 2, strategy: hsdp", "taken"},
      {"tensor: 2, strategy: fsdp1", "taken"},
      {"context: 2", "taken"},
      {"context: 2, rotate_method: alltoall", "taken"},
      {"rotate_method: alltoall", "parallel.rotate_method: goes with context: of two ranks or more"},
      {"context: 2", "parallel.context: PyTorch's context_parallel takes fused attention",
       "precision: bf16, attention: eager"},
      {"context: 2", "parallel.context: PyTorch's context_parallel takes fused attention",
       "precision: bf16, attention: math"},
      {"context: 2", "data_loader: over ranks that share sequences (context) is not modelled",
       "precision: bf16, data_loader: tensor-dataset"},
      {"context: 2", "packed_lengths: over ranks that share sequences (context) are not modelled",
       "precision: bf16, packed_lengths: 16"},
  });
}

TEST(WaysTogether, Stages) {
  const char *four = "precision: bf16, gradient_accumulation: 4",
             *clipped = "precision: bf16, gradient_accumulation: 4, gradient_clipping: 1",
             *checkpointed = "precision: bf16, gradient_accumulation: 4, activation_checkpointing: block";
  expect_together({
      {"schedule: gpipe", "parallel.schedule: goes with a pipeline: of two stages or more"},
      {"virtual_stages: 2", "parallel.virtual_stages: goes with a pipeline: of two stages or more"},
      {"pipeline: 2, virtual_stages: 2, data: 1",
       "parallel.virtual_stages: 2: this schedule has one stage a rank; interleaved and interleaved-zero-bubble", four},
      {"pipeline: 2, virtual_stages: 1, data: 1", "taken", four},
      {"pipeline: 2, schedule: zbv, virtual_stages: 1, data: 1",
       "parallel.virtual_stages: 1: this schedule has two stages a rank", four},
      {"pipeline: 2, schedule: zbv, data: 1", "taken", four},
      {"pipeline: 2, schedule: interleaved, virtual_stages: 2, data: 1", "taken", four},
      {"pipeline: 2, schedule: interleaved, virtual_stages: 3, data: 1",
       "parallel.pipeline: 6 stages, but model has 4 blocks", four},
      {"pipeline: 2, data: 4", "gradient_clipping: over the stages of a pipeline is not modelled", clipped},
      {"pipeline: 2, data: 4", "precision: a pipeline's schedule scales no losses",
       "precision: amp-fp16, gradient_accumulation: 4"},
      {"pipeline: 2, schedule: zb1p, data: 1", "activation_checkpointing: with a schedule that parts gradients",
       checkpointed},
      {"pipeline: 2, data: 1", "taken", checkpointed},
      {"pipeline: 2, data: 2, strategy: ddp", "taken", four},
      {"pipeline: 2, data: 2, strategy: fsdp", "taken", four},
      {"pipeline: 2, data: 2, strategy: zero2", "taken", four},
      {"pipeline: 2, data: 2, strategy: zero1", "parallel.strategy: a pipeline goes with ddp, zero2 and fsdp", four},
      {"pipeline: 2, data: 2, strategy: fsdp, wrap: 2",
       "parallel.wrap: the stages of a pipeline are sharded block by block", four},
      {"pipeline: 2, data: 2, schedule: zb1p", "parallel.schedule: with gradients of inputs and weights apart", four},
      {"pipeline: 2, data: 2, schedule: interleaved",
       "parallel.virtual_stages: several stages a rank go with data: 1 and context: 1", four},
      {"pipeline: 2, data: 1", "data_loader: over a pipeline is not modelled",
       "precision: bf16, gradient_accumulation: 4, data_loader: tensor-dataset"},
  });
}

TEST(WaysTogether, Shards) {
  expect_together({
      {"strategy: fsdp, reshard_after_forward: 4", "taken"},
      {"strategy: fsdp, reshard_after_forward: 3",
       "parallel.reshard_after_forward: 3 does not divide the 8 ranks that parameters are sharded over"},
      {"strategy: fsdp, reshard_after_forward: 1", "parallel.reshard_after_forward: 1 is out of range"},
      {"strategy: fsdp, wrap: 65536", "taken"},
      {"strategy: fsdp, wrap: 65537", "parallel.wrap: expected a number of blocks (1 to 65536), block or model"},
      {"strategy: fsdp, wrap: 0", "parallel.wrap: expected a number of blocks"},
      {"strategy: zero3", "parallel.strategy: zero3 is DeepSpeed's: expected fsdp, or framework: deepspeed"},
      {"zero_optimization: {overlap_comm: true}", "parallel.zero_optimization: goes with framework: deepspeed"},
      {"strategy: fsdp, offload: true", "taken"},
      {"strategy: hsdp, offload: true", "taken"},
      {"strategy: ddp, offload: true", "parallel.offload: CPUOffloadPolicy goes with strategy: fsdp, zero2 and hsdp"},
      {"strategy: fsdp, tensor: 2, offload: true", "parallel.offload: over tensor, context, expert and pipeline ranks"},
      {"strategy: fsdp, context: 2, offload: true", "parallel.offload: over tensor, context, expert"},
      {"strategy: fsdp, data: 1, offload: true", "parallel.offload: needs two ranks or more"},
      {"strategy: fsdp, offload: true", "optimizer: in the host's memory", "precision: bf16, optimizer: sgd"},
      {"strategy: fsdp, offload: true", "gradient_clipping: over shards in the host's memory",
       "precision: bf16, gradient_clipping: 1"},
      {"strategy: fsdp, offload: true", "precision: training.parallel.offload", "precision: amp-fp16"},
      {"expert: 2", "parallel.expert: model has no experts: expected 1"},
      {"expert_capacity: 2", "parallel.expert_capacity: goes with expert: of two ranks or more"},
      {"expert: 2, tensor: 2", "parallel.expert: model has no experts: expected 1"},
      {"expert: 2, context: 2", "parallel.expert: model has no experts: expected 1"},
      {"expert: 2, pipeline: 2", "parallel.expert: model has no experts: expected 1",
       "precision: bf16, gradient_accumulation: 4"},
      {"expert: 3, context: 2",
       "parallel.expert: experts are spread over data and context parallel ranks: 3 does not divide the 8 of them"},
      {"expert: 2, strategy: zero1", "parallel.strategy: with experts over ranks: expected ddp, fsdp or zero2"},
      {"expert: 3", "parallel.expert: experts are spread over data parallel ranks: 3 does not divide the 8 of them"},
  });
}

TEST(WaysTogether, FrameworksOfTheirOwn) {
  const char* amp = "precision: amp-bf16";
  expect_together({
      {"framework: megatron", "taken", amp, "family: gpt2"},
      {"framework: megatron", "precision: Megatron-LM keeps fp32 copies", "precision: bf16", "family: gpt2"},
      {"framework: megatron", "optimizer: Megatron-LM trains with apex's FusedAdam",
       "precision: amp-bf16, optimizer: sgd", "family: gpt2"},
      {"framework: megatron", "gradient_clipper: Megatron-LM clips with apex's kernels",
       "precision: amp-bf16, gradient_clipper: torch", "family: gpt2"},
      {"framework: megatron", "taken", "precision: amp-bf16, gradient_clipper: apex", "family: gpt2"},
      {"framework: megatron", "compile: does not go with framework: megatron", "precision: amp-bf16, compile: true",
       "family: gpt2"},
      {"framework: megatron, strategy: zero1", "taken", amp, "family: gpt2"},
      {"framework: megatron, strategy: fsdp", "parallel.strategy: expected ddp or zero1 (the distributed optimizer)",
       amp, "family: gpt2"},
      {"framework: megatron, strategy: zero1, fp32_copies: false",
       "parallel: the distributed optimizer (zero1) has fp32 copies", amp, "family: gpt2"},
      {"framework: megatron, fp16_cross_entropy: true", "precision: training.parallel.fp16_cross_entropy is of logits",
       amp, "family: gpt2"},
      {"framework: megatron, fp16_cross_entropy: true", "taken", "precision: amp-fp16", "family: gpt2"},
      {"framework: megatron, context: 2", "parallel.context: Megatron-LM's ranks that share sequences", amp,
       "family: gpt2"},
      {"framework: megatron, tensor_style: by-hand", "parallel.tensor_style: goes with framework: torch", amp,
       "family: gpt2"},
      {"framework: megatron, cross_entropy_fusion: true", "parallel.cross_entropy_fusion: goes with transformer_engine",
       amp, "family: gpt2"},
      {"framework: megatron, transformer_engine: true, cross_entropy_fusion: true", "taken", amp, "family: gpt2"},
      {"framework: megatron, last_stage_recomputes: false", "parallel.last_stage_recomputes: goes with a pipeline", amp,
       "family: gpt2"},
      {"framework: megatron, tensor: 2, sequence_parallel: true, async_all_reduce: false",
       "parallel.async_all_reduce: sequence_parallel scatters gradients", amp, "family: gpt2"},
      {"framework: megatron, pipeline: 2, schedule: gpipe", "parallel.schedule: Megatron-LM has 1f1b and interleaved",
       "precision: amp-bf16, gradient_accumulation: 4", "family: gpt2"},
      {"transformer_engine: true", "parallel.transformer_engine: goes with framework: megatron"},
      {"fp32_copies: true", "parallel.fp32_copies: goes with framework: megatron"},
      {"vocabulary_multiple: 8", "parallel.vocabulary_multiple: goes with framework: megatron"},
      {"framework: deepspeed, strategy: zero2", "taken", amp},
      {"framework: deepspeed, strategy: ddp", "parallel.strategy: DeepSpeed's stages are strategy: zero1", amp},
      {"framework: deepspeed", "parallel.framework: DeepSpeed's stages are strategy: zero1", amp},
      {"framework: deepspeed, strategy: zero2", "precision: DeepSpeed keeps fp32 copies", "precision: bf16"},
      {"framework: deepspeed, strategy: zero2, no_sync: true", "parallel.no_sync: goes with framework: torch", amp},
      {"framework: deepspeed, strategy: zero2, tensor: 2",
       "parallel.tensor: with framework: deepspeed is not modelled: expected 1", amp},
      {"framework: deepspeed, strategy: zero2", "optimizer: ZeRO updates one flat tensor",
       "precision: amp-bf16, optimizer: adafactor"},
      {"framework: deepspeed, strategy: zero2", "compile: with framework: deepspeed is not modelled",
       "precision: amp-bf16, compile: true"},
      {"framework: deepspeed, strategy: zero2", "clears_gradients: does not go with framework: deepspeed",
       "precision: amp-bf16, clears_gradients: true"},
      {"framework: deepspeed, strategy: zero2, zero_optimization: {sub_group_size: 9}",
       "parallel.zero_optimization.sub_group_size: goes with strategy: zero3", amp},
      {"framework: deepspeed, strategy: zero3, zero_optimization: {sub_group_size: 9}", "taken", amp},
      {"framework: deepspeed, strategy: zero3, zero_optimization: {use_multi_rank_bucket_allreduce: true}",
       "parallel.zero_optimization.use_multi_rank_bucket_allreduce: goes with strategy: zero1 and zero2", amp},
      {"framework: deepspeed, strategy: zero2, zero_optimization: {allgather_bucket_size: 9}",
       "parallel.zero_optimization.allgather_bucket_size: changes nothing", amp},
  });
}

TEST(WaysTogether, TypesOfWeightsSavedModulesAndOptimizersInTheBackwardPass) {
  expect_together({
      {"data: 2, strategy: fsdp1", "taken", "precision: bf16, lora: {rank: 4, dtype: bf16}"},
      {"data: 2, strategy: fsdp1", "lora: PyTorch raises: Must flatten tensors with uniform dtype",
       "precision: amp-bf16, weight_dtype: bf16, lora: {rank: 4}"},
      {"data: 2", "taken", "precision: amp-bf16, weight_dtype: bf16, lora: {rank: 4}"},
      {"data: 2", "weight_dtype: autocast to bf16 is modelled over weights in fp32 or bf16",
       "precision: amp-bf16, weight_dtype: fp16"},
      {"data: 2", "weight_dtype: precision: bf16 stores all weights in bf16", "precision: bf16, weight_dtype: fp32"},
      {"data: 2", "weight_dtype: weights in 16 bits need autocast", "precision: fp32, weight_dtype: bf16"},
      {"data: 2", "weight_dtype: apex-o2 keeps its weights in fp16", "precision: apex-o2, weight_dtype: fp16"},
      {"data: 2", "weight_dtype: PyTorch raises: Attempting to unscale FP16 gradients",
       "precision: amp-fp16, weight_dtype: fp16"},
      {"data: 2", "taken", "precision: amp-fp16, weight_dtype: fp16, lora: {rank: 4}"},
      {"data: 2", "lora.dtype: PyTorch raises: Attempting to unscale FP16 gradients",
       "precision: amp-fp16, lora: {rank: 4, dtype: fp16}"},
      {"framework: megatron", "weight_dtype: Megatron-LM casts its network itself",
       "precision: amp-bf16, weight_dtype: bf16"},
      {"framework: deepspeed, strategy: zero2", "weight_dtype: DeepSpeed casts the network",
       "precision: amp-bf16, weight_dtype: bf16"},
      {"framework: deepspeed, strategy: zero2", "lora.dtype: DeepSpeed casts adapters",
       "precision: amp-bf16, lora: {rank: 4, dtype: bf16}"},
      {"data: 1", "taken", "precision: bf16, loss_code: chunked, compile: true"},
      {"tensor: 2, data: 1", "lora.targets: adapters of the head over tensor parallel ranks",
       "precision: bf16, lora: {targets: [query, head]}"},
      {"data: 1", "taken", "precision: bf16, lora: {modules_to_save: [embeddings, head]}"},
      {"data: 2", "lora.modules_to_save: over several GPUs", "precision: bf16, lora: {modules_to_save: [head]}"},
      {"data: 1", "taken", "precision: bf16, lora: {dora: true}"},
      {"data: 2", "lora.dora: over several GPUs, beside weights of four bits", "precision: bf16, lora: {dora: true}"},
      {"data: 1", "lora.modules_to_save: head has an adapter",
       "precision: bf16, lora: {targets: [head], modules_to_save: [head]}"},
      {"data: 1", "loss_code: chunked reads the head's weight alone",
       "precision: bf16, loss_code: chunked, lora: {targets: [head]}"},
      {"data: 1", "taken",
       "precision: bf16, compile: true, compile_unit: blocks, activation_checkpointing: block, activation_offload: "
       "streams"},
      {"data: 1", "activation_offload: streams goes with", "precision: bf16, activation_offload: streams"},
      {"data: 1", "taken", "precision: bf16, optimizer: {in_backward: true}"},
      {"data: 1", "taken", "precision: bf16, optimizer: {name: adamw-8bit, paged: true}"},
      {"data: 1", "taken", "precision: bf16, optimizer: {paged: true}"},
      {"data: 1", "optimizer.paged: is of bitsandbytes", "precision: bf16, optimizer: {name: sgd, paged: true}"},
      {"data: 2", "optimizer.in_backward: over several GPUs", "precision: bf16, optimizer: {in_backward: true}"},
      {"data: 1", "optimizer.in_backward: steps with each micro-batch",
       "precision: bf16, gradient_accumulation: 2, optimizer: {in_backward: true}"},
      {"data: 1", "optimizer.in_backward: steps before the norm",
       "precision: bf16, gradient_clipping: 1, optimizer: {in_backward: true}"},
      {"data: 1", "optimizer.in_backward: scales no losses", "precision: amp-fp16, optimizer: {in_backward: true}"},
      {"data: 1", "optimizer.in_backward: in a graph of the whole network",
       "precision: bf16, compile: true, optimizer: {in_backward: true}"},
      {"data: 1", "taken", "precision: bf16, compile: true, compile_unit: blocks, optimizer: {in_backward: true}"},
      {"data: 1", "compile_unit: goes with training.compile: true", "precision: bf16, compile_unit: blocks"},
      {"data: 2", "compile_unit: blocks over several GPUs", "precision: bf16, compile: true, compile_unit: blocks"},
      {"data: 2, strategy: fsdp", "taken", "precision: bf16, compile: true, compile_unit: blocks"},
      {"data: 2, strategy: fsdp", "compile_unit: sharded networks are compiled block by block",
       "precision: bf16, compile: true, compile_unit: model"},
  });
}

TEST(WaysTogether, AdaptersPackedRowsAndProductsOfEightBits) {
  expect_together({
      {"data: 2", "taken", "precision: bf16, lora: {rank: 4}"},
      {"data: 2, strategy: zero1", "taken", "precision: bf16, lora: {rank: 4}"},
      {"data: 2, strategy: fsdp", "taken", "precision: bf16, lora: {rank: 4}"},
      {"data: 2, strategy: fsdp1", "lora: PyTorch raises: Must flatten tensors with uniform dtype",
       "precision: bf16, lora: {rank: 4}"},
      {"data: 2, strategy: fsdp1", "taken", "precision: amp-bf16, lora: {rank: 4}"},
      {"data: 2, strategy: fsdp, offload: true", "lora: adapters beside parameters in the host's memory",
       "precision: bf16, lora: {rank: 4}"},
      {"data: 2, strategy: fsdp", "lora.frozen_weights: weights of four bits over ranks that share parameters",
       "precision: bf16, lora: {rank: 4, frozen_weights: nf4}"},
      {"tensor: 2, data: 1", "taken", "precision: bf16, lora: {rank: 4}"},
      {"framework: megatron", "lora: adapters of Megatron-LM's networks are not modelled",
       "precision: amp-bf16, lora: {rank: 4}"},
      {"framework: deepspeed, strategy: zero2", "taken", "precision: amp-bf16, lora: {rank: 4}"},
      {"framework: deepspeed, strategy: zero3", "taken", "precision: amp-bf16, lora: {rank: 4}"},
      {"data: 1", "lora: apex-o2 keeps fp32 copies", "precision: apex-o2, lora: {rank: 4}"},
      {"data: 1", "lora.targets: names no layer", "precision: bf16, lora: {targets: []}"},
      {"data: 2", "activation_offload: over several GPUs is not modelled",
       "precision: bf16, activation_offload: pinned"},
      {"data: 1", "taken", "precision: bf16, activation_offload: pinned"},
      {"data: 1", "activation_offload: with compile: true is not modelled",
       "precision: bf16, activation_offload: pinned, compile: true"},
      {"data: 1", "activation_offload: with cuda_graphs: true is not modelled",
       "precision: bf16, activation_offload: pinned, cuda_graphs: true"},
      {"data: 1", "taken", "precision: bf16, packed_lengths: 16"},
      {"data: 1", "attention: training.packed_lengths needs FlashAttention by cumulative lengths",
       "precision: bf16, packed_lengths: 16, attention: cudnn"},
      {"data: 1", "taken", "precision: bf16, packed_lengths: 16, attention: flash"},
      {"data: 1", "precision: training.packed_lengths needs FlashAttention", "precision: fp32, packed_lengths: 16"},
      {"data: 1", "precision: training.packed_lengths needs FlashAttention", "precision: tf32, packed_lengths: 16"},
      {"data: 2", "taken", "precision: bf16, fp8: rowwise"},
      {"data: 2", "precision: training.fp8 gives results in 16 bits", "precision: fp32, fp8: rowwise"},
      {"data: 2, strategy: fsdp", "taken", "precision: bf16, fp8: rowwise"},
      {"tensor: 2", "taken", "precision: bf16, fp8: rowwise"},
      {"tensor: 2", "fp8: tensorwise scales of DTensors are not modelled", "precision: bf16, fp8: tensorwise"},
      {"context: 2", "taken", "precision: bf16, fp8: rowwise"},
      {"framework: megatron", "fp8: with framework: megatron or deepspeed", "precision: amp-bf16, fp8: rowwise"},
      {"data: 1", "fp8: under torch.compile was not measured", "precision: bf16, fp8: rowwise, compile: true"},
      {"data: 1", "taken", "precision: bf16, fp8: rowwise, lora: {rank: 4}"},
      {"tensor: 2", "loss_code: over ranks that share layers", "precision: bf16, loss_code: chunked"},
      {"data: 1", "taken", "precision: bf16, loss_code: chunked, compile: true"},
      {"data: 2", "cuda_graphs: over several GPUs is not modelled", "precision: bf16, cuda_graphs: true"},
      {"data: 2, strategy: fsdp", "precision: apex-o2 over several GPUs goes with strategy: ddp", "precision: apex-o2"},
      {"data: 2", "taken", "precision: apex-o2"},
      {"data: 2", "activation_checkpointing: selective goes with training.parallel.framework: megatron",
       "precision: bf16, activation_checkpointing: selective"},
      {"context: 2", "compile: over several GPUs is modelled with strategy: ddp and zero1",
       "precision: bf16, compile: true"},
      {"data: 2, strategy: fsdp1", "compile: over several GPUs is modelled", "precision: bf16, compile: true"},
      {"data: 2, tensor: 2", "compile: over several GPUs is modelled", "precision: bf16, compile: true"},
      {"data: 2, tensor: 2, strategy: fsdp", "taken", "precision: bf16, compile: true"},
      {"data: 2, strategy: fsdp", "taken", "precision: bf16, compile: true"},
  });
}

}  // namespace
}  // namespace ridgeline
