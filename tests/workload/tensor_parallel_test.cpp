// Layers split over tensor parallel ranks, by hand and as Megatron-LM does it: whose parameters add up to the network,
// what is exchanged a block, what a rank holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"
#include "sim/workload/families/megatron.h"
#include "sim/workload/load_model.h"
#include "sim/workload/training_step.h"
#include "tests/support/operand_sizes.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 32, kHidden = 64, kLayers = 3, kVocabulary = 1000, kPositions = 32;

ModelDescription network(ModelFamily family) {
  ModelDescription model;
  model.family = family;
  model.layers = kLayers;
  model.heads = 8;
  model.hidden = kHidden;
  model.feed_forward = 4 * kHidden;
  model.vocabulary = kVocabulary;
  model.max_positions = kPositions;
  model.bias = family != ModelFamily::llama;
  model.activation = family == ModelFamily::llama ? Activation::swiglu : Activation::gelu_tanh;
  model.tie_embeddings = family != ModelFamily::llama;
  if (family == ModelFamily::llama) {
    model.key_value_heads = 4;
    model.plain = true;
  }
  if (family == ModelFamily::bert) model.head = ModelHead::pretraining;
  return model;
}

TrainingDescription training(std::int64_t tensor, Framework framework = Framework::torch) {
  TrainingDescription t;
  t.micro_batch = kBatch;
  t.sequence_length = kLength;
  t.precision = framework == Framework::megatron ? Precision::amp_bf16 : Precision::bf16;
  t.optimizer.implementation = OptimizerImplementation::fused;
  t.parallel.tensor = tensor;
  t.parallel.tensor_style = TensorStyle::by_hand;
  t.parallel.framework = framework;
  return t;
}

OpTrace run(ModelFamily family, const TrainingDescription& t, AttentionChoice attention = AttentionChoice::flash) {
  return testing_support::checked(training_run(network(family), t, attention));
}

/// Of the last step, between tensor parallel ranks, without those of single numbers and the batch.
std::map<CollectiveKind, std::vector<std::int64_t>> exchanged(const OpTrace& trace) {
  std::map<CollectiveKind, std::vector<std::int64_t>> result;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const auto* c = std::get_if<Collective>(&trace.ops[trace.calls[record.index].op]);
    if (c != nullptr && c->group == GroupKind::tensor && c->bytes >= kBatch * kLength * kHidden)
      result[c->kind].push_back(c->bytes);
  }
  return result;
}

std::int64_t held(const OpTrace& trace, Category category) {
  std::int64_t sum = 0;
  for (const Storage& storage : trace.storages) sum += storage.category == category ? storage.bytes : 0;
  return sum;
}

constexpr std::int64_t kActivations = kBatch * kLength * kHidden * 2;  // bytes of 16-bit ones

TEST(TensorParallel, one_rank_is_the_network_to_the_record) {
  const OpTrace one = run(ModelFamily::gpt2, training(1));
  TrainingDescription plain = training(1);
  plain.parallel = ParallelDescription{};
  const OpTrace same = run(ModelFamily::gpt2, plain);
  EXPECT_EQ(one.records.size(), same.records.size());
  EXPECT_EQ(one.parameters, same.parameters);
  EXPECT_TRUE(one.streams.empty());
  EXPECT_TRUE(exchanged(one).empty());
}

TEST(TensorParallel, parameters_of_all_ranks_are_those_of_the_network) {
  // Whole on every rank: tables, norms, and the bias behind a sum over ranks.
  const std::int64_t norms = (2 * kLayers + 1) * 2 * kHidden;
  const std::int64_t whole_gpt = (kVocabulary + kPositions) * kHidden + norms + kLayers * 2 * kHidden;
  const std::int64_t whole_llama = 2 * kVocabulary * kHidden + norms / 2;
  for (const auto& [family, whole] :
       {std::pair{ModelFamily::gpt2, whole_gpt}, std::pair{ModelFamily::llama, whole_llama}}) {
    const std::int64_t all = run(family, training(1)).parameters;
    for (const std::int64_t ranks : {2, 4})
      EXPECT_EQ(ranks * (run(family, training(ranks)).parameters - whole), all - whole) << ranks;
  }
}

