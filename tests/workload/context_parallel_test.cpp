// Ranks that share sequences: which part of the scores each rank computes in which turn, what goes around, what a rank
// holds.
#include "sim/workload/parallel/context_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/units/user_error.h"
#include "sim/workload/families/shared_sequences.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/odd_networks.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kSharedBatch = 2, kSharedLength = 512, kSharedHidden = 64, kSharedLayers = 2,
                       kSharedKeyHeads = 4, kSharedHeadDim = 8;

ModelDescription shared_network(ModelFamily family) {
  ModelDescription model;
  model.family = family;
  model.layers = kSharedLayers;
  model.heads = 8;
  model.hidden = kSharedHidden;
  model.feed_forward = 4 * kSharedHidden;
  model.vocabulary = 1000;
  model.max_positions = kSharedLength;
  model.bias = family != ModelFamily::llama;
  model.activation = family == ModelFamily::llama ? Activation::swiglu : Activation::gelu_tanh;
  if (family == ModelFamily::llama) {
    model.key_value_heads = kSharedKeyHeads;
    model.plain = true;
  }
  if (family == ModelFamily::bert) model.head = ModelHead::masked_lm;
  return model;
}

TrainingDescription shared_training(std::int64_t context, std::int64_t rank = -1) {
  TrainingDescription t;
  t.micro_batch = kSharedBatch;
  t.sequence_length = kSharedLength;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.context = context;
  t.parallel.context_rank = rank;
  return t;
}

OpTrace shared_run(ModelFamily family, const TrainingDescription& t, AttentionChoice how = AttentionChoice::flash) {
  return testing_support::checked(training_run(shared_network(family), t, how));
}

/// Scores that a query may see, each twice where a causal mask hides the other half of a square but its diagonal.
double doubled_scores(const Attention& op) {
  const double all = static_cast<double>(op.seq_q) * static_cast<double>(op.seq_k);
  return op.causal ? all + static_cast<double>(op.seq_q) : 2.0 * all;
}

double doubled_scores(const OpTrace& trace, bool backward) {
  double sum = 0.0;
  for (const Attention& op : testing_support::last_step_of<Attention>(trace))
    if (op.backward == backward) sum += doubled_scores(op);
  return sum;
}

TEST(ContextParallel, turns_of_all_ranks_are_the_attention_of_the_whole_sequence) {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama, ModelFamily::bert})
    for (const bool backward : {false, true}) {
      const double whole = doubled_scores(shared_run(family, shared_training(1)), backward);
      ASSERT_GT(whole, 0.0);
      for (const std::int64_t ranks : {2, 4, 8}) {
        double sum = 0.0;
        for (std::int64_t rank = 0; rank < ranks; ++rank)
          sum += doubled_scores(shared_run(family, shared_training(ranks, rank)), backward);
        EXPECT_EQ(sum, whole) << ranks;
      }
    }
}

TEST(ContextParallel, a_turn_is_half_a_square_and_each_rank_has_its_own_kinds) {
  constexpr std::int64_t kRanks = 4, kOwn = kSharedLength / kRanks;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    const std::vector<Attention> ops =
        testing_support::last_step_of<Attention>(shared_run(ModelFamily::gpt2, shared_training(kRanks, rank)));
    ASSERT_EQ(ops.size(), static_cast<std::size_t>(2 * kRanks * kSharedLayers));
    for (std::int64_t turn = 0; turn < kRanks; ++turn) {
      const Attention& op = ops[static_cast<std::size_t>(turn)];
      EXPECT_EQ(op.causal, turn == 0);
      EXPECT_EQ(op.seq_q, turn > rank ? kOwn / 2 : kOwn) << rank << " " << turn;
      EXPECT_EQ(op.seq_k, turn > 0 && turn <= rank ? kOwn / 2 : kOwn) << rank << " " << turn;
    }
  }
  for (const Attention& op :
       testing_support::last_step_of<Attention>(shared_run(ModelFamily::bert, shared_training(kRanks)))) {
    EXPECT_FALSE(op.causal);
    EXPECT_EQ(op.seq_q, kOwn);
    EXPECT_EQ(op.seq_k, kOwn);
  }
}

TEST(ContextParallel, not_given_it_is_the_network_to_the_record) {
  TrainingDescription plain = shared_training(1);
  plain.parallel = ParallelDescription{};
  const OpTrace one = shared_run(ModelFamily::llama, shared_training(1)), same = shared_run(ModelFamily::llama, plain);
  EXPECT_EQ(one.records.size(), same.records.size());
  EXPECT_EQ(one.ops, same.ops);
  EXPECT_TRUE(one.streams.empty());
  EXPECT_TRUE(testing_support::last_step_of<Collective>(one).empty());
}

