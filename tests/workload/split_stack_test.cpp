// Networks of every kind whose layers tensor parallel ranks share, by hand and by DTensor: what a rank holds, computes
// and exchanges follows from the sizes of the network.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/families/stack_split.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kSplitRows = 2, kSplitTokens = 32, kSplitHidden = 64, kSplitLayers = 2, kSplitVocabulary = 1000;
constexpr std::int64_t kSplitActivations = kSplitRows * kSplitTokens * kSplitHidden * 2;  // bytes of 16-bit ones

ModelDescription split_model(const std::string& keys) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 2, heads: 8, hidden: 64, feed_forward: 256, tie_embeddings: false, " + keys + "}",
      "m.yaml");
  return load_model(config::Value(tree));
}

const std::string kTokens = "vocabulary: 1000, ",
                  kPlain = "qkv_bias: false, output_bias: false, feed_forward_bias: false, ",
                  kGated = "positions: rotary, norm: rms, feed_forward_kind: gated, activation: silu, ",
                  kDecoder = kTokens + kPlain + kGated + "key_value_heads: 4",
                  kExperts = kDecoder +
                             ", experts: 8, experts_per_token: 2, expert_feed_forward: 96, shared_feed_forward: 48, "
                             "shared_gate: true",
                  kLatent = kTokens + kPlain + kGated +
                            "key_value_rank: 32, query_rank: 24, rotary_head_dim: 8, value_head_dim: 8, head_dim: 16";

/// One of each kind of attention and of second parts.
const std::map<std::string, std::string>& split_kinds() {
  static const std::map<std::string, std::string> kinds{
      {"decoder", kDecoder},
      {"biases", kTokens + "positions: learned, max_positions: 32"},
      {"fused projection", kTokens + "positions: alibi, projection: fused-by-head, embedding_norm: true"},
      {"parallel parts", kTokens + kPlain + "positions: rotary, residual: parallel"},
      {"norms of heads", kDecoder + ", query_key_norm: head"},
      {"norms of all heads", kDecoder + ", query_key_norm: width, norm_place: after"},
      {"windows", kDecoder + ", window: 8, layer_kinds: [window, full], norm_place: both, score_cap: 50"},
      {"sinks", kDecoder + ", sinks: true"},
      {"experts", kExperts},
      {"latent attention", kLatent},
      {"latent attention without a rank of queries", kTokens + kPlain + kGated +
                                                         "key_value_rank: 32, rotary_head_dim: 8, value_head_dim: 8, "
                                                         "head_dim: 16"},
      {"relative positions", kTokens + kPlain + "positions: relative, relative_buckets: 8, norm: rms-t5"},
      {"disentangled positions",
       kTokens +
           "positions: disentangled, position_rows: 16, position_terms: [content-to-position, "
           "position-to-content], shared_position_projection: true, causal: false, norm_place: post, head: masked-lm"},
      {"masked language model",
       kTokens + "causal: false, head: masked-lm, positions: learned, max_positions: 32, type_vocabulary: 2, "
                 "embedding_norm: true, norm_place: post, head_transform: true, head_bias: true"},
      {"an encoder", kTokens + "cross_attention: true, positions: learned, max_positions: 32, encoder: {head: none, "
                               "causal: false}"},
  };
  return kinds;
}

TrainingDescription split_training(std::int64_t ranks, TensorStyle style, bool sequence = false) {
  TrainingDescription t;
  t.micro_batch = kSplitRows;
  t.sequence_length = kSplitTokens;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.tensor = ranks;
  t.parallel.tensor_style = style;
  t.parallel.sequence_parallel = sequence;
  return t;
}

OpTrace split_run(const std::string& keys, const TrainingDescription& t) {
  return testing_support::checked(training_run(split_model(keys), t, AttentionChoice::efficient));
}

/// Multiplications of matrices and attention in the last step.
double computed(const OpTrace& trace) {
  double sum = 0.0;
  for (const Matmul& one : testing_support::last_step_of<Matmul>(trace))
    sum += static_cast<double>(one.batch) * static_cast<double>(one.m) * static_cast<double>(one.n) *
           static_cast<double>(one.k);
  return sum;
}

std::map<CollectiveKind, std::vector<std::int64_t>> sent(const OpTrace& trace, GroupKind group) {
  std::map<CollectiveKind, std::vector<std::int64_t>> result;
  for (const Collective& one : testing_support::last_step_of<Collective>(trace))
    if (one.group == group) result[one.kind].push_back(one.bytes);
  for (auto& [kind, bytes] : result) std::sort(bytes.begin(), bytes.end());
  return result;
}

