#include "sim/workload/families/stage_part.h"

#include <algorithm>
#include <cmath>

#include "sim/workload/composition.h"
#include "sim/workload/families/composed_families.h"
#include "sim/workload/networks/program_network.h"
#include "sim/workload/parallel/schedule.h"

namespace ridgeline::families {

namespace {

/// The first block of a stage.
std::int64_t cut_before(std::int64_t stage, std::int64_t stages, const ModelDescription& model) {
  return std::llrint(static_cast<double>(stage) * static_cast<double>(model.layers) / static_cast<double>(stages));
}

}  // namespace

std::vector<StagePart> parts_of(const ModelDescription& model, const ParallelDescription& parallel) {
  if (!parallel.pipelined()) return {{0, model.layers, true, true}};
  const parallel::PipelineShape shape = parallel::shape_of(parallel, 1);
  const std::int64_t stages = shape.stages();
  std::vector<StagePart> parts;
  for (const std::int32_t stage :
       shape.stages_of(static_cast<std::int32_t>(std::max<std::int64_t>(0, parallel.pipeline_rank))))
    parts.push_back(
        {cut_before(stage, stages, model), cut_before(stage + 1, stages, model), stage == 0, stage + 1 == stages});
  return parts;
}

std::int64_t most_between_stages(const ModelDescription& model, const TrainingDescription& training) {
  if (model.program.given()) {
    std::int64_t widest = 0;
    for (const std::vector<networks::Carried>& cut : networks::carried_tensors(model, training)) {
      std::int64_t numbers = 0;
      for (const networks::Carried& one : cut) numbers += one.sizes.product() / training.micro_batch;
      widest = std::max(widest, numbers);
    }
    return widest;
  }
  const CompositionHandle composition = composition_of(model);
  if (training.parallel.megatron()) return training.tokens_of_rank() * model.hidden;
  const std::int64_t stages = parallel::shape_of(training.parallel, 1).stages();
  std::int64_t most = 0;
  for (std::int64_t stage = 1; stage < stages; ++stage) {
    std::int64_t numbers = 0;
    for (const auto& [tokens, width] :
         composition->carried_before(cut_before(stage, stages, model), training.tokens_of_rank()))
      numbers += tokens * width;
    most = std::max(most, numbers);
  }
  return training.parallel.sequence_parallel ? most / training.parallel.tensor : most;  // each rank sends its part
}

std::string why_not_cut(const ModelDescription& model, Framework framework) {
  if (model.program.given())
    return framework == Framework::megatron ? "Megatron-LM runs no programs: expected 1"
                                            : model.program->obstacle_to_stages;
  if (framework == Framework::megatron)
    return model.family == ModelFamily::gpt2 || model.family == ModelFamily::llama
               ? ""
               : "a pipeline of Megatron-LM cuts networks of family gpt2 and llama";
  const CompositionHandle composition = composition_of(model);
  if (composition->stack.sequence_first)
    return "tensors that are [tokens, sequences, hidden] are not modelled in a pipeline: expected 1";
  if (composition->stack.head == HeadKind::pretraining)
    return "a loss of two scores, as of head: pretraining, is not modelled in a pipeline: expected 1";
  if (composition->stack.head == HeadKind::contrastive)
    return "a contrastive loss compares all sequences of a batch, and a pipeline's loss sees those of a micro-batch";
  if (composition->stack.image_rows) return "an image's rows among tokens are not modelled in a pipeline; expected 1";
  return "";
}

std::vector<std::int64_t> kinds_of_blocks(const ModelDescription& model, const StagePart& part) {
  std::vector<std::int64_t> kinds;
  for (std::int64_t block = part.first; block < part.last; ++block)
    kinds.push_back(model.program.given() ? model.program->kinds[static_cast<std::size_t>(block)]
                                          : composition_of(model)->kind_of_block(block));
  return kinds;
}

}  // namespace ridgeline::families