/// By kind, bytes of what ranks of a sequence exchange.
std::map<CollectiveKind, std::vector<std::int64_t>> around_a_sequence(const OpTrace& trace) {
  std::map<CollectiveKind, std::vector<std::int64_t>> result;
  for (const Collective& c : testing_support::last_step_of<Collective>(trace))
    if (c.group == GroupKind::context) result[c.kind].push_back(c.bytes);
  return result;
}

TEST(ContextParallel, keys_and_values_are_gathered_once_a_pass_and_gradients_go_around_in_fp32) {
  constexpr std::int64_t kElements = kSharedBatch * kSharedLength * kSharedKeyHeads * kSharedHeadDim * 2;  // of K and V
  for (const std::int64_t ranks : {2, 4}) {
    auto gathered = around_a_sequence(shared_run(ModelFamily::llama, shared_training(ranks)));
    EXPECT_EQ(gathered[CollectiveKind::all_gather], std::vector<std::int64_t>(2 * kSharedLayers, kElements * 2));
    EXPECT_EQ(gathered[CollectiveKind::send_recv],
              std::vector<std::int64_t>(static_cast<std::size_t>(ranks) * kSharedLayers, kElements / ranks * 4));
    TrainingDescription ring = shared_training(ranks);
    ring.parallel.rotation = ContextRotation::all_to_all;
    auto sent = around_a_sequence(shared_run(ModelFamily::llama, ring));
    EXPECT_TRUE(sent[CollectiveKind::all_gather].empty());
    const std::int64_t keys = std::count(sent[CollectiveKind::send_recv].begin(), sent[CollectiveKind::send_recv].end(),
                                         kElements / ranks * 2),
                       gradients = std::count(sent[CollectiveKind::send_recv].begin(),
                                              sent[CollectiveKind::send_recv].end(), kElements / ranks * 4);
    EXPECT_EQ(keys, 2 * kSharedLayers * (ranks - 1));
    EXPECT_EQ(gradients, kSharedLayers * ranks);
  }
}

TEST(ContextParallel, gradients_are_added_up_over_data_and_context_ranks) {
  TrainingDescription t = shared_training(2);
  t.parallel.data = 3;
  EXPECT_EQ(t.parallel.gpus(), 6);
  std::int64_t reduced = 0, parameters = 0;
  const OpTrace ddp = shared_run(ModelFamily::llama, t);
  for (const Collective& c : testing_support::last_step_of<Collective>(ddp))
    if (c.group == GroupKind::data) {
      EXPECT_EQ(c.ranks, 6);
      reduced += c.bytes;
    }
  parameters = ddp.parameters;
  EXPECT_EQ(reduced, parameters * 2);
  t.parallel.strategy = DataStrategy::fsdp;
  std::int64_t shards = 0;
  for (const Collective& c : testing_support::last_step_of<Collective>(shared_run(ModelFamily::llama, t)))
    if (c.group == GroupKind::shard) {
      EXPECT_EQ(c.ranks, 6);
      ++shards;
    }
  EXPECT_GT(shards, 0);
  // Ranks of a sequence stand beside each other, those of a stage are all that share its layers.
  t.parallel.tensor = 4;
  t.parallel.pipeline = 2;
  EXPECT_EQ(stride_of(t.parallel, GroupKind::context), 4);
  EXPECT_EQ(stride_of(t.parallel, GroupKind::data), 4);
  EXPECT_EQ(stride_of(t.parallel, GroupKind::pipeline), 24);
  EXPECT_EQ(t.parallel.gpus(), 48);
}

TEST(ContextParallel, other_layers_run_on_a_rank_s_tokens) {
  const auto rows = [](const OpTrace& trace) {
    std::map<std::int64_t, int> result;
    for (const Matmul& op : testing_support::last_step_of<Matmul>(trace)) ++result[op.m];
    return result;
  };
  const std::map<std::int64_t, int> whole = rows(shared_run(ModelFamily::llama, shared_training(1))),
                                    part = rows(shared_run(ModelFamily::llama, shared_training(8)));
  ASSERT_TRUE(whole.contains(kSharedBatch * kSharedLength));
  EXPECT_EQ(whole.at(kSharedBatch * kSharedLength), part.at(kSharedBatch * kSharedLength / 8));
  EXPECT_FALSE(part.contains(kSharedBatch * kSharedLength));
}

// A turn with half of the queries joins what it has merged with the half that it left; one with half of the keys
// merges all. Nothing else differs.
TEST(ContextParallel, the_last_rank_moves_most) {
  const auto moved = [](std::int64_t rank) {
    std::int64_t bytes = 0;
    const OpTrace trace = shared_run(ModelFamily::gpt2, shared_training(4, rank));
    for (const Pointwise& op : testing_support::last_step_of<Pointwise>(trace)) {
      bytes += op.elements() * bytes_of(op.output);
      for (int i = 0; i < op.input_count; ++i) bytes += op.elements() * bytes_of(op.inputs[i]);
    }
    for (const Copy& op : testing_support::last_step_of<Copy>(trace))
      if (!leaves_device(op.kind)) bytes += 2 * op.rows * op.cols * op.parts * bytes_of(op.type);
    return bytes;
  };
  const std::int64_t last = moved(3);
  for (const std::int64_t rank : {0, 1, 2}) EXPECT_LT(moved(rank), last) << rank;
}

