#include "sim/scenario/read_parallel.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>

#include "sim/scenario/choice.h"
#include "sim/scenario/read_experts.h"
#include "sim/scenario/read_megatron.h"
#include "sim/scenario/read_zero.h"
#include "sim/workload/families/composed_families.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/families/stack_split.h"
#include "sim/workload/networks/program_model.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<Choice<DataStrategy>, 8> kStrategies{{{"ddp", DataStrategy::ddp},
                                                           {"zero1", DataStrategy::zero1},
                                                           {"zero2", DataStrategy::zero2},
                                                           {"zero3", DataStrategy::zero3},
                                                           {"fsdp", DataStrategy::fsdp},
                                                           {"fsdp1", DataStrategy::fsdp1},
                                                           {"hsdp", DataStrategy::hsdp},
                                                           {"dataparallel", DataStrategy::dataparallel}}};
constexpr std::array<Choice<GradientCompression>, 3> kCompressions{
    {{"none", GradientCompression::none}, {"fp16", GradientCompression::fp16}, {"bf16", GradientCompression::bf16}}};
constexpr std::array<Choice<DType>, 3> kTypes{{{"fp32", DType::fp32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}}};
constexpr std::array<Choice<PipelineSchedule>, 6> kSchedules{
    {{"gpipe", PipelineSchedule::gpipe},
     {"1f1b", PipelineSchedule::one_forward_one_backward},
     {"interleaved", PipelineSchedule::interleaved},
     {"zb1p", PipelineSchedule::zb1p},
     {"zbv", PipelineSchedule::zbv},
     {"interleaved-zero-bubble", PipelineSchedule::interleaved_zero_bubble}}};
enum class Sharding : std::uint8_t { full, gradients };
constexpr std::array<Choice<Sharding>, 2> kShardings{{{"full", Sharding::full}, {"gradients", Sharding::gradients}}};
constexpr std::array<Choice<Framework>, 3> kFrameworks{
    {{"torch", Framework::torch}, {"megatron", Framework::megatron}, {"deepspeed", Framework::deepspeed}}};
constexpr std::array<Choice<TensorStyle>, 2> kTensorStyles{
    {{"dtensor", TensorStyle::dtensor}, {"by-hand", TensorStyle::by_hand}}};

constexpr std::array<Choice<ContextRotation>, 2> kRotations{
    {{"allgather", ContextRotation::all_gather}, {"alltoall", ContextRotation::all_to_all}}};

std::optional<DType> type_or_stored(const Value& value) {
  if (!value.exists() || value.is("as stored")) return std::nullopt;
  return value.choice<DType>(kTypes);
}

/// "model", "block" or a number of blocks.
std::int64_t read_wrap(const Value& value) {
  if (value.is("model")) return 0;
  if (value.is("block")) return 1;
  try {
    return value.integer({1, 1 << 16}, 1);
  } catch (const config::ConfigError&) {
    value.fail("expected a number of blocks (1 to 65536), block or model");
  }
}

/// true, false or a number of ranks.
ReshardAfterForward read_reshard(const Value& value, std::int64_t ranks) {
  if (!value.exists() || value.is("true")) return {0};
  if (value.is("false")) return {1};
  const std::int64_t to = value.integer({2, 1 << 16});
  if (ranks % to != 0)
    value.fail(fmt::format("{} does not divide the {} ranks that parameters are sharded over", to, ranks));
  return {to == ranks ? 0 : to};
}

std::string size_of(const Cluster& cluster) {
  const std::int64_t gpus = cluster.all_gpus();
  return fmt::format("{} has {} GPU{}", cluster.title.empty() ? "the cluster" : cluster.title, gpus,
                     gpus == 1 ? "" : "s");
}

