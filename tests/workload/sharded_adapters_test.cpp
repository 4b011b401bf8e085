// Adapters beside frozen layers that ranks share: what is sharded, gathered and reduced, and whose gradients tensor
// parallel ranks add up. Products of eight bits over shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kAdaptedLayers = 3, kAdaptedHidden = 64, kAdapterRank = 4, kAdaptedVocabulary = 512;
/// Queries and values of a layer: down to the rank and up from it.
constexpr std::int64_t kAdapters = kAdaptedLayers * 2 * 2 * kAdapterRank * kAdaptedHidden;

/// Whole parameters are made once and filled in the forward and the backward pass of two steps.
constexpr std::int64_t kTimesWhole = 1 + 2 * 2;

ModelDescription adapted_model() {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 3, heads: 8, hidden: 64, feed_forward: 128, vocabulary: 512, positions: rotary, "
      "norm: "
      "rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: false, "
      "tie_embeddings: false}",
      "m.yaml");
  return load_model(config::Value(tree));
}

TrainingDescription adapted_training(std::int64_t data, DataStrategy strategy, bool lora) {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.data = data;
  t.parallel.strategy = strategy;
  if (lora) t.lora = LoraDescription{.rank = kAdapterRank};
  return t;
}

OpTrace adapted_run(const TrainingDescription& t) {
  return testing_support::checked(training_run(adapted_model(), t, AttentionChoice::flash));
}

std::int64_t bytes_sent(const OpTrace& trace, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (const Collective& one : testing_support::last_step_of<Collective>(trace))
    sum += one.kind == kind ? one.bytes : 0;
  return sum;
}

std::int64_t count_sent(const OpTrace& trace, CollectiveKind kind, GroupKind group) {
  std::int64_t count = 0;
  for (const Collective& one : testing_support::last_step_of<Collective>(trace))
    count += one.kind == kind && one.group == group;
  return count;
}

std::int64_t bytes_held(const OpTrace& trace, Category category) {
  std::int64_t sum = 0;
  for (const Storage& storage : trace.storages) sum += storage.category == category ? storage.bytes : 0;
  return sum;
}

// PEFT keeps adapters of a bf16 network in fp32; fully_shard gathers both as bytes.
TEST(ShardedAdapters, what_is_frozen_is_sharded_and_gathered_but_not_reduced) {
  for (const std::int64_t ranks : {2, 4}) {
    const OpTrace plain = adapted_run(adapted_training(ranks, DataStrategy::fsdp, false)),
                  lora = adapted_run(adapted_training(ranks, DataStrategy::fsdp, true));
    EXPECT_EQ(lora.parameters, plain.parameters + kAdapters);
    EXPECT_EQ(bytes_sent(lora, CollectiveKind::all_gather),
              bytes_sent(plain, CollectiveKind::all_gather) + 2 * 4 * kAdapters);
    EXPECT_EQ(bytes_sent(lora, CollectiveKind::reduce_scatter), 4 * kAdapters);
    // A block each, the first one too, whose input requires no gradient; the root has nothing to reduce.
    EXPECT_EQ(count_sent(lora, CollectiveKind::reduce_scatter, GroupKind::shard), kAdaptedLayers);
    EXPECT_EQ(count_sent(lora, CollectiveKind::all_gather, GroupKind::shard), 2 * kAdaptedLayers + 1);
    EXPECT_EQ(bytes_held(lora, Category::weights) - bytes_held(plain, Category::weights),
              kTimesWhole * 4 * kAdapters + 4 * kAdapters / ranks);
    EXPECT_EQ(bytes_held(lora, Category::gradients), 2 * (4 * kAdapters + 4 * kAdapters / ranks));  // of two steps
    for (const Collective& one : testing_support::last_step_of<Collective>(lora)) {
      EXPECT_TRUE(one.kind != CollectiveKind::reduce_scatter || one.type == DType::fp32);
    }
  }
}

