#include "sim/scenario/read_optimizer.h"

#include <array>

#include "sim/scenario/choice.h"

namespace ridgeline {
namespace {

using config::Mapping;
using config::Value;

constexpr std::array<Choice<OptimizerKind>, 14> kOptimizers{
    {{"adamw", OptimizerKind::adamw},
     {"adam", OptimizerKind::adam},
     {"sgd", OptimizerKind::sgd},
     {"sgd-momentum", OptimizerKind::sgd_momentum},
     {"adafactor", OptimizerKind::adafactor},
     {"adamw-8bit", OptimizerKind::adamw_8bit},
     {"adamw-kahan", OptimizerKind::adamw_kahan},
     {"lion", OptimizerKind::lion},
     {"lion-8bit", OptimizerKind::lion_8bit},
     {"lamb", OptimizerKind::lamb},
     {"schedule-free-adamw", OptimizerKind::schedule_free_adamw},
     {"muon", OptimizerKind::muon},
     {"bert-adam", OptimizerKind::bert_adam},
     {"none", OptimizerKind::none}}};
constexpr std::array<Choice<OptimizerOffload>, 3> kOptimizerOffloads{{{"none", OptimizerOffload::none},
                                                                      {"states", OptimizerOffload::states},
                                                                      {"gradients", OptimizerOffload::gradients}}};
constexpr std::array<Choice<OptimizerImplementation>, 3> kImplementations{
    {{"for-loop", OptimizerImplementation::for_loop},
     {"foreach", OptimizerImplementation::foreach},
     {"fused", OptimizerImplementation::fused}}};

}  // namespace

OptimizerDescription read_optimizer(const Value& value, const Software& software) {
  OptimizerDescription result;
  result.implementation =
      software.foreach_by_default ? OptimizerImplementation::foreach : OptimizerImplementation::for_loop;
  if (!value.exists()) return result;
  if (!value.is_mapping()) {  // `optimizer: adamw` means its default implementation
    result.kind = value.choice<OptimizerKind>(kOptimizers);
    if (result.kind == OptimizerKind::lamb) result.implementation = OptimizerImplementation::fused;
    return result;
  }
  const Mapping mapping(value, {"name", "implementation", "paged", "in_backward", "offload"});
  result.kind = mapping["name"].choice<OptimizerKind>(kOptimizers, OptimizerKind::adamw);
  if (result.kind == OptimizerKind::lamb) result.implementation = OptimizerImplementation::fused;
  result.offload = mapping["offload"].choice<OptimizerOffload>(kOptimizerOffloads, OptimizerOffload::none);
  if (result.offload != OptimizerOffload::none) result.implementation = OptimizerImplementation::fused;
  result.implementation =
      mapping["implementation"].choice<OptimizerImplementation>(kImplementations, result.implementation);
  result.in_backward = mapping["in_backward"].boolean(false);
  result.paged = mapping["paged"].boolean(false);
  if (result.paged && !result.of_bitsandbytes())
    mapping["paged"].fail("is of bitsandbytes: expected name: adamw, adamw-8bit, lion or lion-8bit");
  return result;
}

/// Optimizers that look at whole matrices do not go with parameters in parts.
void check_whole_matrices(const Mapping& mapping, const TrainingDescription& t) {
  const OptimizerKind kind = t.optimizer.kind;
  if (kind != OptimizerKind::muon && kind != OptimizerKind::lamb) return;
  const Value key = mapping["optimizer"];
  if (t.optimizer.in_backward) key.fail("reads norms of all parameters, or parts them: expected in_backward: false");
  if (t.parallel.gpus() > 1 && (t.parallel.strategy != DataStrategy::ddp || t.parallel.data != t.parallel.gpus()))
    key.fail("muon and lamb need whole matrices: over several GPUs they go with strategy: ddp");
}

/// Copies of gradients hang on the same hooks; the host's AdamW follows.
void check_offloaded_optimizer(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  if (t.optimizer.offload == OptimizerOffload::none) return;
  const Value key = mapping["optimizer"]["offload"];
  if (t.optimizer.kind != OptimizerKind::adamw && t.optimizer.kind != OptimizerKind::adam)
    key.fail("steps on the host: expected name: adamw or adam");
  if (t.optimizer.in_backward) key.fail("steps behind the backward pass: expected in_backward: false");
  if (t.parallel.gpus() > 1)
    key.fail("is of one GPU: expected none, or training.parallel.offload, which keeps shards in the host's memory");
  if (t.gradient_clipping) key.fail("copies gradients before their norm is known: expected no gradient_clipping");
  if (t.precision == Precision::amp_fp16 || t.precision == Precision::apex_o2)
    key.fail("scales no losses: expected precision bf16, amp-bf16, fp32 or tf32");
  if (t.optimizer.offload == OptimizerOffload::gradients && t.gradient_accumulation > 1)
    key.fail("gradients leave the device with each micro-batch: expected states, or gradient_accumulation: 1");
  if (compile && !t.parallel.block_by_block)
    key.fail("in a graph of the whole network is not modelled: expected training.compile_unit: blocks");
}

/// Hooks behind each gradient (register_post_accumulate_grad_hook) see one tensor, once a step.
void check_step_in_backward(const Mapping& mapping, const TrainingDescription& t, bool compile) {
  check_whole_matrices(mapping, t);
  check_offloaded_optimizer(mapping, t, compile);
  if (!t.optimizer.in_backward) return;
  const Value key = mapping["optimizer"]["in_backward"];
  if (t.parallel.gpus() > 1) key.fail("over several GPUs is not modelled: expected false");
  if (t.gradient_accumulation > 1) key.fail("steps with each micro-batch: expected gradient_accumulation: 1");
  if (t.gradient_clipping) key.fail("steps before the norm of all gradients is known: expected no gradient_clipping");
  if (t.precision == Precision::amp_fp16 || t.precision == Precision::apex_o2)
    key.fail("scales no losses: expected precision bf16, amp-bf16, fp32 or tf32");
  if (t.optimizer.kind == OptimizerKind::none || t.optimizer.kind == OptimizerKind::bert_adam)
    key.fail("goes with optimizers of torch and bitsandbytes: expected another name");
  if (compile && !t.parallel.block_by_block)
    key.fail("in a graph of the whole network is not modelled: expected training.compile_unit: blocks");
}

}  // namespace ridgeline