TEST(TensorParallel, megatron_splits_the_vocabulary_too_and_pads_it) {
  EXPECT_EQ(families::padded_vocabulary(50257, 1), 50304);
  EXPECT_EQ(families::padded_vocabulary(50257, 8), 51200);
  EXPECT_EQ(families::padded_vocabulary(51200, 2), 51200);
  const std::int64_t whole = kPositions * kHidden + (2 * kLayers + 1) * 2 * kHidden + kLayers * 2 * kHidden;
  const std::int64_t padding = (1024 - kVocabulary) * kHidden;
  const std::int64_t all = run(ModelFamily::gpt2, training(1)).parameters;
  for (const std::int64_t ranks : {2, 4})
    EXPECT_EQ(ranks * (run(ModelFamily::gpt2, training(ranks, Framework::megatron)).parameters - whole),
              all + padding - whole)
        << ranks;
}

TEST(TensorParallel, by_hand_adds_up_twice_a_block_and_pass) {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama, ModelFamily::bert}) {
    auto plain = exchanged(run(family, training(2)));
    EXPECT_EQ(plain.size(), 1u);
    EXPECT_EQ(plain[CollectiveKind::all_reduce], std::vector<std::int64_t>(4 * kLayers, kActivations));
  }
  // Blocks run again stop before the last sum, which nothing of the backward pass reads.
  TrainingDescription again = training(2);
  again.activation_checkpointing = ActivationCheckpointing::block;
  EXPECT_EQ(exchanged(run(ModelFamily::gpt2, again))[CollectiveKind::all_reduce].size(), 5u * kLayers);
}

ModelDescription stack_of_yaml(const std::string& keys) {
  const config::Node tree = config::parse_yaml("{family: composed, layers: 3, heads: 8, hidden: 64, " + keys, "m.yaml");
  return load_model(config::Value(tree));
}

TEST(TensorParallel, a_network_of_blocks_is_split_as_the_family_it_equals) {
  const ModelDescription gpt = stack_of_yaml(
      "feed_forward: 256, vocabulary: 1000, max_positions: 32, positions: learned, activation: gelu-tanh, projection: "
      "fused, tie_embeddings: true}");
  for (const std::int64_t ranks : {1, 2, 4}) {
    const OpTrace trace = training_run(gpt, training(ranks), AttentionChoice::flash),
                  family = run(ModelFamily::gpt2, training(ranks));
    EXPECT_EQ(trace.parameters, family.parameters) << ranks;
    EXPECT_EQ(exchanged(trace), exchanged(family)) << ranks;
    EXPECT_EQ(trace.model_flops, family.model_flops) << ranks;
  }
}

TEST(TensorParallel, a_network_of_blocks_under_dtensor_exchanges_what_a_llama_does) {
  const ModelDescription llama = stack_of_yaml(
      "key_value_heads: 4, feed_forward: 256, vocabulary: 1000, positions: rotary, norm: rms, feed_forward_kind: "
      "gated, "
      "activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: false, tie_embeddings: false}");
  for (const std::int64_t ranks : {2, 4})
    for (const bool sequence : {false, true})
      for (const bool loss : {false, true})
        for (const bool prepared : {false, true}) {
          TrainingDescription t = training(ranks);
          t.parallel.tensor_style = TensorStyle::dtensor;
          t.parallel.sequence_parallel = sequence;
          t.parallel.loss_parallel = loss;
          t.parallel.prepared_inputs = prepared;
          const OpTrace trace = training_run(llama, t, AttentionChoice::flash), family = run(ModelFamily::llama, t);
          EXPECT_EQ(trace.parameters, family.parameters) << ranks;
          EXPECT_EQ(exchanged(trace), exchanged(family)) << ranks << sequence << loss << prepared;
        }
}

TEST(TensorParallel, each_part_of_a_decoder_behind_an_encoder_adds_up) {
  const ModelDescription both = stack_of_yaml(
      "vocabulary: 1000, positions: relative, relative_buckets: 8, norm: rms-t5, cross_attention: true, "
      "tie_embeddings: "
      "true, encoder: {head: none, causal: false}}");
  const OpTrace whole = training_run(both, training(1), AttentionChoice::eager),
                half = training_run(both, training(2), AttentionChoice::eager);
  // Forward and backward of two parts of an encoder's layer and three of a decoder's, whose keys come from outside.
  EXPECT_EQ(exchanged(half)[CollectiveKind::all_reduce],
            std::vector<std::int64_t>((4 + 6 + 1) * kLayers, kActivations));
  EXPECT_LT(half.parameters, whole.parameters);
}

