// A trace in the pattern of another one is, to the byte, the trace that is made whole.
#include "sim/workload/trace_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "sim/units/user_error.h"
#include "sim/workload/training_step.h"
#include "tests/support/draws.h"
#include "tests/support/small_networks.h"

namespace ridgeline {
namespace {

using testing_support::changing_seed;
using testing_support::Draws;

auto fields(const Storage& s) { return std::tuple(s.bytes, s.category, s.layer, s.stream, s.module); }
auto fields(const Operand& o) { return std::tuple(o.storage, o.bytes); }
auto fields(const Record& r) { return std::tuple(r.kind, r.host_class, r.stream, r.index); }
auto fields(const StepRange& r) { return std::tuple(r.begin, r.end); }
auto fields(const RepeatedRange& r) { return std::tuple(r.records.begin, r.records.end, r.times); }
auto fields(const ModuleName& m) { return std::tuple(m.name, m.parent); }
auto fields(const Call& c) {
  return std::tuple(c.op, c.operands_begin, c.inputs, c.outputs, c.phase, c.stream, c.layer, c.module);
}

template <class T>
void expect_same(const std::vector<T>& a, const std::vector<T>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(fields(a[i]), fields(b[i])) << what << " " << i;
}

void expect_same(const OpTrace& a, const OpTrace& b) {
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < a.ops.size(); ++i)
    ASSERT_EQ(a.ops[i], b.ops[i]) << shape_of(a.ops[i]) << " " << shape_of(b.ops[i]);
  expect_same(a.storages, b.storages, "storage");
  expect_same(a.operands, b.operands, "operand");
  expect_same(a.calls, b.calls, "call");
  expect_same(a.records, b.records, "record");
  expect_same(a.steps, b.steps, "step");
  expect_same(a.repeats, b.repeats, "repeat");
  expect_same(a.modules, b.modules, "module");
  EXPECT_EQ(a.compiled_ranges.size(), b.compiled_ranges.size());
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.parameter_tensors, b.parameter_tensors);
  EXPECT_EQ(a.model_flops, b.model_flops);
  EXPECT_EQ(a.notes, b.notes);
}

std::optional<TracePattern> pattern_of(const ModelDescription& model, const TrainingDescription& training,
                                       AttentionChoice attention) {
  return TracePattern::of(std::make_shared<const OpTrace>(training_run(model, training, attention)),
                          TracePattern::part_of(model, training, attention));
}
std::optional<OpTrace> made_by(const TracePattern& pattern, const ModelDescription& model,
                               const TrainingDescription& training, AttentionChoice attention) {
  return pattern.at(model, training, TracePattern::part_of(model, training, attention));
}

template <class T>
T one_of(Draws& draws, std::initializer_list<T> choices) {
  return choices.begin()[draws.index(choices.size())];
}
std::int64_t between(Draws& draws, double low, double high) {
  return static_cast<std::int64_t>(draws.between(low, high + 0.99));
}

ModelDescription random_model(Draws& draws) {
  ModelDescription model;
  model.family = one_of(draws, {ModelFamily::gpt2, ModelFamily::bert, ModelFamily::llama});
  model.layers = between(draws, 6, 9);
  model.heads = one_of(draws, {2, 4, 6});
  model.hidden = model.heads * one_of(draws, {16, 64});
  model.feed_forward = draws.index(2) == 0 ? 0 : between(draws, 40, 300);
  model.vocabulary = between(draws, 100, 2000);
  model.max_positions = 512;
  model.dropout = one_of(draws, {0.0, 0.1});
  model.attention_dropout = one_of(draws, {0.0, 0.1});
  model.bias = draws.index(2) == 0;
  model.tie_embeddings = draws.index(2) == 0;
  model.plain = draws.index(2) == 0;
  if (model.family == ModelFamily::llama) {
    model.activation = Activation::swiglu;
    model.key_value_heads = one_of(draws, {0, 2});
    model.dropout = model.attention_dropout = 0.0;
  }
  if (model.family == ModelFamily::bert) {
    model.bias = true;
    model.head = one_of(draws, {ModelHead::masked_lm, ModelHead::pretraining, ModelHead::question_answering});
  }
  return model;
}

