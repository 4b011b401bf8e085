// Stages of a pipeline whose layers tensor parallel ranks share, whose experts are spread over ranks, or beside whose
// frozen layers adapters are trained: together they are the network without stages.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kStagedRows = 2, kStagedTokens = 32, kStagedHidden = 64, kStagedPasses = 2;

const std::map<std::string, std::string>& staged_kinds() {
  static const std::string shared =
      "vocabulary: 1000, qkv_bias: false, output_bias: false, feed_forward_bias: false, positions: rotary, norm: rms, "
      "feed_forward_kind: gated, activation: silu";
  static const std::map<std::string, std::string> kinds{
      {"decoder", shared + ", key_value_heads: 4"},
      {"experts", shared + ", experts: 8, expert_feed_forward: 96, shared_feed_forward: 48"},
      {"latent attention", shared + ", key_value_rank: 32, query_rank: 24, rotary_head_dim: 8, value_head_dim: 8"},
      {"masked language model",
       "vocabulary: 1000, causal: false, head: masked-lm, positions: learned, max_positions: 32, embedding_norm: true, "
       "head_transform: true, head_bias: true"},
      {"plain decoder", shared + ", code: plain, rotary_style: complex, grouping: copied, key_value_heads: 4"},
      {"layers of BERT",
       "vocabulary: 1000, causal: false, head: masked-lm, positions: learned, max_positions: 32, embedding_norm: true, "
       "type_vocabulary: 2, norm_place: post, final_norm: false, output_modules: true, activation_adds_bias: true, "
       "head_transform: true, head_bias: true"},
      {"classes",
       "vocabulary: 1000, causal: false, head: sequence-classification, pooler: dense-tanh, positions: "
       "learned, max_positions: 32"}};
  return kinds;
}

ModelDescription staged_model(const std::string& kind) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 4, heads: 8, hidden: 64, feed_forward: 256, tie_embeddings: false, " +
          staged_kinds().at(kind) + "}",
      "m.yaml");
  return load_model(config::Value(tree));
}

TrainingDescription staged_training(TensorStyle style, std::int64_t tensor, bool sequence) {
  TrainingDescription t;
  t.micro_batch = kStagedRows;
  t.sequence_length = kStagedTokens;
  t.precision = Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.gradient_accumulation = kStagedPasses;
  t.parallel.tensor = tensor;
  t.parallel.tensor_style = style;
  t.parallel.sequence_parallel = sequence;
  return t;
}

OpTrace staged_run(const std::string& kind, const TrainingDescription& t) {
  OpTrace trace = testing_support::checked(training_run(staged_model(kind), t, AttentionChoice::flash));
  EXPECT_TRUE(trace.repeats.empty());
  return trace;
}

struct Totals {
  std::int64_t parameters = 0, trained_bytes = 0;
  double products = 0.0;
  std::map<GroupKind, std::int64_t> bytes;  ///< exchanged in the last step
};

void add_to(Totals& totals, const OpTrace& trace) {
  totals.parameters += trace.parameters;
  for (const Matmul& one : testing_support::last_step_of<Matmul>(trace))
    if (one.k > 1)  // angles of positions are each stage's own
      totals.products += static_cast<double>(one.batch) * static_cast<double>(one.m) * static_cast<double>(one.n) *
                         static_cast<double>(one.k);
  for (const Collective& one : testing_support::last_step_of<Collective>(trace)) totals.bytes[one.group] += one.bytes;
}

Totals of_stages(const std::string& kind, TrainingDescription t, PipelineSchedule schedule) {
  t.parallel.pipeline = 2;
  t.parallel.schedule = schedule;
  t.parallel.virtual_stages = schedule == PipelineSchedule::zbv ? 2 : 1;
  Totals totals;
  for (t.parallel.pipeline_rank = 0; t.parallel.pipeline_rank < t.parallel.pipeline; ++t.parallel.pipeline_rank)
    add_to(totals, staged_run(kind, t));
  return totals;
}

Totals whole(const std::string& kind, const TrainingDescription& t) {
  Totals totals;
  add_to(totals, staged_run(kind, t));
  return totals;
}

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                                           PipelineSchedule::zb1p, PipelineSchedule::zbv};