TEST(TensorParallel, dtensor_adds_up_as_often_and_splits_the_vocabulary) {
  TrainingDescription t = training(2);
  t.parallel.tensor_style = TensorStyle::dtensor;
  constexpr std::size_t kOutside = 2;  // rows of the table, gradient of what the logits are made from
  const OpTrace trace = run(ModelFamily::llama, t);
  auto plain = exchanged(trace);
  EXPECT_EQ(plain[CollectiveKind::all_reduce], std::vector<std::int64_t>(4 * kLayers + kOutside, kActivations));
  EXPECT_EQ(plain[CollectiveKind::all_gather], std::vector<std::int64_t>{kBatch * kLength * kVocabulary * 2});
  const std::int64_t norms = (2 * kLayers + 1) * kHidden;
  EXPECT_EQ(2 * (trace.parameters - norms), run(ModelFamily::llama, training(1)).parameters - norms);

  t.parallel.sequence_parallel = t.parallel.loss_parallel = true;
  auto split = exchanged(run(ModelFamily::llama, t));
  EXPECT_FALSE(split.contains(CollectiveKind::all_reduce));
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
    EXPECT_EQ(split[kind], std::vector<std::int64_t>(4 * kLayers + kOutside, kActivations));

  // Each of five projections adds up the gradient of its input instead of the two halves of a block.
  t.parallel.sequence_parallel = t.parallel.loss_parallel = t.parallel.prepared_inputs = false;
  EXPECT_EQ(exchanged(run(ModelFamily::llama, t))[CollectiveKind::all_reduce].size(), 7u * kLayers + kOutside);
}

TEST(TensorParallel, megatron_adds_up_six_times_a_block_that_runs_again) {
  TrainingDescription t = training(4, Framework::megatron);
  constexpr std::size_t kOutside = 2;  // rows of the table, gradient of what the logits are made from
  EXPECT_EQ(exchanged(run(ModelFamily::gpt2, t))[CollectiveKind::all_reduce],
            std::vector<std::int64_t>(4 * kLayers + kOutside, kActivations));
  t.activation_checkpointing = ActivationCheckpointing::block;
  EXPECT_EQ(exchanged(run(ModelFamily::gpt2, t))[CollectiveKind::all_reduce].size(), 6u * kLayers + kOutside);
  t.activation_checkpointing = ActivationCheckpointing::selective;
  EXPECT_EQ(exchanged(run(ModelFamily::gpt2, t, AttentionChoice::eager))[CollectiveKind::all_reduce].size(),
            4u * kLayers + kOutside);
}

/// Collectives of tensor parallel ranks that run beside the default stream.
std::size_t beside(const OpTrace& trace) {
  std::size_t count = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const Call& call = trace.calls[record.index];
    const auto* c = std::get_if<Collective>(&trace.ops[call.op]);
    count += c != nullptr && c->group == GroupKind::tensor && call.stream != 0;
  }
  return count;
}

TEST(TensorParallel, without_asynchronous_all_reduces_megatron_exchanges_as_much_beside_nothing) {
  TrainingDescription t = training(4, Framework::megatron);
  const OpTrace async = run(ModelFamily::gpt2, t);
  EXPECT_EQ(beside(async), 2u * kLayers + 1);
  t.parallel.async_all_reduce = false;
  const OpTrace sync = run(ModelFamily::gpt2, t);
  EXPECT_EQ(beside(sync), 0u);
  EXPECT_EQ(exchanged(sync), exchanged(async));
}

/// Kernels of the last step by name or, where they have none, softmaxes of PyTorch.
std::pair<int, int> softmaxes(const OpTrace& trace) {
  int fused = 0, plain = 0;
  for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
    const Record& record = trace.records[i];
    if (record.kind != Record::Kind::op) continue;
    const Op& op = trace.ops[trace.calls[record.index].op];
    const auto* kernel = std::get_if<FusedKernel>(&op);
    fused += kernel != nullptr && kernel->name.find("masked_softmax") != std::string::npos;
    plain += std::holds_alternative<Softmax>(op);
  }
  return {fused, plain};
}