/// Devices of one process, each with some of the layers.
void read_split(const Mapping& mapping, const Cluster& cluster, ParallelDescription& result) {
  result.split = mapping["split"].integer({1, 1 << 10}, 1);
  if (result.split > cluster.gpus)
    mapping["split"].fail(fmt::format("{} devices of one process, but a node has {}", result.split, cluster.gpus));
  if (result.split == 1) {
    if (mapping.has("pieces")) mapping["pieces"].fail("goes with split: the devices of one process");
    return;
  }
  result.pieces = mapping["pieces"].integer({1, 1 << 20}, 1);
  for (const std::string_view key : {"data", "tensor", "context", "pipeline"})
    if (mapping.has(key) && mapping[key].integer({1, 1 << 20}) != 1)
      mapping[key].fail("one process with its layers on several devices (split) goes with no other ranks");
  for (const std::string_view key : {"strategy", "framework"})
    if (mapping.has(key)) mapping[key].fail("goes with ranks; split is one process");
}

/// What DataParallel goes with: it has no buckets, no ranks, no shards.
void check_data_parallel(const Mapping& mapping, const Cluster& cluster, const ParallelDescription& result) {
  if (result.strategy != DataStrategy::dataparallel) return;
  if (result.data > cluster.gpus)
    mapping["strategy"].fail(
        fmt::format("dataparallel: {} GPUs of one process, but a node has {}", result.data, cluster.gpus));
  if (result.tensor > 1 || result.context > 1 || result.pipelined() || result.megatron())
    mapping["strategy"].fail(
        "dataparallel is one process: it goes with no tensor, context, pipeline or Megatron-LM ranks");
  for (const std::string_view key : {"bucket_cap", "gradient_as_bucket_view", "static_graph", "find_unused_parameters",
                                     "compression", "broadcast_buffers", "no_sync", "wrap", "reshard_after_forward"})
    if (mapping.has(key)) mapping[key].fail("goes with ranks; strategy: dataparallel is one process");
}

/// Ranks that share sequences; how many ranks see the same ones, of all stages.
std::int64_t read_context(const Mapping& mapping, const Cluster& cluster, ParallelDescription& result) {
  const Value context = mapping["context"];
  result.context = context.integer({1, 1 << 20}, 1);
  if (result.context == 1 && mapping.has("rotate_method"))
    mapping["rotate_method"].fail("goes with context: of two ranks or more");
  result.rotation = mapping["rotate_method"].choice<ContextRotation>(kRotations, ContextRotation::all_gather);
  const std::int64_t others = result.tensor * result.pipeline, inside = others * result.context;
  if (inside > cluster.all_gpus())
    context.fail(others == 1 ? fmt::format("{} ranks, but {}", result.context, size_of(cluster))
                             : fmt::format("{} ranks for each of {} (tensor x pipeline), but {}", result.context,
                                           others, size_of(cluster)));
  if (result.context > 1 && !mapping.has("data") && cluster.all_gpus() % inside != 0)
    context.fail(fmt::format("{} x {} ranks do not divide the {} GPUs; data says how many of them are used",
                             result.context, others, cluster.all_gpus()));
  return inside;
}

/// Ranks that share layers, and ranks that see different data: what is left where nothing is said. After the stages.
void read_degrees(const Mapping& mapping, const Cluster& cluster, ParallelDescription& result) {
  const std::int64_t gpus = cluster.all_gpus();
  result.tensor = mapping["tensor"].integer({1, 1 << 20}, 1);
  if (result.tensor > gpus) mapping["tensor"].fail(fmt::format("{} ranks, but {}", result.tensor, size_of(cluster)));
  if (!mapping.has("data") && gpus % result.tensor != 0)
    mapping["tensor"].fail(
        fmt::format("{} does not divide the {} GPUs; data says how many of them are used", result.tensor, gpus));
  if (result.tensor * result.pipeline > gpus)
    mapping["tensor"].fail(
        fmt::format("{} ranks of each of {} stages, but {}", result.tensor, result.pipeline, size_of(cluster)));
  const std::int64_t inside = read_context(mapping, cluster, result);
  result.data = mapping["data"].integer({1, 1 << 20}, result.split > 1 ? 1 : gpus / inside);
  if (result.gpus() <= gpus) return;
  if (result.context > 1)
    mapping["data"].fail(fmt::format("{} x {} ranks, but {}", result.data, inside, size_of(cluster)));
  if (result.tensor > 1 && result.pipelined())
    mapping["data"].fail(fmt::format("{} x {} ranks of each of {} stages, but {}", result.data, result.tensor,
                                     result.pipeline, size_of(cluster)));
  if (result.tensor > 1)
    mapping["data"].fail(fmt::format("{} x {} ranks, but {}", result.data, result.tensor, size_of(cluster)));
  mapping["data"].fail(fmt::format("{} ranks{}, but {}", result.data,
                                   result.pipelined() ? fmt::format(" of each of {} stages", result.pipeline) : "",
                                   size_of(cluster)));
}

