// Stages of a generic transformer: a pipeline runs what the whole network runs, each stage its part.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "sim/units/user_error.h"
#include "sim/workload/composition.h"
#include "sim/workload/families/stage_part.h"
#include "sim/workload/parallel/schedule.h"
#include "sim/workload/training_step.h"
#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::odd_composition;

/// Eight blocks in which something differs from network to network.
const std::map<std::string, std::string>& cut_networks() {
  static const std::map<std::string, std::string> networks = {
      {"learned positions", "layers: 8, positions: learned"},
      {"grouped keys", "layers: 8, positions: rotary, norm: rms, key_value_heads: 1, feed_forward_kind: gated"},
      {"windows", "layers: 8, positions: rotary, window: 2, layer_kinds: [window, full]"},
      {"experts", "layers: 8, positions: rotary, experts: 4, expert_feed_forward: 10, dense_layers: 3"},
      {"parallel residual", "layers: 8, positions: rotary, residual: parallel"},
      {"slopes", "layers: 8, positions: alibi, embedding_norm: true"},
      {"latent keys", "layers: 8, positions: rotary, key_value_rank: 4, rotary_head_dim: 2, value_head_dim: 3"},
      {"encoder",
       "layers: 8, causal: false, norm_place: post, final_norm: false, head: masked-lm, head_transform: true"},
      {"classes", "layers: 8, causal: false, head: sequence-classification, pooler: dense-tanh"},
      {"spans", "layers: 8, causal: false, head: question-answering"},
      {"narrow tables", "layers: 8, positions: learned, embedding_width: 6"},
      {"image",
       "layers: 8, input: image, image_size: 4, patch: 2, class_token: true, extra_tokens: 2, positions: learned, "
       "causal: false, head: image-classification, pooler: first-token"},
      {"image in stages",
       "input: image, image_size: 16, patch: 2, stage_layers: [4, 4], stage_heads: [2, 4], "
       "window_side: 2, causal: false, head: image-classification, pooler: mean"},
      {"decoder beside an image",
       "layers: 4, positions: learned, cross_attention: true, encoder: {layers: 4, input: image, image_size: 4, patch: "
       "2, class_token: true, positions: learned, causal: false, cross_attention: false}"},
      {"decoder beside a recording",
       "layers: 3, positions: learned, cross_attention: true, encoder: {layers: 5, input: audio, audio_bins: 5, "
       "max_positions: 6, positions: learned, causal: false, cross_attention: false}"}};
  return networks;
}

TrainingDescription stage_training(const std::string& network, PipelineSchedule schedule, std::int64_t ranks,
                                   std::int64_t rank) {
  TrainingDescription t = testing_support::odd_training();
  t.micro_batch = 2;
  t.sequence_length = network.starts_with("image") ? 7 : 4;
  t.gradient_accumulation = 4;
  if (ranks == 1) return t;
  t.parallel.pipeline = ranks;
  t.parallel.pipeline_rank = rank;
  t.parallel.schedule = schedule;
  const bool several = schedule == PipelineSchedule::interleaved ||
                       schedule == PipelineSchedule::interleaved_zero_bubble || schedule == PipelineSchedule::zbv;
  t.parallel.virtual_stages = several ? 2 : 1;
  return t;
}

OpTrace stage_run(const std::string& network, PipelineSchedule schedule, std::int64_t ranks, std::int64_t rank) {
  ModelDescription model = network.find(':') == network.npos
                               ? odd_composition(cut_networks().at(network) + ", tie_embeddings: false")
                               : odd_composition(network + ", tie_embeddings: false");
  return training_run(model, stage_training(network, schedule, ranks, rank), AttentionChoice::flash, 2);
}

/// How often each operation of a kind runs in the last step.
template <typename Operation>
void count_ops(const OpTrace& trace, std::map<std::size_t, std::int64_t>& counts) {
  const auto count = [&](StepRange range, std::int64_t times) {
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      if (trace.records[i].kind != Record::Kind::op) continue;
      const Op& op = trace.ops[trace.calls[trace.records[i].index].op];
      if (std::holds_alternative<Operation>(op)) counts[hash_of(op)] += times;
    }
  };
  count(trace.steps.back(), 1);
  for (const RepeatedRange& repeat : trace.repeats)
    if (repeat.records.begin >= trace.steps.back().begin) count(repeat.records, repeat.times - 1);
}

std::int64_t total(const std::map<std::size_t, std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const auto& [hash, count] : counts) sum += count;
  return sum;
}

constexpr PipelineSchedule kEverySchedule[] = {
    PipelineSchedule::gpipe,       PipelineSchedule::one_forward_one_backward,
    PipelineSchedule::interleaved, PipelineSchedule::zb1p,
    PipelineSchedule::zbv,         PipelineSchedule::interleaved_zero_bubble};

