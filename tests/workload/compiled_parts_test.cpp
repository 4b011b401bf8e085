// torch.compile inside DistributedDataParallel: where the graph is cut, when gradients arrive, and whose memory is
// whose.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/compile/compile_trace.h"
#include "sim/workload/load_model.h"
#include "sim/workload/parallel/graph_split.h"
#include "sim/workload/training_step.h"
#include "tests/support/live_storages.h"

namespace ridgeline {
namespace {

constexpr int kSmCount = 132;

ModelDescription gpt2(std::int64_t layers, std::int64_t hidden) {
  ModelDescription model;
  model.family = ModelFamily::gpt2;
  model.layers = layers;
  model.heads = hidden / 64;
  model.hidden = hidden;
  model.vocabulary = 50304;
  model.max_positions = 1024;
  model.activation = Activation::gelu_tanh;
  return model;
}

TrainingDescription training(std::int64_t ranks) {
  TrainingDescription t;
  t.micro_batch = 2;
  t.sequence_length = 128;
  t.precision = Precision::amp_bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.data = ranks;
  t.parallel.compiled = ranks > 1;
  return t;
}

OpTrace compiled(const ModelDescription& model, const TrainingDescription& t) {
  return compile::compile_trace(training_run(model, t, AttentionChoice::flash), kSmCount);
}

std::vector<std::int64_t> bytes_sent(const OpTrace& trace) {
  std::vector<std::int64_t> result;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    if (const auto* c = std::get_if<Collective>(&trace.ops[trace.calls[record.index].op])) result.push_back(c->bytes);
  }
  return result;
}

// measurements/h200/parallel/further_steps.jsonl.gz: tensors 136 to 147 of GPT-2, one part's, as PyTorch's reducer
// logged them; the part before stands behind the first product's and the projection's weights.
TEST(CompiledParts, gradients_of_a_part_arrive_as_pytorch_logged_them) {
  constexpr std::size_t kEarlier = parallel::GraphPart::kEarlier;
  const parallel::GraphPart part{0, {136, 137, 138, 139, kEarlier, 140, 141, 142, 143, 144, 145, 146, 147}};
  EXPECT_EQ(parallel::order_of_arrival(part),
            (std::vector<std::size_t>{136, 138, 141, 147, 146, 145, 140, 143, 142, 137, 139, 144}));
}

// The same row: fourteen buckets, of which twelve hold a block from its first product to the next block's first norm.
TEST(CompiledParts, buckets_of_gpt2_are_those_pytorch_logged) {
  TrainingDescription t = training(2);
  t.parallel.bucket_cap = std::int64_t{25} << 20;
  const OpTrace trace = compiled(gpt2(12, 768), t);
  std::vector<std::int64_t> expected(12, 28351488);
  expected.insert(expected.end(), {154533888, 3151872});
  EXPECT_EQ(bytes_sent(trace), expected);
}

TEST(CompiledParts, a_smaller_bucket_makes_more_of_them) {
  TrainingDescription t = training(2);
  const ModelDescription model = gpt2(2, 256);
  std::size_t before = 0;
  for (const std::int64_t cap : {std::int64_t{64} << 20, std::int64_t{4} << 20, std::int64_t{1} << 20}) {
    t.parallel.bucket_cap = cap;
    const OpTrace eager = training_run(model, t, AttentionChoice::flash);
    EXPECT_GE(eager.compiled_ranges.size(), before) << cap;
    before = eager.compiled_ranges.size();
    std::int64_t sum = 0;
    for (const std::int64_t bytes : bytes_sent(compile::compile_trace(eager, kSmCount))) sum += bytes;
    EXPECT_EQ(sum, 4 * eager.parameters) << cap;
  }
  EXPECT_GE(before, 8u);
}

/// What lives after the last step, and no storage freed twice or before it is made.
std::int64_t alive(const OpTrace& trace) {
  std::set<StorageId> live;
  std::int64_t bytes = 0;
  for (const Record& record : trace.records) {
    if (record.kind == Record::Kind::allocate) {
      EXPECT_TRUE(live.insert(record.index).second) << record.index;
      bytes += trace.storages[record.index].bytes;
    }
    if (record.kind == Record::Kind::free) {
      EXPECT_EQ(live.erase(record.index), 1u) << record.index;
      bytes -= trace.storages[record.index].bytes;
    }
  }
  return bytes;
}

TEST(CompiledParts, end_what_they_make) {
  const ModelDescription model = gpt2(3, 256);
  TrainingDescription t = training(2);
  t.parallel.bucket_cap = std::int64_t{2} << 20;
  for (const std::int64_t batches : {1, 2}) {
    t.gradient_accumulation = batches;
    OpTrace eager = training_run(model, t, AttentionChoice::flash);
    ASSERT_GT(eager.compiled_ranges.size(), 3u * static_cast<std::size_t>(batches));
    const std::int64_t before = alive(eager);
    EXPECT_EQ(alive(compile::compile_trace(std::move(eager), kSmCount)), before) << batches;
  }
}

// The head's weight alone fills the first bucket, of 1 MiB whatever the limit of the others is.
// The gradient of a single sequence's positions is that of the first block's input, which the patches' gradients go on
// from.
TEST(CompiledParts, go_on_from_a_sum_that_is_a_parameters_gradient_too) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 1, heads: 2, hidden: 128, feed_forward: 1568, input: image, patch: 14, image_size: "
      "70, "
      "class_token: false, head: image-classification, pooler: mean, causal: false, positions: learned, "
      "tie_embeddings: "
      "false}",
      "m.yaml");
  const ModelDescription model = load_model(config::Value(tree));
  for (const std::int64_t sequences : {1, 2}) {
    TrainingDescription t = training(2);
    t.micro_batch = sequences;
    t.sequence_length = 25;
    t.precision = Precision::fp32;
    const OpTrace trace = compile::compile_trace(training_run(model, t, AttentionChoice::efficient), kSmCount);
    std::set<StorageId> made;  // before anything reads it
    for (const Record& record : trace.records) {
      if (record.kind == Record::Kind::allocate) made.insert(record.index);
      if (record.kind != Record::Kind::op) continue;
      const Call& call = trace.calls[record.index];
      for (std::uint32_t i = 0; i < call.inputs; ++i)
        EXPECT_TRUE(made.contains(trace.operands[call.operands_begin + i].storage)) << sequences;
    }
  }
}