// What a rank has is W + S / ranks: so are its products.
TEST(SplitStack, parameters_and_products_of_all_ranks_are_those_of_the_network) {
  for (const auto& [name, keys] : split_kinds())
    for (const TensorStyle style : {TensorStyle::by_hand, TensorStyle::dtensor})
      for (const bool sequence : {false, true}) {
        if (sequence && style == TensorStyle::by_hand) continue;
        SCOPED_TRACE(name + (style == TensorStyle::by_hand ? " by hand" : sequence ? " with a split sequence" : ""));
        const OpTrace one = split_run(keys, split_training(1, style)),
                      two = split_run(keys, split_training(2, style, sequence)),
                      four = split_run(keys, split_training(4, style, sequence));
        EXPECT_GT(one.parameters, two.parameters);
        EXPECT_EQ(one.parameters - two.parameters, 2 * (two.parameters - four.parameters));
        EXPECT_GT(computed(one), computed(two));
        EXPECT_DOUBLE_EQ(computed(one) - computed(two), 2.0 * (computed(two) - computed(four)));
        EXPECT_DOUBLE_EQ(one.model_flops, 4.0 * four.model_flops);
      }
}

// Tables, norms and the output projection are whole by hand; by DTensor only norms are.
TEST(SplitStack, a_rank_of_a_decoder_holds_what_its_style_splits) {
  const std::int64_t all = split_run(kDecoder, split_training(1, TensorStyle::by_hand)).parameters,
                     norms = (2 * kSplitLayers + 1) * kSplitHidden, tables = 2 * kSplitVocabulary * kSplitHidden;
  for (const std::int64_t ranks : {2, 4}) {
    EXPECT_EQ(split_run(kDecoder, split_training(ranks, TensorStyle::by_hand)).parameters,
              norms + tables + (all - norms - tables) / ranks);
    EXPECT_EQ(split_run(kDecoder, split_training(ranks, TensorStyle::dtensor)).parameters,
              norms + (all - norms) / ranks);
  }
}

// torch.chunk gives the first rank most rows, and logits of all are a view of padded parts.
TEST(SplitStack, a_vocabulary_that_ranks_do_not_divide_is_padded) {
  const std::string odd = "vocabulary: 999, " + kPlain + kGated + "key_value_heads: 4";
  const std::int64_t rows = 999 - 500, hidden = kSplitHidden;
  EXPECT_EQ(split_run(kDecoder, split_training(2, TensorStyle::dtensor)).parameters,
            split_run(odd, split_training(2, TensorStyle::dtensor)).parameters);
  EXPECT_EQ(split_run(odd, split_training(1, TensorStyle::dtensor)).parameters -
                split_run("vocabulary: 500, " + kPlain + kGated + "key_value_heads: 4",
                          split_training(1, TensorStyle::dtensor))
                    .parameters,
            2 * rows * hidden);
}

TEST(SplitStack, by_hand_latent_attention_adds_up_gradients_of_ranks_and_of_the_shared_part) {
  auto all = sent(split_run(kLatent, split_training(2, TensorStyle::by_hand)), GroupKind::tensor);
  const std::int64_t tokens = kSplitRows * kSplitTokens * 2;
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < kSplitLayers; ++i) {
    for (int times = 0; times < 3; ++times) expected.push_back(kSplitActivations);  // both parts, one gradient
    for (const std::int64_t width : {32, 24, 8}) expected.push_back(tokens * width);
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all[CollectiveKind::all_reduce], expected);
  EXPECT_EQ(all.size(), 1u);
}

// A norm's result goes with the product that reads it: before attention only what views show is left of the rank.
TEST(SplitStack, latent_attention_keeps_no_result_of_a_frozen_norm) {
  for (const std::int64_t ranks : {1, 4}) {  // whose heads are of other sizes than the rank
    TrainingDescription t = split_training(ranks, TensorStyle::by_hand);
    t.lora = LoraDescription{.rank = 4};
    const OpTrace trace = split_run(kLatent, t);
    std::map<std::uint32_t, std::int64_t> live;
    const std::int64_t normed = kSplitRows * kSplitTokens * 32 * 2;
    bool met = false;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end && !met; ++i) {
      const Record& record = trace.records[i];
      if (record.kind == Record::Kind::allocate) live[record.index] = trace.storages[record.index].bytes;
      if (record.kind == Record::Kind::free) live.erase(record.index);
      if (record.kind != Record::Kind::op) continue;
      met = std::holds_alternative<Attention>(trace.ops[trace.calls[record.index].op]);
    }
    EXPECT_TRUE(met);
    EXPECT_EQ(std::count_if(live.begin(), live.end(), [&](const auto& one) { return one.second == normed; }), 0);
  }
}