TrainingDescription random_training(Draws& draws) {
  TrainingDescription training;
  training.micro_batch = between(draws, 1, 40);
  training.sequence_length = between(draws, 1, 500);
  training.gradient_accumulation = one_of(draws, {1, 1, 2, 20});
  training.precision =
      one_of(draws, {Precision::fp32, Precision::amp_fp16, Precision::amp_bf16, Precision::bf16, Precision::apex_o2});
  training.optimizer.kind = one_of(draws, {OptimizerKind::adamw, OptimizerKind::sgd_momentum, OptimizerKind::none});
  if (training.optimizer.kind != OptimizerKind::none)
    training.optimizer.implementation = one_of(
        draws, {OptimizerImplementation::for_loop, OptimizerImplementation::foreach, OptimizerImplementation::fused});
  if (draws.index(2) == 0 && training.optimizer.kind != OptimizerKind::none) training.gradient_clipping = 1.0;
  if (draws.index(3) == 0) training.activation_checkpointing = ActivationCheckpointing::block;
  if (draws.index(4) == 0) training.activation_offload = ActivationOffload::pinned;
  training.reads_loss = one_of(draws, {LossRead::never, LossRead::step});
  training.keep_gradients = draws.index(3) == 0;
  return training;
}

TEST(TracePattern, GivesWhatATraceMadeWholeIs) {
  const std::uint64_t seed = changing_seed();
  int followed = 0, refused = 0, run = 0;
  for (std::uint64_t network = 0; network < 120; ++network) {
    Draws draws(seed + network);
    const ModelDescription model = random_model(draws);
    TrainingDescription training = random_training(draws);
    const auto attention = one_of(draws, {AttentionChoice::eager, AttentionChoice::flash, AttentionChoice::math});
    SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed << ", network " << network);
    ASSERT_TRUE(TracePattern::applies(model, training));
    std::optional<TracePattern> pattern;
    try {
      pattern = pattern_of(model, training, attention);
    } catch (const UserError&) {
      continue;  // no such network
    }
    ++run;
    if (!pattern) {
      ++refused;
      continue;
    }
    for (int size = 0; size < 3; ++size) {
      training.micro_batch = between(draws, 1, 40);
      if (size > 0) training.sequence_length = between(draws, 1, 500);
      const std::optional<OpTrace> made = made_by(*pattern, model, training, attention);
      if (!made) continue;
      ++followed;
      expect_same(*made, training_run(model, training, attention));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(run, 40);
  EXPECT_GT(followed, run) << "patterns that hold nowhere gain nothing";
  RecordProperty("followed", followed);
  RecordProperty("refused", refused);
}

ModelDescription six_blocks() {
  ModelDescription model = testing_support::small_network(ModelFamily::gpt2, 200);
  model.layers = 6;
  model.max_positions = 128;
  return model;
}

TEST(TracePattern, SizesThatChangeTheOrderOfRecordsAreNotFollowed) {
  const ModelDescription model = six_blocks();
  TrainingDescription training;
  training.micro_batch = 4;
  training.sequence_length = 32;
  training.data_loader = DataLoader::tensor_dataset;  // the host takes sequence by sequence
  const auto pattern = pattern_of(model, training, AttentionChoice::eager);
  ASSERT_TRUE(pattern);
  const auto same = made_by(*pattern, model, training, AttentionChoice::eager);
  ASSERT_TRUE(same);
  expect_same(*same, training_run(model, training, AttentionChoice::eager));
  training.micro_batch = 5;
  EXPECT_FALSE(made_by(*pattern, model, training, AttentionChoice::eager));
}

TEST(TracePattern, OperationsThatAreEqualAtSomeSizesHaveOneEntryThere) {
  ModelDescription model = six_blocks();
  model.dropout = model.attention_dropout = 0.1;
  TrainingDescription training;
  training.micro_batch = 3;
  training.sequence_length = 24;
  const auto pattern = pattern_of(model, training, AttentionChoice::eager);
  ASSERT_TRUE(pattern);
  // Scores of 4 heads x 16 tokens are as many as hidden states: both dropouts are of one shape.
  training.sequence_length = 16;
  const auto made = made_by(*pattern, model, training, AttentionChoice::eager);
  ASSERT_TRUE(made);
  expect_same(*made, training_run(model, training, AttentionChoice::eager));
  training.sequence_length = 24;
  EXPECT_LT(made->ops.size(), training_run(model, training, AttentionChoice::eager).ops.size());
}

TEST(TracePattern, IsOnlyOfManyEqualBlocks) {
  ModelDescription model;
  model.layers = 24;
  TrainingDescription training;
  EXPECT_TRUE(TracePattern::applies(model, training));
  training.checkpointed_every = 2;
  EXPECT_FALSE(TracePattern::applies(model, training));
  training.checkpointed_every = 1;
  training.parallel.data = 2;
  EXPECT_FALSE(TracePattern::applies(model, training));
  training.parallel.data = 1;
  model.family = ModelFamily::composed;  // blocks of a composition may differ
  EXPECT_FALSE(TracePattern::applies(model, training));
  model.family = ModelFamily::gpt2;
  model.layers = 3;
  EXPECT_FALSE(TracePattern::applies(model, training));
}

}  // namespace
}  // namespace ridgeline