// megatron/model/fused_softmax.py: the kernel takes multiples of four matrices.
TEST(TensorParallel, scores_of_two_heads_of_one_sequence_go_through_pytorchs_softmax) {
  TrainingDescription t = training(2, Framework::megatron);
  t.micro_batch = 1;
  EXPECT_EQ(softmaxes(run(ModelFamily::gpt2, t, AttentionChoice::eager)), std::pair(2 * int{kLayers}, 0));
  t.parallel.tensor = 4;
  EXPECT_EQ(softmaxes(run(ModelFamily::gpt2, t, AttentionChoice::eager)), std::pair(0, 2 * int{kLayers}));
  t.micro_batch = 2;
  EXPECT_EQ(softmaxes(run(ModelFamily::gpt2, t, AttentionChoice::eager)), std::pair(2 * int{kLayers}, 0));
}

TEST(TensorParallel, layers_of_transformer_engine_keep_no_buffer_of_scores) {
  TrainingDescription t = training(2, Framework::megatron);
  t.gradient_accumulation = 2;
  const OpTrace own = run(ModelFamily::gpt2, t, AttentionChoice::eager);
  EXPECT_GT(held(own, Category::workspaces), 0);
  t.parallel.transformer_engine = true;
  const OpTrace engine = run(ModelFamily::gpt2, t, AttentionChoice::eager);
  EXPECT_EQ(held(engine, Category::workspaces), 0);
  EXPECT_TRUE(engine.transformer_engine);
}

TEST(TensorParallel, products_of_transformer_engine_that_add_up_leave_one_tensor_for_each_size_of_weight) {
  const auto of_feed_forward = [](bool fused) {
    TrainingDescription t = training(2, Framework::megatron);
    t.gradient_accumulation = 2;
    t.parallel.transformer_engine = true;
    t.parallel.gradient_accumulation_fusion = fused;
    const OpTrace trace = run(ModelFamily::gpt2, t);
    return std::count_if(trace.storages.begin(), trace.storages.end(), [](const Storage& storage) {
      return storage.category == Category::gradients && storage.bytes == 2 * 4 * kHidden * kHidden / 2;
    });
  };
  EXPECT_EQ(of_feed_forward(true), 2);  // up and down: as many numbers, but not the same sizes
  EXPECT_GE(of_feed_forward(false), 2 * 2 * kLayers);
}

TEST(TensorParallel, the_gradient_of_transformer_engines_loss_lies_where_the_logits_lay) {
  const auto wide_tensors = [](bool fused) {
    TrainingDescription t = training(2, Framework::megatron);
    t.parallel.transformer_engine = true;
    t.parallel.cross_entropy_fusion = fused;
    const OpTrace trace = run(ModelFamily::gpt2, t);
    const std::int64_t logits = kBatch * kLength * families::padded_vocabulary(kVocabulary, 2) / 2;
    return std::count_if(trace.storages.begin(), trace.storages.end(), [&](const Storage& storage) {
      return storage.bytes == 4 * logits &&
             (storage.category == Category::activations || storage.category == Category::temporaries);
    });
  };
  EXPECT_GT(wide_tensors(false), 0);
  EXPECT_EQ(wide_tensors(true), 0);
}

TEST(TensorParallel, a_split_sequence_exchanges_as_much_in_two_halves_and_gathers_inputs_again) {
  TrainingDescription t = training(4, Framework::megatron);
  t.parallel.sequence_parallel = true;
  auto split = exchanged(run(ModelFamily::gpt2, t));
  // Forward: two gathers and two scatters a block; backward as many, and the inputs of the two products once more.
  EXPECT_EQ(split[CollectiveKind::reduce_scatter].size(), 4u * kLayers + 1);
  EXPECT_EQ(split[CollectiveKind::all_gather].size(), 6u * kLayers + 3);  // logits twice, rows of the table backward
  for (const auto& [kind, all] : split)
    for (const std::int64_t bytes : all) EXPECT_EQ(bytes, kActivations);
}

TEST(TensorParallel, megatron_runs_three_families_and_shares_keys_that_ranks_outnumber) {
  for (const ModelFamily family : {ModelFamily::gpt2, ModelFamily::llama, ModelFamily::bert})
    for (const AttentionChoice attention : {AttentionChoice::eager, AttentionChoice::flash})
      for (const std::int64_t ranks : {1, 2, 8}) {
        TrainingDescription t = training(ranks, Framework::megatron);
        t.gradient_accumulation = 3;
        const OpTrace trace = run(family, t, attention);
        EXPECT_GT(trace.records.size(), 100u);
        EXPECT_EQ(trace.steps.size(), 2u);
      }
}