/// Who splits layers, and how.
void read_tensor(const Mapping& mapping, ParallelDescription& result) {
  result.framework = mapping["framework"].choice<Framework>(kFrameworks, Framework::torch);
  result.tensor_style = mapping["tensor_style"].choice<TensorStyle>(kTensorStyles, TensorStyle::dtensor);
  result.sequence_parallel = mapping["sequence_parallel"].boolean(false);
  result.loss_parallel = mapping["loss_parallel"].boolean(false);
  result.prepared_inputs = mapping["prepared_inputs"].boolean(true);
  const bool dtensor = !result.megatron() && result.tensor_style == TensorStyle::dtensor;
  read_megatron(mapping, result);
  for (const std::string_view key : {"loss_parallel", "prepared_inputs"})
    if (!dtensor && mapping.has(key)) mapping[key].fail("goes with tensor_style: dtensor");
  if (!dtensor && !result.megatron() && result.sequence_parallel)
    mapping["sequence_parallel"].fail("goes with tensor_style: dtensor, or framework: megatron");
}

/// Attention by torch.distributed.tensor.experimental.context_parallel, of a network in which tokens meet nowhere else.
void check_context(const ModelDescription& model, const TrainingDescription& training, const Value& section) {
  const std::int64_t ranks = training.parallel.context;
  if (ranks == 1) return;
  const Value key = section["context"];
  const std::string name = model.name.empty() ? "the model" : model.name;
  if (const std::string why = families::why_not_shared(model, training); !why.empty()) key.fail(why);
  if (training.attention == AttentionRequest::eager || training.attention == AttentionRequest::math)
    key.fail(
        fmt::format("PyTorch's context_parallel takes fused attention: expected training.attention: sdpa, flash, "
                    "cudnn or efficient, not {}",
                    training.attention == AttentionRequest::eager ? "eager" : "math"));
  // Under a causal mask each rank has a slice of the head and one of the tail.
  const std::int64_t slices = families::sees_backwards(model) ? 2 * ranks : ranks;
  if (training.sequence_length % slices != 0)
    key.fail(fmt::format("training.sequence_length: {} tokens of {} are cut into {} slices; expected a multiple of {}",
                         training.sequence_length, name, slices, slices));
}

/// What a way of splitting goes with.
void check_strategy(const Mapping& mapping, const ParallelDescription& result) {
  if (result.megatron() && result.strategy != DataStrategy::ddp && result.strategy != DataStrategy::zero1)
    mapping["strategy"].fail("expected ddp or zero1 (the distributed optimizer) with framework: megatron");
  if (result.megatron() && result.context > 1)
    mapping["context"].fail(
        "Megatron-LM's ranks that share sequences are not modelled: expected 1, or framework: torch");
}

/// CPUOffloadPolicy.
void check_offload(const Mapping& mapping, const ParallelDescription& result) {
  if (!result.offload) return;
  if (result.megatron() || (result.strategy != DataStrategy::fsdp && result.strategy != DataStrategy::zero2 &&
                            result.strategy != DataStrategy::hsdp))
    mapping["offload"].fail("CPUOffloadPolicy goes with strategy: fsdp, zero2 and hsdp (fully_shard)");
  if (result.tensor > 1 || result.context > 1 || result.expert > 1 || result.pipelined())
    mapping["offload"].fail("over tensor, context, expert and pipeline ranks is not modelled: expected false");
}