TEST(CompiledParts, the_first_bucket_is_full_at_a_mebibyte) {
  TrainingDescription t = training(2);
  t.parallel.bucket_cap = std::int64_t{1} << 40;
  const OpTrace cut = training_run(gpt2(2, 256), t, AttentionChoice::flash);
  EXPECT_EQ(cut.compiled_ranges.size(), 2 * cut.steps.size());
  EXPECT_TRUE(cut.compiled_ranges[0].is_part());
  EXPECT_FALSE(training_run(gpt2(2, 256), training(1), AttentionChoice::flash).compiled_ranges.front().is_part());
}

// The residual stream of a part whose norm casts it: the eager pass keeps the cast, the compiled one casts it again,
// long after the parts behind are done with it.
TEST(CompiledParts, read_nothing_that_is_gone) {
  ModelDescription model = gpt2(3, 256);
  model.family = ModelFamily::llama;
  model.feed_forward = 688;
  model.activation = Activation::swiglu;
  model.bias = model.tie_embeddings = false;
  for (const Precision precision : {Precision::bf16, Precision::amp_bf16, Precision::fp32}) {
    TrainingDescription t = training(2);
    t.precision = precision;
    for (const std::int64_t cap : {std::int64_t{1} << 16, std::int64_t{1} << 20, std::int64_t{25} << 20}) {
      t.parallel.bucket_cap = cap;
      OpTrace eager = training_run(model, t, AttentionChoice::flash);
      const std::int64_t before = alive(eager);
      const OpTrace trace = compile::compile_trace(std::move(eager), kSmCount);
      EXPECT_EQ(testing_support::first_inconsistency(trace), "") << cap;
      EXPECT_EQ(alive(trace), before) << cap;
    }
  }
}

/// Bytes of gradients that the last step adds up over the ranks.
std::int64_t bytes_reduced(const OpTrace& trace) {
  std::int64_t reduced = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const auto* c = std::get_if<Collective>(&trace.ops[trace.calls[record.index].op]);
    reduced += c != nullptr && c->kind == CollectiveKind::all_reduce ? c->bytes : 0;
  }
  return reduced;
}

// ZeroRedundancyOptimizer lays the parameters of a rank one behind the other in one storage.
TEST(CompiledParts, find_parameters_that_share_a_storage) {
  const ModelDescription model = gpt2(2, 256);
  std::vector<std::size_t> parts;
  for (const bool views : {false, true}) {
    TrainingDescription t = training(2);
    t.parallel.bucket_cap = std::int64_t{1} << 20;
    t.parallel.strategy = DataStrategy::zero1;
    t.parallel.parameters_as_bucket_view = views;
    const OpTrace eager = training_run(model, t, AttentionChoice::flash);
    parts.push_back(eager.compiled_ranges.size());
    const OpTrace trace = compile::compile_trace(eager, kSmCount);
    EXPECT_EQ(testing_support::first_inconsistency(trace), "") << views;
    EXPECT_EQ(bytes_reduced(trace), 4 * trace.parameters) << views;
  }
  EXPECT_EQ(parts[0], parts[1]);
}

// Of equal sizes in one storage the wrong ones may be found; all gradients are exchanged nevertheless.
TEST(CompiledParts, exchange_all_gradients_whatever_the_order_of_parameters) {
  const config::Node tree = config::parse_yaml(
      "{family: composed, layers: 4, heads: 12, hidden: 384, input: image, patch: 32, image_size: 224, class_token: "
      "true, head: image-classification, pooler: first-token, labels: 5, causal: false, positions: learned, "
      "tie_embeddings: false, norm: rms-plus-one, feed_forward_kind: gated-fused, activation: relu-squared}",
      "m.yaml");
  const ModelDescription model = load_model(config::Value(tree));
  for (const std::int64_t cap : {std::int64_t{1} << 10, std::int64_t{1} << 20}) {
    TrainingDescription t = training(2);
    t.sequence_length = 50;
    t.precision = Precision::bf16;
    t.parallel.bucket_cap = cap;
    t.parallel.strategy = DataStrategy::zero1;
    t.parallel.parameters_as_bucket_view = true;
    const OpTrace trace = compile::compile_trace(training_run(model, t, AttentionChoice::efficient), kSmCount);
    EXPECT_EQ(testing_support::first_inconsistency(trace), "") << cap;
    EXPECT_EQ(bytes_reduced(trace), 2 * trace.parameters) << cap;
  }
}

}  // namespace
}  // namespace ridgeline