// By hand the gradients of shares are added up, for the router; DTensors add up the router's own.
TEST(SplitStack, experts_are_entered_and_left_once) {
  auto by_hand = sent(split_run(kExperts, split_training(2, TensorStyle::by_hand)), GroupKind::tensor);
  const std::int64_t shares = kSplitRows * kSplitTokens * 2 * 4;
  std::vector<std::int64_t> expected(static_cast<std::size_t>(kSplitLayers), shares);
  // Attention, routed and shared experts: forward and backward.
  for (std::int64_t i = 0; i < 6 * kSplitLayers; ++i) expected.push_back(kSplitActivations);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(by_hand[CollectiveKind::all_reduce], expected);

  auto dtensor = sent(split_run(kExperts, split_training(2, TensorStyle::dtensor, true)), GroupKind::tensor);
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter})
    EXPECT_EQ(dtensor[kind], std::vector<std::int64_t>(4 * kSplitLayers + 2, kSplitActivations));
  // Weights of norms, of routers and of gates of the shared experts.
  EXPECT_EQ(dtensor[CollectiveKind::all_reduce].size(),
            static_cast<std::size_t>(2 * kSplitLayers + 1 + 2 * kSplitLayers));
}

// Transformers gathers the columns of projections before norms over all heads, and attends alike on every rank.
TEST(SplitStack, norms_of_all_heads_gather_queries_keys_and_values) {
  auto all =
      sent(split_run(kDecoder + ", query_key_norm: width", split_training(2, TensorStyle::by_hand)), GroupKind::tensor);
  const std::int64_t wide = kSplitActivations, narrow = wide / 2;  // eight heads, four of keys
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < kSplitLayers; ++i) {
    for (const std::int64_t bytes : {wide, wide, narrow, narrow}) expected.push_back(bytes);  // and a gradient
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all[CollectiveKind::all_gather], expected);
}

// Ranks that have the same keys and values see a part of their gradient each.
TEST(SplitStack, by_hand_all_ranks_have_the_only_key_head) {
  const std::string one = kTokens + kPlain + kGated + "key_value_heads: 1";
  const std::int64_t narrow = kSplitHidden * kSplitHidden / 8;
  auto all = sent(split_run(one, split_training(4, TensorStyle::by_hand)), GroupKind::tensor);
  EXPECT_EQ(std::count(all[CollectiveKind::all_reduce].begin(), all[CollectiveKind::all_reduce].end(), 2 * narrow),
            2 * kSplitLayers);
  const auto held = [&](std::int64_t ranks) {
    return split_run(one, split_training(ranks, TensorStyle::by_hand)).parameters - 2 * kSplitLayers * narrow;
  };
  EXPECT_EQ(held(1) - held(2), 2 * (held(2) - held(4)));
  const ModelDescription model = split_model(one);
  EXPECT_EQ(families::why_not_split(*model.composition, split_training(2, TensorStyle::by_hand)), "");
  EXPECT_EQ(families::why_not_split(*model.composition, split_training(2, TensorStyle::dtensor)),
            "2 does not divide the 1 key/value heads: allowed are divisors of 1");
}

TEST(SplitStack, what_pytorch_raises_is_said_in_its_words) {
  const auto why = [](const std::string& keys, const TrainingDescription& t) {
    return families::why_not_split(*split_model(keys).composition, t);
  };
  EXPECT_NE(why(kTokens + "weights_by_inputs: true, positions: learned, max_positions: 32",
                split_training(2, TensorStyle::dtensor))
                .find("ColwiseParallel currently only support nn.Linear and nn.Embedding!"),
            std::string::npos);
  TrainingDescription odd = split_training(2, TensorStyle::dtensor, true);
  odd.sequence_length = 31;
  EXPECT_NE(why(kDecoder, odd).find("the 31 tokens of a sequence are not divided by 2 ranks"), std::string::npos);
  EXPECT_EQ(why(kDecoder, split_training(16, TensorStyle::by_hand)),
            "16 does not divide the 8 heads: allowed are divisors of 8");
}

// Experts of a rank are those of its neighbours in tensor, which have other columns of them.
TEST(SplitStack, experts_over_data_ranks_are_split_over_tensor_ranks_too) {
  const std::int64_t of_experts = kSplitLayers * 8 * 3 * kSplitHidden * 96;
  const auto run = [](std::int64_t tensor, std::int64_t expert, double capacity) {
    TrainingDescription t = split_training(tensor, TensorStyle::by_hand);
    t.parallel.data = 4;
    t.parallel.expert = expert;
    t.parallel.expert_capacity = capacity;
    return split_run(kExperts, t);
  };
  for (const double capacity : {0.0, 1.0}) {
    const OpTrace whole = run(2, 1, 0.0), spread = run(2, 4, capacity), alone = run(1, 4, capacity);
    EXPECT_EQ(whole.parameters - spread.parameters, of_experts / 2 * 3 / 4);
    // As many rows go to experts of other ranks as without tensor ranks: each of those sends all of them.
    EXPECT_EQ(sent(spread, GroupKind::expert), sent(alone, GroupKind::expert));
    auto among = sent(spread, GroupKind::tensor);
    EXPECT_EQ(among[CollectiveKind::all_reduce], sent(whole, GroupKind::tensor)[CollectiveKind::all_reduce]);
  }
}

}  // namespace
}  // namespace ridgeline
