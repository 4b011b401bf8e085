// Keys of training.parallel that go with framework: megatron.
#include "sim/scenario/read_megatron.h"

#include <string_view>

namespace ridgeline {

void read_megatron(const config::Mapping& mapping, ParallelDescription& result) {
  result.transformer_engine = mapping["transformer_engine"].boolean(false);
  result.gradient_accumulation_fusion = mapping["gradient_accumulation_fusion"].boolean(result.transformer_engine);
  result.cross_entropy_fusion = mapping["cross_entropy_fusion"].boolean(false);
  result.async_all_reduce = mapping["async_all_reduce"].boolean(true);
  for (const std::string_view key : {"transformer_engine", "async_all_reduce"})
    if (!result.megatron() && mapping.has(key)) mapping[key].fail("goes with framework: megatron");
  for (const std::string_view key : {"gradient_accumulation_fusion", "cross_entropy_fusion"})
    if (!result.transformer_engine && mapping.has(key)) mapping[key].fail("goes with transformer_engine: true");
  if (result.sequence_parallel && !result.async_all_reduce)
    mapping["async_all_reduce"].fail("sequence_parallel scatters gradients beside the next product in any case");
  if (result.megatron() && result.pipelined() && result.schedule != PipelineSchedule::one_forward_one_backward &&
      result.schedule != PipelineSchedule::interleaved)
    mapping["schedule"].fail("Megatron-LM has 1f1b and interleaved");
}

}  // namespace ridgeline
