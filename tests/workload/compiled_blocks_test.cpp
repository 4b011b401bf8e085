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

/// Of one block and step, beside the head: matrix products and passes of attention.
std::pair<std::int64_t, std::int64_t> work_of_block(const OpTrace& trace, int block) {
  std::int64_t products = 0, attention = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    if (trace.records[i].kind != Record::Kind::op) continue;
    const Call& call = trace.calls[trace.records[i].index];
    if (call.layer != block) continue;
    products += std::holds_alternative<Matmul>(trace.ops[call.op]) ? 1 : 0;
    attention += std::holds_alternative<Attention>(trace.ops[call.op]) ? 1 : 0;
  }
  return {products, attention};
}

TEST(CompiledBlocks, that_are_checkpointed_run_again_in_their_backward_graphs) {
  using Work = std::pair<std::int64_t, std::int64_t>;
  ModelDescription model = blocks_of(ModelFamily::llama);
  model.bias = false;
  TrainingDescription t = sharded(DataStrategy::fsdp);
  // Seven products forward, two each backward; the last one's result is read by nobody.
  EXPECT_EQ(work_of_block(compiled_of(model, t), 1), (Work{21, 2}));
  t.activation_checkpointing = ActivationCheckpointing::block;
  EXPECT_EQ(work_of_block(compiled_of(model, t), 1), (Work{27, 3}));
  // Queries, values, the gate and attention are kept; keys, the projection and the other half run again.
  t.activation_checkpointing = ActivationCheckpointing::operations;
  EXPECT_EQ(work_of_block(compiled_of(model, t), 1), (Work{24, 2}));
  t.activation_checkpointing = ActivationCheckpointing::block;
  t.checkpointed_every = 2;
  EXPECT_EQ(work_of_block(compiled_of(model, t), 0), (Work{21, 2}));
  EXPECT_EQ(work_of_block(compiled_of(model, t), 1), (Work{27, 3}));
  EXPECT_EQ(work_of_block(compiled_of(model, t), 2), (Work{21, 2}));
}

TEST(CompiledBlocks, that_are_checkpointed_work_on_what_is_alive_and_leave_nothing) {
  for (const auto checkpointing : {ActivationCheckpointing::block, ActivationCheckpointing::operations})
    for (const std::int64_t tensor : {1, 2})
      for (const auto reshard : {ReshardAfterForward{0}, ReshardAfterForward{1}})
        for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::amp_bf16})
          for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama}) {
            TrainingDescription t = sharded(DataStrategy::fsdp);
            t.precision = precision;
            t.gradient_accumulation = 2;
            t.parallel.reshard_after_forward = reshard;
            if (tensor > 1 && family == ModelFamily::gpt2) continue;
            t.parallel.tensor = tensor;
            t.parallel.sequence_parallel = tensor > 1;
            if (precision == Precision::fp32) t.parallel.parameter_type = DType::bf16;
            const OpTrace without = compiled_of(blocks_of(family), t);
            t.activation_checkpointing = checkpointing;
            const OpTrace trace = compiled_of(blocks_of(family), t);
            ASSERT_EQ(testing_support::first_inconsistency(trace), "")
                << tensor << reshard.ranks << static_cast<int>(precision) << static_cast<int>(family);
            EXPECT_EQ(bytes_alive(trace), bytes_alive(without));
          }
}

/// The most that activations and temporaries hold at once.
std::int64_t most_of_passes(const OpTrace& trace) {
  std::int64_t now = 0, most = 0;
  for (const Record& record : trace.records) {
    if (record.kind != Record::Kind::allocate && record.kind != Record::Kind::free) continue;
    const Storage& storage = trace.storages[record.index];
    if (storage.category != Category::activations && storage.category != Category::temporaries) continue;
    now += record.kind == Record::Kind::allocate ? storage.bytes : -storage.bytes;
    most = std::max(most, now);
  }
  return most;
}

TEST(CompiledBlocks, keep_their_inputs_and_not_casts_of_them) {
  // What a block reads again to normalise it, in the type it came in: one tensor of tokens by width a block.
  ModelDescription model = blocks_of(ModelFamily::llama);
  model.bias = false;
  TrainingDescription t = sharded(DataStrategy::fsdp);
  const auto growth = [&](ActivationCheckpointing checkpointing) {
    t.activation_checkpointing = checkpointing;
    model.layers = 6;
    const std::int64_t six = most_of_passes(compiled_of(model, t));
    model.layers = 10;
    return (most_of_passes(compiled_of(model, t)) - six) / 4;
  };
  const std::int64_t tokens = 2 * 128, width = 256, inner = 512, bytes = 2;
  const std::int64_t input = tokens * width * bytes, statistics = 4 * tokens;
  EXPECT_EQ(growth(ActivationCheckpointing::block), input);
  // Two products of a block's width, one of its inner width, attention's result and its statistics of four heads.
  EXPECT_EQ(growth(ActivationCheckpointing::operations), 4 * input + tokens * inner * bytes + 4 * statistics);
}

// Four blocks of a Llama 3 8B on one H100 (PyTorch 2.11, 1 x 8192 tokens in bf16, wrapped by checkpoint_wrapper, each
// compiled): 433.0 MiB a block more after the forward pass with torchtitan's policy, 64.0 with the whole block
// checkpointed; 24 and 27 products and 2 and 3 passes of attention a block and step, 21 and 2 without.
TEST(CompiledBlocks, that_are_checkpointed_keep_and_run_what_was_measured) {
  using Work = std::pair<std::int64_t, std::int64_t>;
  ModelDescription model = blocks_of(ModelFamily::llama);
  model.bias = false;
  model.heads = 32;
  model.key_value_heads = 8;
  model.hidden = 4096;
  model.feed_forward = 14336;
  TrainingDescription t = sharded(DataStrategy::fsdp);
  t.micro_batch = 1;
  t.sequence_length = 8192;
  struct Measured {
    ActivationCheckpointing checkpointing;
    std::int64_t mib;
    Work work;
  };
  for (const Measured& measured : {Measured{ActivationCheckpointing::operations, 433, Work{24, 2}},
                                   Measured{ActivationCheckpointing::block, 64, Work{27, 3}}}) {
    t.activation_checkpointing = measured.checkpointing;
    model.layers = 4;
    const OpTrace four = compiled_of(model, t);
    EXPECT_EQ(work_of_block(four, 1), measured.work);
    model.layers = 6;
    EXPECT_EQ(most_of_passes(compiled_of(model, t)) - most_of_passes(four), 2 * measured.mib << 20);
  }
}

}  // namespace
}  // namespace ridgeline
