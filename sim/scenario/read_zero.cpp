#include "sim/scenario/read_zero.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

/// A whole number, which DeepSpeed's files write as 5e8.
std::int64_t read_elements(const Value& value, std::int64_t otherwise, double least) {
  constexpr double kMost = 1e15;
  const double number = value.number({least, kMost}, static_cast<double>(otherwise));
  if (number != std::floor(number)) value.fail("expected a whole number of elements");
  return std::llround(number);
}

void check_framework(const Mapping& mapping, const ParallelDescription& result) {
  if (result.strategy != DataStrategy::zero1 && result.strategy != DataStrategy::zero2 &&
      result.strategy != DataStrategy::zero3)
    mapping[mapping.has("strategy") ? "strategy" : "framework"].fail(
        "DeepSpeed's stages are strategy: zero1, zero2 and zero3");
  for (const std::string_view key : {"bucket_cap", "gradient_as_bucket_view", "static_graph", "find_unused_parameters",
                                     "compression", "no_sync", "parameters_as_bucket_view", "wrap", "broadcast_buffers",
                                     "reshard_after_forward", "parameter_type", "reduce_type", "offload", "sharding"})
    if (mapping.has(key)) mapping[key].fail("goes with framework: torch; DeepSpeed's keys are zero_optimization's");
  const std::array<std::pair<std::string_view, std::int64_t>, 5> degrees{{{"tensor", result.tensor},
                                                                          {"context", result.context},
                                                                          {"pipeline", result.pipeline},
                                                                          {"expert", result.expert},
                                                                          {"split", result.split}}};
  for (const auto& [key, degree] : degrees)
    if (degree > 1) mapping[key].fail("with framework: deepspeed is not modelled: expected 1");
}

/// DeepSpeed has an Adam of its own, one kernel over the flat tensor.
void choose_fused_adam(const Value& optimizer, TrainingDescription& t) {
  const bool said = optimizer.is_mapping() && Mapping(optimizer, {"name", "implementation"}).has("implementation");
  const bool adam = t.optimizer.kind == OptimizerKind::adam || t.optimizer.kind == OptimizerKind::adamw;
  if (adam && !said) t.optimizer.implementation = OptimizerImplementation::fused;
}

}  // namespace

void read_zero(const Mapping& mapping, ParallelDescription& result) {
  if (!result.deepspeed()) {
    if (mapping.has("zero_optimization")) mapping["zero_optimization"].fail("goes with framework: deepspeed");
    if (result.strategy == DataStrategy::zero3)
      mapping["strategy"].fail("zero3 is DeepSpeed's: expected fsdp, or framework: deepspeed");
    return;
  }
  check_framework(mapping, result);
  const Value section = mapping["zero_optimization"];
  if (!section.exists()) return;
  const Mapping zero(
      section, {"reduce_bucket_size", "allgather_bucket_size", "overlap_comm", "contiguous_gradients", "reduce_scatter",
                "use_multi_rank_bucket_allreduce", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
                "stage3_max_live_parameters", "stage3_max_reuse_distance", "sub_group_size"});
  const bool shards = result.strategy == DataStrategy::zero3;
  for (const std::string_view key : {"stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
                                     "stage3_max_live_parameters", "stage3_max_reuse_distance", "sub_group_size"})
    if (!shards && zero.has(key)) zero[key].fail("goes with strategy: zero3");
  ZeroOptimization& z = result.zero;
  z.reduce_bucket_size = read_elements(zero["reduce_bucket_size"], z.reduce_bucket_size, 1.0);
  if (zero.has("overlap_comm")) z.overlap_comm = zero["overlap_comm"].boolean(false);
  z.contiguous_gradients = zero["contiguous_gradients"].boolean(z.contiguous_gradients);
  z.reduce_scatter = zero["reduce_scatter"].boolean(z.reduce_scatter);
  z.use_multi_rank_bucket_allreduce =
      zero["use_multi_rank_bucket_allreduce"].boolean(z.use_multi_rank_bucket_allreduce);
  if (shards && zero.has("use_multi_rank_bucket_allreduce"))
    zero["use_multi_rank_bucket_allreduce"].fail("goes with strategy: zero1 and zero2");
  (void)read_elements(zero["allgather_bucket_size"], 0, 0.0);
  if (zero.has("allgather_bucket_size"))
    zero["allgather_bucket_size"].fail(
        "changes nothing: where PyTorch has all_gather_into_tensor, DeepSpeed gathers all of a group of parameters at "
        "once");
  z.prefetch_bucket_size = read_elements(zero["stage3_prefetch_bucket_size"], z.prefetch_bucket_size, 0.0);
  z.param_persistence_threshold =
      read_elements(zero["stage3_param_persistence_threshold"], z.param_persistence_threshold, 0.0);
  z.max_live_parameters = read_elements(zero["stage3_max_live_parameters"], z.max_live_parameters, 0.0);
  z.max_reuse_distance = read_elements(zero["stage3_max_reuse_distance"], z.max_reuse_distance, 0.0);
  z.sub_group_size = read_elements(zero["sub_group_size"], z.sub_group_size, 1.0);
}

void check_deepspeed(const Mapping& mapping, TrainingDescription& t) {
  if (t.precision == Precision::bf16 || t.precision == Precision::apex_o2)
    mapping["precision"].fail(
        "DeepSpeed keeps fp32 copies: expected fp32, tf32, amp-fp16 (its fp16) or amp-bf16 (its bf16)");
  const OptimizerKind kind = t.optimizer.kind;
  if (kind != OptimizerKind::adam && kind != OptimizerKind::adamw && kind != OptimizerKind::sgd &&
      kind != OptimizerKind::sgd_momentum)
    mapping["optimizer"].fail("ZeRO updates one flat tensor: expected adamw, adam, sgd or sgd-momentum");
  for (const std::string_view key : {"compile", "cuda_graphs"})
    if (mapping[key].boolean(false)) mapping[key].fail("with framework: deepspeed is not modelled: expected false");
  for (const std::string_view key : {"gradient_clipper", "data_parallel", "clears_gradients"})
    if (mapping.has(key)) mapping[key].fail("does not go with framework: deepspeed, which does that itself");
  if (t.activation_offload != ActivationOffload::none)
    mapping["activation_offload"].fail("with framework: deepspeed is not modelled: expected none");
  choose_fused_adam(mapping["optimizer"], t);
}

}  // namespace ridgeline