// Weights 2, gradients 4, copies and two states 12 bytes a parameter; the distributed optimizer cuts the last.
TEST(TensorParallel, megatron_holds_eighteen_bytes_a_parameter) {
  TrainingDescription t = training(2, Framework::megatron);
  const OpTrace one = run(ModelFamily::gpt2, t);
  const std::int64_t p = one.parameters, counts = 4 * one.parameter_tensors;
  EXPECT_EQ(held(one, Category::weights), 2 * p);
  EXPECT_EQ(held(one, Category::optimizer_state), 12 * p + counts);
  t.parallel.data = 4;
  t.parallel.strategy = DataStrategy::zero1;
  const OpTrace four = run(ModelFamily::gpt2, t);
  // Parameters move into one buffer: the tensors they were made in are given back.
  EXPECT_NEAR(static_cast<double>(held(four, Category::optimizer_state)), 12.0 * static_cast<double>(p) / 4.0, 1024.0);
}

TEST(TensorParallel, the_distributed_optimizer_scatters_and_gathers_what_others_add_up) {
  const auto of_data = [](const OpTrace& trace) {
    std::map<CollectiveKind, std::int64_t> bytes;
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
      if (trace.records[i].kind != Record::Kind::op) continue;
      const auto* c = std::get_if<Collective>(&trace.ops[trace.calls[trace.records[i].index].op]);
      if (c != nullptr && c->group == GroupKind::data && c->bytes > 4) bytes[c->kind] += c->bytes;
    }
    return bytes;
  };
  TrainingDescription t = training(1, Framework::megatron);
  t.parallel.data = 4;
  const OpTrace ddp = run(ModelFamily::gpt2, t);
  EXPECT_EQ(of_data(ddp), (std::map<CollectiveKind, std::int64_t>{{CollectiveKind::all_reduce, 4 * ddp.parameters}}));
  t.parallel.strategy = DataStrategy::zero1;
  const OpTrace zero = run(ModelFamily::gpt2, t);
  EXPECT_EQ(of_data(zero),
            (std::map<CollectiveKind, std::int64_t>{{CollectiveKind::reduce_scatter, 4 * zero.parameters},
                                                    {CollectiveKind::all_gather, 2 * zero.parameters}}));
}

TEST(TensorParallel, megatron_pads_the_vocabulary_to_the_multiple_that_is_said) {
  EXPECT_EQ(families::padded_vocabulary(50257, 1, 1), 50257);
  EXPECT_EQ(families::padded_vocabulary(50257, 2, 1), 50258);
  TrainingDescription t = training(1, Framework::megatron);
  const std::int64_t padded = run(ModelFamily::gpt2, t).parameters;
  t.parallel.vocabulary_multiple = 1;
  EXPECT_EQ(run(ModelFamily::gpt2, t).parameters, padded - (1024 - kVocabulary) * kHidden);
}

// NCCL_BLOCKING_WAIT=1: the same operations, and the host stops behind each exchange.
TEST(TensorParallel, with_a_blocking_wait_the_host_stops_behind_each_exchange) {
  const auto counts = [](const OpTrace& trace) {
    std::array<std::int64_t, 3> result{};  // operations, exchanges, waits of the host
    for (std::uint32_t i = trace.steps.back().begin; i < trace.steps.back().end; ++i) {
      const Record& record = trace.records[i];
      result[2] += record.kind == Record::Kind::wait_for_gpu;
      if (record.kind != Record::Kind::op) continue;
      ++result[0];
      result[1] += std::holds_alternative<Collective>(trace.ops[trace.calls[record.index].op]);
    }
    return result;
  };
  for (const bool beside : {false, true}) {
    TrainingDescription t = training(2, Framework::megatron);
    t.parallel.async_all_reduce = beside;
    const auto free = counts(run(ModelFamily::gpt2, t));
    t.parallel.blocking_wait = true;
    const auto blocked = counts(run(ModelFamily::gpt2, t));
    EXPECT_EQ(blocked[0], free[0]);
    EXPECT_EQ(blocked[1], free[1]);
    EXPECT_EQ(blocked[2], free[2] + free[1]);
  }
}

}  // namespace
}  // namespace ridgeline