TEST(SplitStages, together_hold_compute_and_exchange_what_a_tensor_parallel_rank_does) {
  for (const auto& [kind, keys] : staged_kinds())
    for (const TensorStyle style : {TensorStyle::by_hand, TensorStyle::dtensor})
      for (const bool sequence : {false, true}) {
        if (sequence && style == TensorStyle::by_hand) continue;
        const TrainingDescription t = staged_training(style, 2, sequence);
        const Totals one = whole(kind, t);
        for (const PipelineSchedule schedule : kSchedules) {
          SCOPED_TRACE(kind + (style == TensorStyle::by_hand ? " by hand " : " ") + std::to_string(int(schedule)));
          const Totals all = of_stages(kind, t, schedule);
          EXPECT_EQ(all.parameters, one.parameters);
          EXPECT_DOUBLE_EQ(all.products, one.products);
          EXPECT_EQ(all.bytes.at(GroupKind::tensor), one.bytes.at(GroupKind::tensor));
        }
      }
}

// Between layers a rank has its part of the sequence, and sends that.
TEST(SplitStages, hand_on_their_part_of_the_sequence) {
  const auto handed_on = [](bool sequence) {
    return of_stages("decoder", staged_training(TensorStyle::dtensor, 2, sequence),
                     PipelineSchedule::one_forward_one_backward)
        .bytes.at(GroupKind::pipeline);
  };
  EXPECT_EQ(handed_on(false) % (kStagedRows * kStagedTokens * kStagedHidden * 2), 0);
  EXPECT_EQ(handed_on(false), 2 * handed_on(true));
}

TEST(SplitStages, train_adapters_beside_their_frozen_layers) {
  for (const auto& [kind, keys] : staged_kinds())
    for (const std::int64_t tensor : {1, 2})
      for (const PipelineSchedule schedule : kSchedules) {
        SCOPED_TRACE(kind + " " + std::to_string(int(schedule)));
        TrainingDescription t = staged_training(TensorStyle::dtensor, tensor, false);
        t.lora = LoraDescription{.rank = 4};
        const Totals one = whole(kind, t), all = of_stages(kind, t, schedule);
        EXPECT_EQ(all.parameters, one.parameters);
        // Gradients that stages hand back reach no further than the first adapter where there are no stages.
        EXPECT_GE(all.products, one.products);
        EXPECT_LE(all.products,
                  of_stages(kind, staged_training(TensorStyle::dtensor, tensor, false), schedule).products * 1.2);
      }
}

TEST(SplitStages, send_tokens_to_experts_of_ranks_as_the_network_does) {
  TrainingDescription t = staged_training(TensorStyle::by_hand, 1, false);
  t.parallel.data = t.parallel.expert = 4;
  t.parallel.no_sync = true;
  const Totals one = whole("experts", t);
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward}) {
    const Totals all = of_stages("experts", t, schedule);
    EXPECT_EQ(all.parameters, one.parameters);
    EXPECT_EQ(all.bytes.at(GroupKind::expert), one.bytes.at(GroupKind::expert));
  }
}

// Experts are sharded over the ranks that hold the same, or stay whole where there is one.
TEST(SplitStages, shard_experts_apart) {
  for (const std::int64_t expert : {2, 4})
    for (const bool lora : {false, true}) {
      TrainingDescription t = staged_training(TensorStyle::dtensor, 2, true);
      t.parallel.data = 4;
      t.parallel.expert = expert;
      t.parallel.strategy = DataStrategy::fsdp;
      if (lora) t.lora = LoraDescription{.rank = 4};
      const Totals one = whole("experts", t), all = of_stages("experts", t, PipelineSchedule::one_forward_one_backward);
      EXPECT_EQ(all.parameters, one.parameters);
      EXPECT_EQ(all.bytes.at(GroupKind::expert), one.bytes.at(GroupKind::expert));
    }
}

// Ranks that share sequences see other tokens, as data parallel ones do.
TEST(SplitStages, experts_are_spread_over_ranks_that_share_sequences_too) {
  TrainingDescription data = staged_training(TensorStyle::by_hand, 1, false), context = data;
  data.parallel.data = data.parallel.expert = context.parallel.expert = 4;
  context.parallel.data = context.parallel.context = 2;
  context.micro_batch = 2 * data.micro_batch;
  const Totals of_data = whole("experts", data), of_context = whole("experts", context);
  EXPECT_EQ(of_context.parameters, of_data.parameters);
  EXPECT_EQ(of_context.bytes.at(GroupKind::expert), of_data.bytes.at(GroupKind::expert));
}

}  // namespace
}  // namespace ridgeline
