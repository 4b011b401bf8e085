#include "sim/scenario/read_training.h"

#include "sim/scenario/choice.h"
#include "sim/scenario/precision_choices.h"
#include "sim/scenario/read_checkpointing.h"
#include "sim/scenario/read_host_shards.h"
#include "sim/scenario/read_lora.h"
#include "sim/scenario/read_optimizer.h"
#include "sim/scenario/read_parallel.h"
#include "sim/scenario/read_preference.h"
#include "sim/scenario/read_products.h"
#include "sim/scenario/read_recipe.h"
#include "sim/scenario/read_tf32.h"
#include "sim/scenario/read_zero.h"
#include "sim/workload/parallel/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<Choice<ActivationOffload>, 4> kOffloads{{{"none", ActivationOffload::none},
                                                              {"pinned", ActivationOffload::pinned},
                                                              {"pageable", ActivationOffload::pageable},
                                                              {"streams", ActivationOffload::streams}}};

constexpr std::array<Choice<LossRead>, 3> kLossReads{
    {{"never", LossRead::never}, {"step", LossRead::step}, {"micro-batch", LossRead::micro_batch}}};

constexpr std::array<Choice<GradientClipper>, 2> kClippers{
    {{"torch", GradientClipper::torch}, {"apex", GradientClipper::apex}}};
constexpr std::array<Choice<DataLoader>, 2> kLoaders{
    {{"none", DataLoader::none}, {"tensor-dataset", DataLoader::tensor_dataset}}};
constexpr std::array<Choice<DataParallel>, 2> kWrappers{{{"none", DataParallel::none}, {"apex", DataParallel::apex}}};

/// Bytes, or "none" for no limit.
std::int64_t bytes_or_none(const Value& value, std::int64_t fallback) {
  if (!value.exists()) return fallback;
  if (value.is("none")) return AllocatorSettings::kUnlimited;
  return static_cast<std::int64_t>(value.quantity<Bytes>(config::Range::positive()).value());
}

/// save_on_cpu around the forward pass of one process on one GPU.
void check_offload(const Mapping& mapping, const TrainingDescription& t) {
  if (t.activation_offload == ActivationOffload::none) return;
  const Value key = mapping["activation_offload"];
  if (t.activation_offload == ActivationOffload::streams) {
    if (!t.parallel.block_by_block || t.activation_checkpointing != ActivationCheckpointing::block)
      key.fail("streams goes with activation_checkpointing: block and training.compile_unit: blocks on one GPU");
    return;
  }
  for (const std::string_view other : {"compile", "cuda_graphs"})
    if (mapping[other].boolean(false)) key.fail(fmt::format("with {}: true is not modelled: expected none", other));
  if (t.parallel.gpus() > 1) key.fail("over several GPUs is not modelled: expected none");
  if (t.lora && t.lora->frozen != FrozenWeights::as_stored)
    key.fail("beside frozen weights of four bits is not modelled: expected none");
}

/// Lengths of the sequences in each row: of all but the last, which has what is left, or a list that fills the row.
std::vector<std::int64_t> read_packed_lengths(const Value& value, std::int64_t row) {
  std::vector<std::int64_t> lengths;
  if (!value.exists() || value.is("none")) return lengths;
  if (!value.is_list()) {
    const std::int64_t each = value.integer({1, 1 << 24});
    if (each > row) value.fail(fmt::format("{} tokens do not fit into the {} of training.sequence_length", each, row));
    for (std::int64_t left = row; left > 0; left -= lengths.back()) lengths.push_back(std::min(each, left));
  } else {
    for (const Value& item : value.list()) lengths.push_back(item.integer({1, 1 << 24}));
    const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    if (tokens != row)
      value.fail(
          fmt::format("the lengths add up to {} tokens: expected the {} of training.sequence_length", tokens, row));
  }
  constexpr std::size_t kMost = 65536;
  if (lengths.size() > kMost)
    value.fail(fmt::format("{} sequences in a row: expected at most {}", lengths.size(), kMost));
  return lengths;
}

