// torch.compile of each block under fully_shard and over tensor parallel ranks: blocks alone are compiled, and what the
// wrapper does around them stays.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/live_storages.h"

namespace ridgeline {
namespace {

using testing_support::last_step_of;

ModelDescription blocks_of(ModelFamily family) {
  ModelDescription model;
  model.family = family;
  model.layers = 3;
  model.heads = 4;
  model.hidden = 256;
  model.vocabulary = 1024;
  model.max_positions = 128;
  model.activation = Activation::gelu_tanh;
  if (family == ModelFamily::llama) {
    model.feed_forward = 512;
    model.plain = true;
  }
  return model;
}

TrainingDescription sharded(DataStrategy strategy) {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 128;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.data = 4;
  t.parallel.strategy = strategy;
  t.parallel.compiled = true;
  return t;
}

OpTrace eager_of(const ModelDescription& model, const TrainingDescription& t) {
  return training_run(model, t, AttentionChoice::flash);
}
OpTrace compiled_of(const ModelDescription& model, const TrainingDescription& t) {
  constexpr int kMultiprocessors = 132;
  return compile::compile_trace(eager_of(model, t), kMultiprocessors);
}

std::int64_t bytes_alive(const OpTrace& trace) {
  std::int64_t bytes = 0;
  for (const StorageId storage : testing_support::live_storages(trace)) bytes += trace.storages[storage].bytes;
  return bytes;
}

TEST(CompiledBlocks, are_compiled_one_by_one_forward_and_backward) {
  const OpTrace eager = eager_of(blocks_of(ModelFamily::gpt2), sharded(DataStrategy::fsdp));
  ASSERT_EQ(eager.compiled_ranges.size(), 2u * 3u);  // of two steps
  for (std::size_t i = 0; i < eager.compiled_ranges.size(); ++i) {
    const CompiledRange& range = eager.compiled_ranges[i];
    EXPECT_EQ(range.parameters, 12);
    EXPECT_EQ(range.enters_forward, i % 3 == 0);
    EXPECT_EQ(range.enters_backward, i % 3 == 2);
    EXPECT_LT(range.forward.begin, range.forward.end);
    EXPECT_LE(range.forward.end, range.backward.begin);
    EXPECT_LT(range.backward.begin, range.backward.end);
    for (const StepRange part : {range.forward, range.backward})
      for (std::uint32_t r = part.begin; r < part.end; ++r) {
        if (eager.records[r].kind != Record::Kind::op) continue;
        const Call& call = eager.calls[eager.records[r].index];
        EXPECT_EQ(call.layer, static_cast<int>(i % 3));
        EXPECT_FALSE(std::holds_alternative<Collective>(eager.ops[call.op]));
      }
  }
}

TEST(CompiledBlocks, leave_the_rest_eager_and_its_collectives_as_they_are) {
  for (const DataStrategy strategy : {DataStrategy::fsdp, DataStrategy::zero2, DataStrategy::hsdp}) {
    TrainingDescription t = sharded(strategy);
    if (strategy == DataStrategy::hsdp) t.parallel.replicate = 2;
    const OpTrace compiled = compiled_of(blocks_of(ModelFamily::gpt2), t);
    t.parallel.compiled = false;
    const OpTrace eager = eager_of(blocks_of(ModelFamily::gpt2), t);
    EXPECT_EQ(last_step_of<Collective>(compiled), last_step_of<Collective>(eager));
    EXPECT_EQ(last_step_of<Norm>(eager).size(), 2u * 7u);
    EXPECT_EQ(last_step_of<Norm>(compiled).size(), 2u);  // the final norm
    EXPECT_GT(last_step_of<FusedKernel>(compiled).size(), 3u * 4u);
    EXPECT_EQ(bytes_alive(compiled), bytes_alive(eager));
  }
}

TEST(CompiledBlocks, work_on_what_is_alive) {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama})
    for (const DataStrategy strategy : {DataStrategy::fsdp, DataStrategy::zero2})
      for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::amp_bf16})
        for (const std::int64_t wrap : {0, 1, 2})
          for (const bool no_sync : {false, true}) {
            TrainingDescription t = sharded(strategy);
            t.precision = precision;
            t.gradient_accumulation = 2;
            t.parallel.wrap = wrap;
            t.parallel.no_sync = no_sync;
            if (precision == Precision::fp32) t.parallel.parameter_type = DType::bf16;
            const OpTrace trace = compiled_of(blocks_of(family), t);
            ASSERT_EQ(testing_support::first_inconsistency(trace), "")
                << static_cast<int>(family) << static_cast<int>(strategy) << static_cast<int>(precision) << wrap
                << no_sync;
          }
}

TEST(CompiledBlocks, over_tensor_parallel_ranks_exchange_what_eager_ones_do) {
  for (const TensorStyle style : {TensorStyle::by_hand, TensorStyle::dtensor})
    for (const std::int64_t data : {1, 2})
      for (const bool sequence : {false, true}) {
        if (sequence && style == TensorStyle::by_hand) continue;
        TrainingDescription t = sharded(DataStrategy::fsdp);
        t.parallel.data = data;
        t.parallel.tensor = 2;
        t.parallel.tensor_style = style;
        t.parallel.sequence_parallel = sequence;
        const ModelDescription model = blocks_of(ModelFamily::llama);
        const OpTrace compiled = compiled_of(model, t);
        ASSERT_EQ(testing_support::first_inconsistency(compiled), "") << static_cast<int>(style) << data << sequence;
        t.parallel.compiled = false;
        const OpTrace eager = eager_of(model, t);
        EXPECT_EQ(bytes_alive(compiled), bytes_alive(eager));
        const auto sorted = [](const OpTrace& trace) {
          std::vector<std::pair<CollectiveKind, std::int64_t>> all;
          for (const Collective& c : last_step_of<Collective>(trace)) all.emplace_back(c.kind, c.bytes);
          std::sort(all.begin(), all.end());
          return all;
        };
        EXPECT_EQ(sorted(compiled), sorted(eager)) << static_cast<int>(style) << data << sequence;
        // Tracing has looked the placements up.
        const auto dispatches = [](const OpTrace& trace) {
          std::int64_t count = 0;
          for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
            if (trace.records[i].kind == Record::Kind::host && trace.records[i].host_class == HostClass::dtensor_op)
              count += trace.records[i].index;
          return count;
        };
        if (style == TensorStyle::dtensor) {
          EXPECT_LT(dispatches(compiled), dispatches(eager) / 2);
        }
      }
}

}  // namespace
}  // namespace ridgeline
