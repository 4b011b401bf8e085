// Op traces of the ranks of a pipeline: what they compute, exchange and give back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/units/user_error.h"
#include "sim/workload/parallel/schedule.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

OpTrace stage(PipelineSchedule schedule, std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches = 8,
              ModelFamily family = ModelFamily::gpt2, ActivationCheckpointing checkpointing = {}) {
  ModelDescription model;
  model.family = family;
  model.plain = family == ModelFamily::llama;
  model.layers = 8;
  model.heads = 4;
  model.hidden = 64;
  model.vocabulary = 1000;
  model.max_positions = 32;
  model.tie_embeddings = false;
  if (family == ModelFamily::llama) {
    model.feed_forward = 128;
    model.activation = Activation::swiglu;
    model.bias = false;
  } else {
    model.activation = Activation::gelu_tanh;
  }
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.gradient_accumulation = micro_batches;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.activation_checkpointing = checkpointing;
  t.parallel.pipeline = ranks;
  t.parallel.schedule = schedule;
  const bool several = schedule == PipelineSchedule::interleaved ||
                       schedule == PipelineSchedule::interleaved_zero_bubble || schedule == PipelineSchedule::zbv;
  t.parallel.virtual_stages = several ? 2 : 1;
  t.parallel.pipeline_rank = rank;
  return training_run(model, t, AttentionChoice::flash, 2);
}

constexpr PipelineSchedule kAll[] = {PipelineSchedule::gpipe,       PipelineSchedule::one_forward_one_backward,
                                     PipelineSchedule::interleaved, PipelineSchedule::zb1p,
                                     PipelineSchedule::zbv,         PipelineSchedule::interleaved_zero_bubble};

/// Calls of an operation in the last step.
template <typename Operation>
std::int64_t count(const OpTrace& trace) {
  std::int64_t result = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::op)
      result += std::holds_alternative<Operation>(trace.ops[trace.calls[trace.records[i].index].op]);
  return result;
}

TEST(PipelineStage, gives_back_in_a_step_what_it_takes) {
  for (const PipelineSchedule schedule : kAll)
    for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama})
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        const OpTrace trace = stage(schedule, 2, rank, 8, family);
        std::int64_t held = 0;
        for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
          const Record& record = trace.records[i];
          if (record.kind == Record::Kind::allocate) held += trace.storages[record.index].bytes;
          if (record.kind == Record::Kind::free) held -= trace.storages[record.index].bytes;
        }
        EXPECT_EQ(held, 0) << static_cast<int>(schedule) << " rank " << rank;
      }
}

TEST(PipelineStage, parted_backward_passes_multiply_as_whole_ones_do) {
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(count<Matmul>(stage(PipelineSchedule::zb1p, 2, rank, 4)),
              count<Matmul>(stage(PipelineSchedule::gpipe, 2, rank, 4)));
    EXPECT_EQ(count<Attention>(stage(PipelineSchedule::zb1p, 2, rank, 4)),
              count<Attention>(stage(PipelineSchedule::gpipe, 2, rank, 4)));
  }
}

TEST(PipelineStage, its_actions_cover_its_exchanges) {
  for (const PipelineSchedule schedule : kAll) {
    const OpTrace trace = stage(schedule, 4, 1);
    const parallel::PipelineShape shape{schedule, 4,
                                        schedule == PipelineSchedule::gpipe ||
                                                schedule == PipelineSchedule::one_forward_one_backward ||
                                                schedule == PipelineSchedule::zb1p
                                            ? 1
                                            : 2,
                                        8};
    parallel::PipelineShape traced = shape;
    traced.micro_batches = shorten(shape).micro_batches;
    const parallel::RankActions actions = make_schedule(traced)[1];
    ASSERT_EQ(trace.stage_actions.size(), actions.size());
    std::int64_t exchanges = 0;
    for (const parallel::StageAction& action : actions)
      exchanges += action.kind == parallel::StageAction::Kind::exchange;
    EXPECT_EQ(count<Collective>(trace), exchanges);
    for (std::size_t i = 1; i < trace.stage_actions.size(); ++i)
      EXPECT_EQ(trace.stage_actions[i - 1].end, trace.stage_actions[i].begin);
  }
}

TEST(PipelineStage, runs_checkpointed_blocks_again) {
  const OpTrace once = stage(PipelineSchedule::one_forward_one_backward, 2, 1, 4),
                twice = stage(PipelineSchedule::one_forward_one_backward, 2, 1, 4, ModelFamily::gpt2,
                              ActivationCheckpointing::block);
  EXPECT_GT(count<Attention>(twice), count<Attention>(once));
  EXPECT_THROW(stage(PipelineSchedule::zb1p, 2, 1, 4, ModelFamily::gpt2, ActivationCheckpointing::block), UserError);
}

// Buffers of what is received are made in the first step, one a micro-batch.
TEST(PipelineStage, keeps_a_buffer_for_each_micro_batch) {
  const auto kept = [](std::int64_t micro_batches) {
    const OpTrace trace = stage(PipelineSchedule::one_forward_one_backward, 2, 1, micro_batches);
    std::map<std::uint32_t, bool> alive;
    for (const Record& record : trace.records) {
      if (record.kind == Record::Kind::allocate) alive[record.index] = true;
      if (record.kind == Record::Kind::free) alive[record.index] = false;
    }
    std::int64_t buffers = 0;
    for (const auto& [storage, lives] : alive) buffers += lives && trace.storages[storage].bytes == 2 * 32 * 64 * 2;
    return buffers;
  };
  EXPECT_EQ(kept(40) - kept(24), 16);
}

TEST(PipelineStage, megatron_refuses_schedules_that_it_does_not_have) {
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::zb1p, PipelineSchedule::zbv,
                                          PipelineSchedule::interleaved_zero_bubble}) {
    ModelDescription model;
    model.layers = 8;
    model.heads = 4;
    model.hidden = 64;
    model.vocabulary = 1000;
    model.max_positions = 32;
    TrainingDescription t;
    t.micro_batch = 2;
    t.sequence_length = 32;
    t.gradient_accumulation = 8;
    t.precision = Precision::amp_bf16;
    t.optimizer.implementation = OptimizerImplementation::fused;
    t.parallel.framework = Framework::megatron;
    t.parallel.pipeline = 2;
    t.parallel.pipeline_rank = 0;
    t.parallel.schedule = schedule;
    t.parallel.virtual_stages = schedule == PipelineSchedule::zb1p || schedule == PipelineSchedule::gpipe ? 1 : 2;
    try {
      training_run(model, t, AttentionChoice::flash, 2);
      ADD_FAILURE() << "a trace was made";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("training.parallel.schedule: Megatron-LM has 1f1b"));
    }
  }
}

}  // namespace
}  // namespace ridgeline