/// Only FlashAttention is told of lengths.
void check_packed(const Mapping& mapping, const TrainingDescription& t) {
  if (t.packed_lengths.empty()) return;
  const Value key = mapping["packed_lengths"];
  if (t.attention != AttentionRequest::sdpa && t.attention != AttentionRequest::flash)
    mapping["attention"].fail(
        "training.packed_lengths needs FlashAttention by cumulative lengths: expected flash or sdpa");
  if (const Precision p = t.compute_precision(); p == Precision::fp32 || p == Precision::tf32)
    mapping["precision"].fail(
        "training.packed_lengths needs FlashAttention, which takes 16 bits: expected amp-fp16, amp-bf16, bf16 or "
        "apex-o2");
  if (t.parallel.megatron()) key.fail("with framework: megatron is not modelled: expected none");
  if (t.parallel.one_process()) key.fail("in one process over several devices is not modelled: expected none");
}

/// What ranks that share sequences do not go with.
void check_shared_sequences(const Mapping& mapping, const TrainingDescription& t) {
  if (t.parallel.context == 1) return;
  if (!t.packed_lengths.empty())
    mapping["packed_lengths"].fail("over ranks that share sequences (context) are not modelled");
  if (t.data_loader != DataLoader::none)
    mapping["data_loader"].fail("over ranks that share sequences (context) is not modelled");
}

void check_forward_pass(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  check_weight_dtype(mapping["weight_dtype"], t);
  check_step_in_backward(mapping, t, compile);
  check_offload(mapping, t);
  check_packed(mapping, t);
  check_shared_sequences(mapping, t);
}

/// What Megatron-LM trains in and with.
void check_megatron(const Mapping& mapping, const TrainingDescription& t) {
  if (t.precision == Precision::bf16)
    mapping["precision"].fail("Megatron-LM keeps fp32 copies: expected fp32, tf32, amp-fp16 or amp-bf16");
  if (t.parallel.fp16_cross_entropy && t.precision != Precision::amp_fp16)
    mapping["precision"].fail("training.parallel.fp16_cross_entropy is of logits in fp16: expected amp-fp16");
  if (!t.parallel.fp32_copies && t.parallel.strategy == DataStrategy::zero1)
    mapping["parallel"].fail("the distributed optimizer (zero1) has fp32 copies: expected fp32_copies: true");
  if (t.optimizer.kind != OptimizerKind::adam && t.optimizer.kind != OptimizerKind::adamw)
    mapping["optimizer"].fail("Megatron-LM trains with apex's FusedAdam: expected adamw or adam");
  if (t.gradient_clipper == GradientClipper::torch && mapping.has("gradient_clipper"))
    mapping["gradient_clipper"].fail("Megatron-LM clips with apex's kernels");
  for (const std::string_view key : {"compile", "cuda_graphs"})
    if (mapping[key].boolean(false)) mapping[key].fail("does not go with framework: megatron");
}

/// One process over several devices: scripts that do no more than forward, backward, step.
void check_one_process(const Mapping& mapping, const TrainingDescription& t) {
  if (t.precision == Precision::apex_o2 || (t.parallel.split > 1 && t.precision == Precision::amp_fp16))
    mapping["precision"].fail("in one process over several devices: fp32, tf32, amp-bf16 or bf16");
  if (t.parallel.split > 1 && t.gradient_clipping)
    mapping["gradient_clipping"].fail("over the devices of one process (split) is not modelled");
  if (t.data_loader != DataLoader::none)
    mapping["data_loader"].fail("in one process over several devices is not modelled");
}