TEST(ContextParallel, goes_with_blocks_run_again_and_stages) {
  TrainingDescription again = shared_training(2);
  again.activation_checkpointing = ActivationCheckpointing::block;
  auto exchanged = around_a_sequence(shared_run(ModelFamily::llama, again));
  EXPECT_EQ(exchanged[CollectiveKind::all_gather].size(), 3u * kSharedLayers);
  EXPECT_EQ(exchanged[CollectiveKind::send_recv].size(), 2u * kSharedLayers);
  TrainingDescription stage = shared_training(2);
  stage.parallel.pipeline = 2;
  stage.parallel.pipeline_rank = 1;
  stage.gradient_accumulation = 4;
  const OpTrace part = shared_run(ModelFamily::llama, stage);
  EXPECT_EQ(around_a_sequence(part)[CollectiveKind::all_gather].size(), 4u * 2u * kSharedLayers / 2u);
  for (const Collective& c : testing_support::last_step_of<Collective>(part))
    if (c.group == GroupKind::pipeline) {
      EXPECT_EQ(c.bytes, kSharedBatch * kSharedLength / 2 * kSharedHidden * 2);
    }
}

TEST(ContextParallel, refuses_statistics_that_cannot_be_merged) {
  TrainingDescription t = shared_training(2);
  t.sequence_length = 240;  // 120 of a rank, 60 of a slice
  EXPECT_THROW((void)shared_run(ModelFamily::gpt2, t, AttentionChoice::efficient), UserError);
  EXPECT_NO_THROW((void)shared_run(ModelFamily::gpt2, t, AttentionChoice::flash));
  EXPECT_NO_THROW((void)shared_run(ModelFamily::gpt2, shared_training(2), AttentionChoice::efficient));
  EXPECT_NO_THROW((void)shared_run(ModelFamily::gpt2, shared_training(2), AttentionChoice::cudnn));
}

// What ranks exchange and attend to is of sizes and masks, whoever wrote the network.
TEST(ContextParallel, IsTheSameForNetworksOfEqualSizes) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 2, heads: 8, hidden: 64, feed_forward: 256, vocabulary: 1000, key_value_heads: 4, "
      "positions: rotary, norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, "
      "feed_forward_bias: false}",
      "model.yaml");
  const ModelDescription composed = load_model(config::Value(tree));
  for (const std::int64_t ranks : {2, 4}) {
    const TrainingDescription t = shared_training(ranks);
    const auto counted = [](const OpTrace& trace) {
      std::map<std::size_t, int> counts;
      for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
        if (trace.records[i].kind != Record::Kind::op) continue;
        const Op& op = trace.ops[trace.calls[trace.records[i].index].op];
        const auto* sent = std::get_if<Collective>(&op);
        if (std::holds_alternative<Attention>(op) || (sent != nullptr && sent->group == GroupKind::context))
          ++counts[hash_of(op)];
      }
      return counts;
    };
    EXPECT_EQ(counted(training_run(composed, t, AttentionChoice::flash, 2)),
              counted(shared_run(ModelFamily::llama, t)));
  }
}

// Sentences of torch/distributed/tensor/experimental/_context_parallel/_attention.py.
TEST(ContextParallel, RefusesWhatPyTorchRefuses) {
  TrainingDescription t = shared_training(2);
  t.sequence_length = 8;
  const auto why = [&](const std::string& keys) {
    return families::why_not_shared(testing_support::odd_composition(keys), t);
  };
  EXPECT_EQ(why("positions: rotary"), "");
  EXPECT_EQ(why("positions: rotary, window: 4"), "");
  for (const char* keys :
       {"positions: rotary, window: 3", "positions: alibi", "positions: relative", "always_masked: true"})
    EXPECT_THAT(why(keys), ::testing::HasSubstr("attn_bias is not supported yet")) << keys;
  EXPECT_THAT(why("key_value_heads: 1, grouping: broadcast"), ::testing::HasSubstr("CP only supports flash attention"));
  EXPECT_THAT(why("attention_code: written-out"), ::testing::HasSubstr("takes fused attention"));
  EXPECT_THAT(why("cross_attention: true, encoder: {layers: 1}"), ::testing::HasSubstr("Load balancing requires"));
  EXPECT_THAT(why("causal: false, head: sequence-classification"), ::testing::HasSubstr("scores every token"));
}

}  // namespace
}  // namespace ridgeline