TEST(ComposedStages, TogetherMultiplyWhatTheWholeNetworkDoes) {
  for (const auto& [network, keys] : cut_networks())
    for (const PipelineSchedule schedule : kEverySchedule) {
      std::map<std::size_t, std::int64_t> whole, parts, attention, attention_of_parts;
      const OpTrace unsplit = stage_run(network, schedule, 1, 0);
      count_ops<Matmul>(unsplit, whole);
      count_ops<Attention>(unsplit, attention);
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        const OpTrace trace = stage_run(network, schedule, 2, rank);
        count_ops<Matmul>(trace, parts);
        count_ops<Attention>(trace, attention_of_parts);
      }
      // Angles of rotary positions are a product that each stage makes for itself.
      if (keys.find("rotary") == keys.npos) EXPECT_EQ(parts, whole) << network << " " << static_cast<int>(schedule);
      else EXPECT_EQ(parts.size(), whole.size()) << network;
      // A backward kernel whose bias is trained runs for its input, and once more for the bias.
      if (network == "image in stages" && parallel::splits_backward(schedule)) continue;
      // So does the first attention to what a decoder's stage receives, whose queries come of tokens: 4 micro-batches.
      const bool twice = network.starts_with("decoder beside") && parallel::splits_backward(schedule);
      EXPECT_EQ(total(attention_of_parts), total(attention) + (twice ? 4 : 0)) << network;
      if (twice) continue;
      EXPECT_EQ(attention_of_parts, attention) << network << " " << static_cast<int>(schedule);
    }
}

TEST(ComposedStages, HoldEachParameterOnce) {
  for (const auto& [network, keys] : cut_networks())
    for (const std::int64_t ranks : {2, 3, 4}) {
      std::int64_t sum = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        sum += stage_run(network, PipelineSchedule::one_forward_one_backward, ranks, rank).parameters;
      EXPECT_EQ(sum, stage_run(network, PipelineSchedule::gpipe, 1, 0).parameters) << network << " " << ranks;
    }
}

/// Numbers of a step's exchanges, in the order of their starts.
std::vector<std::int64_t> sent_bytes(const OpTrace& trace) {
  std::vector<std::int64_t> bytes;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i)
    if (trace.records[i].kind == Record::Kind::op)
      if (const auto* op = std::get_if<Collective>(&trace.ops[trace.calls[trace.records[i].index].op]))
        bytes.push_back(op->bytes);
  return bytes;
}

// Four blocks each, 2 sequences: behind the decoder's first block, what the encoder gave goes beside hidden states.
TEST(ComposedStages, OfADecoderHandOnWhatItLooksAt) {
  const std::string text =
      "layers: 4, positions: learned, cross_attention: true, target_length: 3, encoder: {layers: 4, "
      "causal: false, cross_attention: false}";
  constexpr std::int64_t kEncoded = 2 * 4 * 12 * 2, kHidden = 2 * 3 * 12 * 2;  // bytes of [2, length, 12] in bf16
  const std::map<std::int64_t, std::set<std::int64_t>> of_rank = {
      {0, {kEncoded}}, {1, {kEncoded}}, {2, {kEncoded, kEncoded + kHidden}}, {3, {kEncoded + kHidden}}};
  std::int64_t parameters = 0;
  for (const auto& [rank, expected] : of_rank) {
    const OpTrace trace = stage_run(text, PipelineSchedule::gpipe, 4, rank);
    const std::vector<std::int64_t> bytes = sent_bytes(trace);
    EXPECT_EQ(std::set<std::int64_t>(bytes.begin(), bytes.end()), expected) << rank;
    parameters += trace.parameters;
  }
  // The decoder's stage has a copy of the table of tokens that both read.
  EXPECT_EQ(parameters, stage_run(text, PipelineSchedule::gpipe, 1, 0).parameters + 17 * 12);
}

TEST(ComposedStages, GiveBackInAStepWhatTheyTake) {
  for (const auto& [network, keys] : cut_networks())
    for (const PipelineSchedule schedule : kEverySchedule)
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        const OpTrace trace = stage_run(network, schedule, 2, rank);
        std::int64_t held = 0;
        for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
          const Record& record = trace.records[i];
          if (record.kind == Record::Kind::allocate) held += trace.storages[record.index].bytes;
          if (record.kind == Record::Kind::free) held -= trace.storages[record.index].bytes;
        }
        EXPECT_EQ(held, 0) << network << " " << static_cast<int>(schedule) << " rank " << rank;
      }
}

// A table of distances that all layers read: its gradient comes of them in one call of the engine, or not at all.
TEST(ComposedStages, PartedBackwardPassesReachWhatLayersShare) {
  const std::string keys =
      "layers: 8, causal: false, attention_code: written-out, positions: disentangled, position_rows: 8, "
      "position_terms: [content-to-position, position-to-content], position_norm: true, head: masked-lm";
  for (const PipelineSchedule schedule : {PipelineSchedule::zb1p, PipelineSchedule::zbv}) {
    std::map<std::size_t, std::int64_t> parted, whole;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      count_ops<Matmul>(stage_run(keys, schedule, 2, rank), parted);
      count_ops<Matmul>(stage_run(keys,
                                  schedule == PipelineSchedule::zbv ? PipelineSchedule::interleaved
                                                                    : PipelineSchedule::one_forward_one_backward,
                                  2, rank),
                        whole);
    }
    EXPECT_EQ(parted, whole) << static_cast<int>(schedule);
  }
}

TEST(ComposedStages, WithOtherKindsOfBlocksAreOtherClasses) {
  const ModelDescription model = odd_composition(cut_networks().at("experts"));  // three blocks without
  const auto kinds = [&](std::int64_t first, std::int64_t last) {
    return families::kinds_of_blocks(model, {first, last});
  };
  EXPECT_EQ(kinds(0, 2), kinds(1, 3));
  EXPECT_EQ(kinds(3, 5), kinds(6, 8));
  EXPECT_NE(kinds(1, 3), kinds(2, 4));
}

}  // namespace
}  // namespace ridgeline