/// What goes with a pipeline.
void check_pipeline(const Mapping& mapping, const TrainingDescription& t) {
  const std::string reason = parallel::complaint(parallel::shape_of(t.parallel, t.gradient_accumulation));
  if (!reason.empty()) mapping["gradient_accumulation"].fail(reason);
  if (t.data_loader != DataLoader::none) mapping["data_loader"].fail("over a pipeline is not modelled");
  if (t.parallel.megatron()) return;
  if (t.gradient_clipping) mapping["gradient_clipping"].fail("over the stages of a pipeline is not modelled");
  if (t.precision == Precision::amp_fp16 || t.precision == Precision::apex_o2)
    mapping["precision"].fail("a pipeline's schedule scales no losses: fp32, tf32, amp-bf16 or bf16");
  if (parallel::splits_backward(t.parallel.schedule) && t.activation_checkpointing != ActivationCheckpointing::none)
    mapping["activation_checkpointing"].fail(
        "with a schedule that parts gradients of inputs and weights is not modelled: gpipe, 1f1b and interleaved have "
        "it");
  const DataStrategy strategy = t.parallel.strategy;
  if (t.parallel.several() && strategy != DataStrategy::ddp && strategy != DataStrategy::zero2 &&
      strategy != DataStrategy::fsdp)
    mapping["parallel"]["strategy"].fail("a pipeline goes with ddp, zero2 and fsdp");
  if (t.parallel.several() && t.parallel.shards_parameters() && t.parallel.wrap != 1)
    mapping["parallel"]["wrap"].fail("the stages of a pipeline are sharded block by block");
  if (t.parallel.several() && parallel::splits_backward(t.parallel.schedule))
    mapping["parallel"]["schedule"].fail(
        "with gradients of inputs and weights apart goes with data: 1 and context: 1: PyTorch's wrappers hear of "
        "neither");
  if (t.parallel.several() && t.parallel.virtual_stages > 1)
    mapping["parallel"]["virtual_stages"].fail("several stages a rank go with data: 1 and context: 1");
}

/// apex's DistributedDataParallel goes with whole networks, a rank each.
void check_apex_wrapper(const Mapping& mapping, const TrainingDescription& t) {
  if (t.data_parallel != DataParallel::apex || t.parallel.gpus() == 1) return;
  const ParallelDescription& how = t.parallel;
  if (how.strategy != DataStrategy::ddp || how.data != how.gpus() || how.megatron() || how.deepspeed())
    mapping["data_parallel"].fail("apex over several GPUs goes with strategy: ddp, a whole network on each");
  if (!mapping.has("parallel")) return;
  constexpr std::array<std::string_view, 7> kOfTorch{
      "bucket_cap",  "gradient_as_bucket_view", "static_graph", "find_unused_parameters",
      "compression", "broadcast_buffers",       "no_sync"};
  for (const config::Entry& entry : mapping["parallel"].node().entries)
    if (std::find(kOfTorch.begin(), kOfTorch.end(), entry.key) != kOfTorch.end())
      mapping["data_parallel"].fail(fmt::format("apex's wrapper has no {}, which is torch's", entry.key));
}

/// What the ways of using several GPUs go with.
void check_ways(const Mapping& mapping, TrainingDescription& t) {
  if (t.parallel.megatron()) {
    check_megatron(mapping, t);
    t.optimizer.implementation = OptimizerImplementation::fused;
  }
  if (t.parallel.deepspeed()) check_deepspeed(mapping, t);
  if (t.parallel.pipelined()) check_pipeline(mapping, t);
  if (t.parallel.one_process()) check_one_process(mapping, t);
  if (t.parallel.offload) check_host_shards(mapping, t);
  check_apex_wrapper(mapping, t);
}

void take_ways_of(const Software& software, TrainingDescription& t) {
  t.clipping_style = {software.clips_by_lists, software.clipping_waits};
  t.keep_gradients = !software.zero_grad_to_none;
  t.softmax_saves_input = software.softmax_saves_input;
  t.checkpoint_stops_early = software.checkpoint_stops_early;
  t.jit_draws_by_four = software.jit_draws_by_four;
  t.reorders_compiled = software.reorders_compiled;
  t.four_bit_keeps_input = software.four_bit_keeps_input;
  t.math_attention_in_fp32 = software.math_attention_in_fp32;
  t.mask_always_added = software.mask_always_added;
  t.foreach_adam_lists = software.foreach_adam_lists;
  t.eight_bit_block = software.eight_bit_block;
}

