// DistributedDataParallel sends what a network keeps besides parameters before its forward passes.
#include <gtest/gtest.h>

#include "sim/workload/training_step.h"
#include "tests/support/last_step.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kTable = 128;

ModelDescription network_with(ModelFamily family) {
  ModelDescription model;
  model.family = family;
  model.layers = 2;
  model.heads = 4;
  model.hidden = 64;
  model.vocabulary = 1000;
  model.max_positions = kTable;
  if (family == ModelFamily::bert) model.head = ModelHead::masked_lm;
  return model;
}

TrainingDescription replicated() {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 32;
  t.parallel.data = 4;
  return t;
}

std::vector<std::int64_t> broadcasts(const ModelDescription& model, const TrainingDescription& t,
                                     AttentionChoice attention = AttentionChoice::efficient) {
  std::vector<std::int64_t> bytes;
  for (const Collective& c : testing_support::last_step_of<Collective>(training_run(model, t, attention)))
    if (c.kind == CollectiveKind::broadcast) bytes.push_back(c.bytes);
  return bytes;
}

// BERT's positions and types of tokens, both int64: one broadcast of a copy.
TEST(BroadcastBuffers, are_sent_together_before_each_forward_pass) {
  TrainingDescription t = replicated();
  const ModelDescription bert = network_with(ModelFamily::bert);
  EXPECT_EQ(broadcasts(bert, t), std::vector<std::int64_t>{2 * 8 * kTable});
  t.gradient_accumulation = 3;
  EXPECT_EQ(broadcasts(bert, t).size(), 3u);
  t.parallel.no_sync = true;  // once a step: before the first pass behind one that exchanged gradients
  EXPECT_EQ(broadcasts(bert, t).size(), 1u);
  t.parallel.broadcast_buffers = false;
  EXPECT_TRUE(broadcasts(bert, t).empty());
}

TEST(BroadcastBuffers, of_attention_masks_are_as_many_bytes_as_they_are) {
  const ModelDescription gpt2 = network_with(ModelFamily::gpt2);
  EXPECT_EQ(broadcasts(gpt2, replicated(), AttentionChoice::eager), std::vector<std::int64_t>{2 * 4 * kTable * kTable});
  EXPECT_TRUE(broadcasts(gpt2, replicated()).empty());  // fused attention keeps no mask
}

// 250 MiB at a time: a third mask of 128 MiB does not go with the first two.
TEST(BroadcastBuffers, are_put_together_up_to_a_limit) {
  ModelDescription gpt2 = network_with(ModelFamily::gpt2);
  gpt2.max_positions = 5800;
  gpt2.layers = 3;
  const std::int64_t mask = 4 * gpt2.max_positions * gpt2.max_positions;
  EXPECT_EQ(broadcasts(gpt2, replicated(), AttentionChoice::eager), (std::vector<std::int64_t>{2 * mask, mask}));
}

// Each forward pass of a stage runs under no_sync.
TEST(BroadcastBuffers, of_the_stages_of_a_pipeline_stay_where_they_are) {
  TrainingDescription t = replicated();
  t.parallel.data = 2;
  t.parallel.pipeline = 2;
  t.parallel.pipeline_rank = 0;
  t.gradient_accumulation = 4;
  EXPECT_TRUE(broadcasts(network_with(ModelFamily::gpt2), t, AttentionChoice::eager).empty());
}

TEST(BroadcastBuffers, are_none_of_fully_shards_business) {
  TrainingDescription t = replicated();
  t.parallel.strategy = DataStrategy::fsdp;
  EXPECT_TRUE(broadcasts(network_with(ModelFamily::bert), t).empty());
}

// A copy back reads what the broadcast wrote: it is waited for before.
TEST(BroadcastBuffers, are_waited_for_before_they_are_copied_back) {
  const OpTrace trace = training_run(network_with(ModelFamily::bert), replicated(), AttentionChoice::efficient);
  std::size_t waits = 0, broadcasts_seen = 0;
  bool waited = true;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end && broadcasts_seen < 2; ++i) {
    const Record& record = trace.records[i];
    if (record.kind == Record::Kind::wait_event) ++waits, waited = true;
    if (record.kind != Record::Kind::op) continue;
    const Op& op = trace.ops[trace.calls[record.index].op];
    if (const auto* c = std::get_if<Collective>(&op)) {
      if (c->kind == CollectiveKind::broadcast) ++broadcasts_seen, waited = false;
    } else if (std::holds_alternative<Embedding>(op)) {
      EXPECT_TRUE(waited) << "the forward pass begins";
      break;
    }
  }
  EXPECT_EQ(broadcasts_seen, 1u);
  EXPECT_GE(waits, 2u);  // of the collective for what was written, and of the network for the collective
}

}  // namespace
}  // namespace ridgeline