void read_pipeline(const Mapping& mapping, const Cluster& cluster, ParallelDescription& result) {
  result.pipeline = mapping["pipeline"].integer({1, 1 << 16}, 1);
  const std::int64_t gpus = cluster.all_gpus();
  if (result.pipeline > gpus)
    mapping["pipeline"].fail(fmt::format("{} stages, but {} has {} GPU{}", result.pipeline,
                                         cluster.title.empty() ? "the cluster" : cluster.title, gpus,
                                         gpus == 1 ? "" : "s"));
  if (result.pipeline == 1) {
    for (const std::string_view key : {"schedule", "virtual_stages"})
      if (mapping.has(key)) mapping[key].fail("goes with a pipeline: of two stages or more");
    return;
  }
  result.schedule =
      mapping["schedule"].choice<PipelineSchedule>(kSchedules, PipelineSchedule::one_forward_one_backward);
  const bool loops =
      result.schedule == PipelineSchedule::interleaved || result.schedule == PipelineSchedule::interleaved_zero_bubble;
  const bool folds = result.schedule == PipelineSchedule::zbv;
  result.virtual_stages = mapping["virtual_stages"].integer({1, 1 << 10}, loops || folds ? 2 : 1);
  if (!loops && result.virtual_stages != (folds ? 2 : 1))
    mapping["virtual_stages"].fail(
        fmt::format("{}: this schedule has {} a rank; interleaved and interleaved-zero-bubble have any number",
                    result.virtual_stages, folds ? "two stages" : "one stage"));
}

void read_buckets(const Mapping& mapping, ParallelDescription& result) {
  if (mapping.has("bucket_cap"))
    result.bucket_cap =
        static_cast<std::int64_t>(mapping["bucket_cap"].quantity<Bytes>(config::Range::positive()).value());
  result.gradient_as_bucket_view = mapping["gradient_as_bucket_view"].boolean(false);
  result.static_graph = mapping["static_graph"].boolean(false);
  result.find_unused_parameters = mapping["find_unused_parameters"].boolean(false);
  result.compression = mapping["compression"].choice<GradientCompression>(kCompressions, GradientCompression::none);
  result.broadcast_buffers = mapping["broadcast_buffers"].boolean(true);
  result.no_sync = mapping["no_sync"].boolean(false);
}

}  // namespace

ParallelDescription read_parallel(const Value& section, const Cluster& cluster) {
  ParallelDescription result;
  if (!section.exists()) {
    result.data = cluster.all_gpus();
    return result;
  }
  const Mapping mapping(section, {"data",
                                  "strategy",
                                  "framework",
                                  "tensor",
                                  "pipeline",
                                  "schedule",
                                  "virtual_stages",
                                  "context",
                                  "rotate_method",
                                  "expert",
                                  "expert_capacity",
                                  "bucket_cap",
                                  "gradient_as_bucket_view",
                                  "static_graph",
                                  "find_unused_parameters",
                                  "compression",
                                  "broadcast_buffers",
                                  "no_sync",
                                  "parameters_as_bucket_view",
                                  "wrap",
                                  "reshard_after_forward",
                                  "parameter_type",
                                  "reduce_type",
                                  "offload",
                                  "sharding",
                                  "replicate",
                                  "tensor_style",
                                  "sequence_parallel",
                                  "transformer_engine",
                                  "gradient_accumulation_fusion",
                                  "cross_entropy_fusion",
                                  "async_all_reduce",
                                  "blocking_wait",
                                  "fp32_copies",
                                  "fp16_cross_entropy",
                                  "last_stage_recomputes",
                                  "vocabulary_multiple",
                                  "loss_parallel",
                                  "prepared_inputs",
                                  "split",
                                  "pieces",
                                  "zero_optimization"});
  read_split(mapping, cluster, result);
  read_pipeline(mapping, cluster, result);
  read_degrees(mapping, cluster, result);
  read_tensor(mapping, result);
  result.strategy = mapping["strategy"].choice<DataStrategy>(kStrategies, DataStrategy::ddp);
  read_buckets(mapping, result);
  result.parameters_as_bucket_view = mapping["parameters_as_bucket_view"].boolean(false);
  result.wrap = read_wrap(mapping["wrap"]);
  result.parameter_type = type_or_stored(mapping["parameter_type"]);
  result.reduce_type = type_or_stored(mapping["reduce_type"]);
  result.offload = mapping["offload"].boolean(false);
  const bool hybrid = result.strategy == DataStrategy::hsdp;
  result.replicate = mapping["replicate"].integer({1, 1 << 20}, hybrid ? cluster.nodes : 1);
  if (!hybrid && result.replicate != 1) mapping["replicate"].fail("goes with strategy: hsdp");
  if (result.data % result.replicate != 0)
    mapping["replicate"].fail(
        fmt::format("{} does not divide the {} data parallel ranks", result.replicate, result.data));
  result.reshard_after_forward =
      read_reshard(mapping["reshard_after_forward"], result.gradient_ranks() / result.replicate);
  if (mapping["sharding"].choice<Sharding>(kShardings, Sharding::full) == Sharding::gradients)
    result.reshard_after_forward = {1};
  read_zero(mapping, result);
  check_strategy(mapping, result);
  check_data_parallel(mapping, cluster, result);
  read_experts(mapping, result);
  check_offload(mapping, result);
  return result;
}