/// Keys of fine-tuning, and what the recipes that people run make of those left out.
void read_fine_tuning(const Mapping& mapping, const Software& software, const NetworkFacts& network,
                      TrainingSection& section) {
  TrainingDescription& t = section.training;
  read_compile_unit(mapping, t, section.compile);
  read_loss_code(mapping, t);
  if (network.chunks_loss) take_torchtune_recipe(mapping, section.compile, t);
  take_autocast_recipe(mapping, network.published_in_half, t);
  check_checkpointing(mapping, t, section.compile);
  t.lora = read_lora(mapping["lora"], t, section.compile, software);
}

/// Checks what several GPUs do not go with.
void check_several_gpus(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  check_compiled(mapping, t, compile);
  if (compile && t.data_parallel == DataParallel::apex)
    mapping["data_parallel"].fail("apex with compile: true is not modelled: expected none");
  if (mapping["cuda_graphs"].boolean(false)) mapping["cuda_graphs"].fail("over several GPUs is not modelled");
  if (t.precision == Precision::apex_o2 && !t.parallel.megatron() && t.parallel.strategy != DataStrategy::ddp)
    mapping["precision"].fail("apex-o2 over several GPUs goes with strategy: ddp");
}

}  // namespace

/// TF32 is of fp32 arithmetic, and two types of weights and arithmetic are autocast's.
Precision implied_precision(const Value& section, Precision assumed) {
  if (section["tf32"].exists()) return Precision::fp32;
  const Value parallel = section["parallel"];
  const bool framework = parallel.exists() && parallel.is_mapping() && parallel["framework"].exists();
  const bool autocasts = section["weight_dtype"].exists() || framework;
  return assumed == Precision::bf16 && autocasts ? Precision::amp_bf16 : assumed;
}