TEST(ShardedAdapters, in_one_type_are_gathered_in_it) {
  TrainingDescription t = adapted_training(2, DataStrategy::fsdp, true);
  t.parallel.parameter_type = DType::bf16;
  const OpTrace lora = adapted_run(t);
  t.lora.reset();
  const OpTrace plain = adapted_run(t);
  EXPECT_EQ(bytes_sent(lora, CollectiveKind::all_gather),
            bytes_sent(plain, CollectiveKind::all_gather) + 2 * 2 * kAdapters);
  EXPECT_EQ(bytes_sent(lora, CollectiveKind::reduce_scatter), 2 * kAdapters);
  for (const Collective& one : testing_support::last_step_of<Collective>(lora)) EXPECT_EQ(one.type, DType::bf16);
  // Shards of adapters stay in fp32, and so do their gradients.
  EXPECT_EQ(bytes_held(lora, Category::weights) - bytes_held(plain, Category::weights),
            kTimesWhole * 2 * kAdapters + 4 * kAdapters / 2);
  EXPECT_EQ(bytes_held(lora, Category::gradients), 2 * (2 * kAdapters + 4 * kAdapters / 2));
}

TEST(ShardedAdapters, that_stay_whole_between_the_passes_are_gathered_once) {
  TrainingDescription t = adapted_training(2, DataStrategy::zero2, true);
  EXPECT_EQ(count_sent(adapted_run(t), CollectiveKind::all_gather, GroupKind::shard), kAdaptedLayers + 1);
  t.parallel.strategy = DataStrategy::hsdp;
  t.parallel.data = 4;
  t.parallel.replicate = 2;
  const OpTrace hybrid = adapted_run(t);
  EXPECT_EQ(count_sent(hybrid, CollectiveKind::all_reduce, GroupKind::replicate), kAdaptedLayers);
}

// Of a layer over columns the first matrix is whole, of one over rows the second: a rank sees a part of its gradient.
TEST(ShardedAdapters, of_tensor_parallel_ranks_are_split_with_their_layers) {
  for (const TensorStyle style : {TensorStyle::by_hand, TensorStyle::dtensor}) {
    const auto run = [&](std::int64_t ranks, bool lora, std::uint8_t targets) {
      TrainingDescription t = adapted_training(1, DataStrategy::ddp, lora);
      t.parallel.tensor = ranks;
      t.parallel.tensor_style = style;
      if (lora) t.lora->targets = targets;
      return adapted_run(t);
    };
    for (const std::int64_t ranks : {2, 4}) {
      const std::int64_t own = kAdapters / 2 + kAdapters / 2 / ranks;
      EXPECT_EQ(run(ranks, true, 0).parameters - run(ranks, false, 0).parameters, own);
      const auto output = static_cast<std::uint8_t>(1U << static_cast<unsigned>(LinearRole::output));
      EXPECT_EQ(run(ranks, true, output).parameters - run(ranks, false, 0).parameters, own / 2);
      std::int64_t narrow = 0;
      for (const Collective& one : testing_support::last_step_of<Collective>(run(ranks, true, output)))
        narrow += one.kind == CollectiveKind::all_reduce && one.bytes == 4 * kAdapterRank * kAdaptedHidden;
      EXPECT_EQ(narrow, kAdaptedLayers);
    }
  }
}

TEST(ShardedAdapters, beside_zero_of_deepspeed_are_cast_with_the_network) {
  TrainingDescription t = adapted_training(2, DataStrategy::zero2, true);
  t.parallel.framework = Framework::deepspeed;
  t.precision = Precision::amp_bf16;
  const OpTrace lora = adapted_run(t);
  EXPECT_EQ(lora.parameters, adapted_run(adapted_training(2, DataStrategy::ddp, true)).parameters);
  EXPECT_LT(bytes_held(lora, Category::optimizer_state), 4 * 4 * kAdapters);
}

// Scales are found of gathered weights: nothing more is exchanged.
TEST(ScaledShards, exchange_what_layers_of_sixteen_bits_do) {
  for (const bool lora : {false, true}) {
    TrainingDescription t = adapted_training(2, DataStrategy::fsdp, lora);
    const OpTrace plain = adapted_run(t);
    t.scaled_linear = ScaledLinear::rowwise;
    const OpTrace scaled = adapted_run(t);
    EXPECT_EQ(testing_support::last_step_of<Collective>(scaled), testing_support::last_step_of<Collective>(plain));
    const auto eight_bits = [](const OpTrace& trace) {
      const std::vector<Matmul> all = testing_support::last_step_of<Matmul>(trace);
      return std::count_if(all.begin(), all.end(), [](const Matmul& one) { return one.scaling != Scaling::none; });
    };
    EXPECT_EQ(eight_bits(plain), 0);
    // Seven layers a block, forward and backward of the input and of a trained weight.
    EXPECT_TRUE(lora || eight_bits(scaled) == 3 * 7 * kAdaptedLayers);
    EXPECT_GT(eight_bits(scaled), 0);
  }
}

}  // namespace
}  // namespace ridgeline