void check_split(const ModelDescription& model, const TrainingDescription& training, const Value& section) {
  const ParallelDescription& how = training.parallel;
  if (how.split > 1) {
    const std::string named = model.name.empty() ? "the model" : model.name;
    if (model.family == ModelFamily::composed || model.program.given())
      section["split"].fail("networks of family composed and program are not cut over devices");
    if (how.split > model.layers)
      section["split"].fail(fmt::format("{} devices, but {} has {} blocks", how.split, named, model.layers));
    if (training.micro_batch % how.pieces != 0)
      section["pieces"].fail(
          fmt::format("{} does not divide the {} sequences of a micro-batch", how.pieces, training.micro_batch));
  }
  if (how.one_process() && how.split == 1 && training.micro_batch % how.data != 0)
    section["strategy"].fail(fmt::format("dataparallel: {} GPUs do not divide the {} sequences of a micro-batch",
                                         how.data, training.micro_batch));
  check_context(model, training, section);
  check_experts(model, training, section);
  if (how.tensor == 1 && !how.megatron()) return;
  if (const std::int64_t stages = how.pipeline * how.virtual_stages; how.megatron() && model.layers % stages != 0)
    section[how.virtual_stages > 1 && section["virtual_stages"].exists() ? "virtual_stages" : "pipeline"].fail(
        fmt::format("{} stages of {} do not divide the {} layers of {}; Megatron-LM gives each as many", stages,
                    how.virtual_stages > 1 ? fmt::format("{} ranks with {} each", how.pipeline, how.virtual_stages)
                                           : fmt::format("{} ranks", how.pipeline),
                    model.layers, model.name.empty() ? "the model" : model.name));
  const Value tensor = section["tensor"];
  const std::string name = model.name.empty() ? "the model" : model.name;
  if (how.megatron() && (model.composition.given() || model.program.given()))
    section["framework"].fail("networks of family composed and program are not Megatron-LM's");
  if (model.program.given()) {
    if (!model.program->splits)
      tensor.fail(fmt::format("{} is a program without column_linear and row_linear: expected 1", name));
    if (how.tensor_style == TensorStyle::dtensor)
      tensor.fail("layers of a program are split by hand: expected tensor_style: by-hand beside it");
    return;
  }
  if (!how.megatron()) {
    if (const std::string why = families::why_not_split(*families::composition_of(model), training); !why.empty())
      tensor.fail(fmt::format("{}: {}", name, why));
    return;
  }
  const auto divides = [&](std::int64_t what, std::string_view of) {
    if (what % how.tensor != 0)
      tensor.fail(fmt::format("{} does not divide the {} {} of {}: allowed are divisors of {}", how.tensor, what, of,
                              name, what));
  };
  divides(model.heads, "heads");
  if (how.sequence_parallel && training.tokens_of_rank() % how.tensor != 0)
    section["sequence_parallel"].fail(
        fmt::format("{} ranks do not divide the {} tokens of a sequence", how.tensor, training.tokens_of_rank()));
  // Megatron-LM gives ranks that outnumber them the same keys and values.
  if (model.key_value_count() > how.tensor) divides(model.key_value_count(), "key/value heads");
  divides(model.feed_forward_width(), "feed-forward columns");
  if (!families::sees_backwards(model) && model.head != ModelHead::pretraining && model.head != ModelHead::masked_lm)
    section["framework"].fail("Megatron-LM's BERT has the head pretraining or masked-lm");
}

}  // namespace ridgeline