TrainingSection read_training(const Value& section, const Software& software, const Cluster* cluster,
                              const NetworkFacts& network) {
  const Mapping mapping(section, {"micro_batch",
                                  "sequence_length",
                                  "packed_lengths",
                                  "lengths",
                                  "gradient_accumulation",
                                  "precision",
                                  "attention",
                                  "optimizer",
                                  "tf32",
                                  "cudnn_tf32",
                                  "weight_dtype",
                                  "fp8",
                                  "loss_code",
                                  "gradient_clipping",
                                  "gradient_clipper",
                                  "activation_checkpointing",
                                  "checkpointed_every",
                                  "activation_offload",
                                  "reads_loss",
                                  "data_loader",
                                  "data_parallel",
                                  "clears_gradients",
                                  "compile",
                                  "compile_unit",
                                  "cuda_graphs",
                                  "parallel",
                                  "lora",
                                  "preference"});
  TrainingSection result;
  TrainingDescription& t = result.training;
  t.micro_batch = mapping["micro_batch"].integer({1, 1 << 20});
  const std::optional<BatchedLengths> lengths = read_lengths(mapping["lengths"]);
  t.sequence_length = mapping["sequence_length"].integer(
      {1, 1 << 24}, lengths && !lengths->packed ? std::optional(lengths->lengths.longest()) : network.only_length);
  t.packed_lengths = read_packed_lengths(mapping["packed_lengths"], t.sequence_length);
  t.gradient_accumulation = mapping["gradient_accumulation"].integer({1, 1 << 18}, 1);
  result.assumes_precision = !mapping.has("precision");
  t.precision =
      mapping["precision"].choice<Precision>(kPrecisions, implied_precision(section, network.usual_precision));
  t.attention = mapping["attention"].choice<AttentionRequest>(kAttention, AttentionRequest::sdpa);
  t.optimizer = read_optimizer(mapping["optimizer"], software);
  if (const Value clipping = mapping["gradient_clipping"]; clipping.exists() && !clipping.is("none"))
    t.gradient_clipping = clipping.number(config::Range::positive());
  read_tf32(mapping, software, t);
  read_weight_dtype(mapping["weight_dtype"], t);
  read_checkpointing(mapping, t);
  t.activation_offload = mapping["activation_offload"].choice<ActivationOffload>(kOffloads, ActivationOffload::none);
  t.reads_loss = mapping["reads_loss"].choice<LossRead>(kLossReads, LossRead::never);
  t.gradient_clipper = mapping["gradient_clipper"].choice<GradientClipper>(kClippers, GradientClipper::torch);
  t.data_loader = mapping["data_loader"].choice<DataLoader>(kLoaders, DataLoader::none);
  t.data_parallel = mapping["data_parallel"].choice<DataParallel>(kWrappers, DataParallel::none);
  t.clears_gradients = mapping["clears_gradients"].boolean(true);
  take_ways_of(software, t);
  t.preference = read_preference(mapping["preference"]);
  if (t.preference) t.micro_batch *= 2;  // pairs
  result.compile = mapping["compile"].boolean(false);
  result.cuda_graphs = mapping["cuda_graphs"].boolean(false);
  if (cluster != nullptr) t.parallel = read_parallel(mapping["parallel"], *cluster);
  if (lengths) take_lengths(mapping, *lengths, network.only_length.has_value(), result.lengths, t);
  if (cluster == nullptr) {
    read_fine_tuning(mapping, software, network, result);
    if (mapping.has("parallel"))
      mapping["parallel"].fail("needs several GPUs: name a cluster (cluster: hgx-h200, or --cluster hgx-h200)");
    check_forward_pass(mapping, t, result.compile);
    read_scaled(mapping, t, result.compile);
    check_preference(mapping, t, result.compile);
    return result;
  }
  read_fine_tuning(mapping, software, network, result);
  check_forward_pass(mapping, t, result.compile);
  read_scaled(mapping, t, result.compile);
  check_ways(mapping, t);
  check_preference(mapping, t, result.compile);
  if (t.parallel.gpus() > 1) check_several_gpus(mapping, t, result.compile);
  return result;
}

AllocatorSettings read_allocator(const Value& section) {
  AllocatorSettings settings;
  if (!section.exists()) return settings;
  const Mapping mapping(section,
                        {"expandable_segments", "max_split_size", "max_non_split_rounding", "large_segment_size",
                         "garbage_collection_threshold", "memory_fraction", "roundup_power2_divisions"});
  settings.expandable_segments = mapping["expandable_segments"].boolean(settings.expandable_segments);
  settings.max_split_size = bytes_or_none(mapping["max_split_size"], settings.max_split_size);
  if (settings.max_split_size < settings.large_segment_size)
    mapping["max_split_size"].fail("must be at least 20 MiB, or none");
  settings.max_non_split_rounding = bytes_or_none(mapping["max_non_split_rounding"], settings.max_non_split_rounding);
  settings.large_segment_size = static_cast<std::int64_t>(
      mapping["large_segment_size"]
          .quantity<Bytes>({20.0 * kMiB, 512.0 * kMiB}, Bytes{static_cast<double>(settings.large_segment_size)})
          .value());
  settings.garbage_collection_threshold =
      mapping["garbage_collection_threshold"].number({0.0, 1.0}, settings.garbage_collection_threshold);
  settings.memory_fraction = mapping["memory_fraction"].number({0.0, 1.0}, settings.memory_fraction);
  if (const Value divisions = mapping["roundup_power2_divisions"]; divisions.exists()) {
    const std::int64_t value = divisions.integer({0, 1024});
    if (value != 0 && (value & (value - 1)) != 0) divisions.fail("must be 0 or a power of two");
    settings.roundup_power2_divisions.fill(static_cast<int>(value));
  }
  return settings;
}

}  // namespace ridgeline
