// Experts over ranks: what each rank holds, what is sent, whose gradients are added up with whose.
#include "sim/workload/parallel/expert_parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/composition.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kSpreadBatch = 2, kSpreadLength = 128, kSpreadHidden = 64, kSpreadInner = 96, kSpreadLayers = 2,
                       kSpreadExperts = 8, kSpreadKept = 2;
constexpr std::int64_t kOfExperts = kSpreadLayers * kSpreadExperts * 3 * kSpreadHidden * kSpreadInner;

ModelDescription spread_network() {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 2, heads: 4, hidden: 64, feed_forward: 96, vocabulary: 1000, positions: rotary, "
      "norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, "
      "feed_forward_bias: false, tie_embeddings: false, experts: 8, experts_per_token: 2, shared_feed_forward: 32}",
      "m.yaml");
  return load_model(config::Value(tree));
}

TrainingDescription spread_training(std::int64_t data, std::int64_t expert, DataStrategy strategy = DataStrategy::ddp) {
  TrainingDescription t;
  t.micro_batch = kSpreadBatch;
  t.sequence_length = kSpreadLength;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.data = data;
  t.parallel.expert = expert;
  t.parallel.strategy = strategy;
  return t;
}

OpTrace spread_run(const TrainingDescription& t) {
  return testing_support::checked(training_run(spread_network(), t, AttentionChoice::flash));
}

std::vector<std::int64_t> bytes_among(const OpTrace& trace, GroupKind group, CollectiveKind kind) {
  std::vector<std::int64_t> result;
  for (const Collective& one : testing_support::last_step_of<Collective>(trace))
    if (one.group == group && one.kind == kind) result.push_back(one.bytes);
  return result;
}

std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  std::int64_t sum = 0;
  for (const std::int64_t one : numbers) sum += one;
  return sum;
}

TEST(ExpertParallel, parts_of_all_ranks_are_the_network) {
  const std::int64_t whole = spread_run(spread_training(8, 1)).parameters;
  for (const std::int64_t ranks : {2, 4, 8}) {
    const std::int64_t part = spread_run(spread_training(8, ranks)).parameters;
    EXPECT_EQ(part + kOfExperts - kOfExperts / ranks, whole) << ranks;
  }
}

TEST(ExpertParallel, not_given_it_is_the_network_to_the_record) {
  TrainingDescription plain = spread_training(1, 1);
  plain.parallel = ParallelDescription{};
  const OpTrace one = spread_run(spread_training(1, 1)), same = spread_run(plain);
  EXPECT_EQ(one.ops, same.ops);
  EXPECT_EQ(one.records.size(), same.records.size());
  EXPECT_TRUE(testing_support::last_step_of<Collective>(one).empty());
}

TEST(ExpertParallel, tokens_go_to_their_experts_and_back_and_so_do_gradients) {
  constexpr std::int64_t kRows = kSpreadBatch * kSpreadLength * kSpreadKept * kSpreadHidden * 2,
                         kCounts = kSpreadExperts * 4;
  const auto bytes = bytes_among(spread_run(spread_training(4, 4)), GroupKind::expert, CollectiveKind::all_to_all);
  const std::vector<std::int64_t> of_layer{kCounts, kRows, kRows};
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < kSpreadLayers; ++i) expected.insert(expected.end(), of_layer.begin(), of_layer.end());
  expected.insert(expected.end(), 2 * kSpreadLayers, kRows);
  EXPECT_EQ(bytes, expected);
}

TEST(ExpertParallel, a_capacity_is_what_is_sent_and_multiplied_and_nobody_waits_for_it) {
  const auto waits = [](const OpTrace& trace) {
    std::int64_t result = 0;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
      result += trace.records[i].kind == Record::Kind::wait_for_gpu ? 1 : 0;
    return result;
  };
  const std::int64_t choices = kSpreadBatch * kSpreadLength * kSpreadKept;
  for (const double factor : {0.5, 1.0, 1.3}) {
    TrainingDescription t = spread_training(4, 4);
    t.parallel.expert_capacity = factor;
    const OpTrace trace = spread_run(t);
    const auto places = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(choices) * factor / static_cast<double>(kSpreadExperts)));
    EXPECT_EQ(bytes_among(trace, GroupKind::expert, CollectiveKind::all_to_all),
              std::vector<std::int64_t>(4 * kSpreadLayers, kSpreadExperts * places * kSpreadHidden * 2))
        << factor;
    EXPECT_EQ(waits(spread_run(spread_training(4, 4))), waits(trace) + kSpreadLayers);
    std::int64_t products = 0;
    for (const Matmul& op : testing_support::last_step_of<Matmul>(trace))
      products += op.batch == kSpreadExperts / 4 && (op.m == 4 * places || op.k == 4 * places) ? 1 : 0;
    EXPECT_EQ(products, 6 * kSpreadLayers) << factor;
  }
}

TEST(ExpertParallel, gradients_of_experts_are_added_up_over_those_with_the_same_ones) {
  const OpTrace ddp = spread_run(spread_training(8, 2));
  const std::int64_t others = ddp.parameters - kOfExperts / 2;
  EXPECT_EQ(sum_of(bytes_among(ddp, GroupKind::data, CollectiveKind::all_reduce)), others * 2);
  EXPECT_EQ(sum_of(bytes_among(ddp, GroupKind::expert_data, CollectiveKind::all_reduce)), kOfExperts / 2 * 2);
  // Where no two ranks have the same there is nothing to add up.
  EXPECT_TRUE(
      bytes_among(spread_run(spread_training(8, 8)), GroupKind::expert_data, CollectiveKind::all_reduce).empty());
  TrainingDescription t = spread_training(8, 2);
  EXPECT_EQ(stride_of(t.parallel, GroupKind::expert), 1);
  EXPECT_EQ(stride_of(t.parallel, GroupKind::expert_data), 2);
  EXPECT_EQ(t.parallel.expert_copies(), 4);
}

TEST(ExpertParallel, shards_of_experts_are_gathered_by_those_with_the_same_ones) {
  const OpTrace sharded = spread_run(spread_training(8, 2, DataStrategy::fsdp));
  for (const Collective& one : testing_support::last_step_of<Collective>(sharded)) {
    if (one.group != GroupKind::shard && one.group != GroupKind::expert_data) continue;
    EXPECT_EQ(one.ranks, one.group == GroupKind::shard ? 8 : 4);
  }
  // Gathered forward and backward, reduced once.
  constexpr std::int64_t kBytes = kOfExperts / 2 * 2;
  EXPECT_EQ(sum_of(bytes_among(sharded, GroupKind::expert_data, CollectiveKind::all_gather)), 2 * kBytes);
  EXPECT_EQ(sum_of(bytes_among(sharded, GroupKind::expert_data, CollectiveKind::reduce_scatter)), kBytes);
  const OpTrace alone = spread_run(spread_training(8, 8, DataStrategy::fsdp));
  EXPECT_TRUE(bytes_among(alone, GroupKind::expert_data, CollectiveKind::all_gather).empty());
  EXPECT_FALSE(bytes_among(alone, GroupKind::shard, CollectiveKind::all_gather).empty());
}

}  // namespace
}  // namespace ridgeline
