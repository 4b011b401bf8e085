// Keys of `training.parallel` that say how Megatron-LM's own code was started.
#include "sim/scenario/read_megatron.h"

#include <string_view>

namespace ridgeline {

void read_megatron(const config::Mapping& mapping, ParallelDescription& result) {
  constexpr std::int64_t kMostRows = 1 << 20;
  for (const std::string_view key : {"transformer_engine", "async_all_reduce", "blocking_wait", "fp32_copies",
                                     "fp16_cross_entropy", "last_stage_recomputes", "vocabulary_multiple"})
    if (!result.megatron() && mapping.has(key)) mapping[key].fail("goes with framework: megatron");
  if (result.megatron() && mapping.has("tensor_style"))
    mapping["tensor_style"].fail("goes with framework: torch; Megatron-LM has layers of its own");
  if (result.megatron() && result.pipelined() && result.schedule != PipelineSchedule::one_forward_one_backward &&
      result.schedule != PipelineSchedule::interleaved)
    mapping["schedule"].fail("Megatron-LM has 1f1b and interleaved");
  result.transformer_engine = mapping["transformer_engine"].boolean(false);
  result.gradient_accumulation_fusion = mapping["gradient_accumulation_fusion"].boolean(result.transformer_engine);
  result.cross_entropy_fusion = mapping["cross_entropy_fusion"].boolean(false);
  for (const std::string_view key : {"gradient_accumulation_fusion", "cross_entropy_fusion"})
    if (!result.transformer_engine && mapping.has(key)) mapping[key].fail("goes with transformer_engine: true");
  result.async_all_reduce = mapping["async_all_reduce"].boolean(true);
  if (result.sequence_parallel && !result.async_all_reduce)
    mapping["async_all_reduce"].fail("sequence_parallel scatters gradients beside the next product in any case");
  result.blocking_wait = mapping["blocking_wait"].boolean(false);
  result.fp32_copies = mapping["fp32_copies"].boolean(true);
  result.fp16_cross_entropy = mapping["fp16_cross_entropy"].boolean(false);
  result.last_stage_recomputes = mapping["last_stage_recomputes"].boolean(true);
  if (!result.last_stage_recomputes && !result.pipelined())
    mapping["last_stage_recomputes"].fail("goes with a pipeline: of two stages or more");
  if (!result.last_stage_recomputes && result.schedule != PipelineSchedule::one_forward_one_backward)
    mapping["last_stage_recomputes"].fail("goes with schedule: 1f1b, whose last stage runs back what it has just run");
  result.vocabulary_multiple = mapping["vocabulary_multiple"].integer({1, kMostRows}, result.vocabulary_multiple);
}

}  // namespace ridgeline
