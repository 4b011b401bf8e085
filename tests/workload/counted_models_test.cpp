// Parameters and FLOPs of small networks added up by hand, and the edges of what makes a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/units/user_error.h"
#include "sim/workload/training_checks.h"
#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using testing_support::odd_composition;
using testing_support::odd_network;
using testing_support::odd_training;
using testing_support::OddStep;

ModelDescription bert_with(ModelHead head, bool tied = true) {
  ModelDescription model = odd_network(ModelFamily::bert);
  model.head = head;
  model.tie_embeddings = tied;
  return model;
}

// Four products of 12 x 12 and two of 12 x 20: 1056 weights a block.
TEST(CountedModels, ParametersOfAGpt2) {
  ModelDescription model = odd_network(ModelFamily::gpt2);
  const std::int64_t tables = 17 * 12 + 7 * 12, biases = 3 * 12 + 12 + 20 + 12, norm = 2 * 12;
  EXPECT_EQ(parameter_count(model), tables + 1056 + biases + 2 * norm + norm);
  model.tie_embeddings = false;
  EXPECT_EQ(parameter_count(model), tables + 1056 + biases + 3 * norm + 17 * 12);
  model.bias = false;
  model.layers = 5;
  EXPECT_EQ(parameter_count(model), tables + 5 * (1056 + 2 * 12) + 12 + 17 * 12);
}

TEST(CountedModels, ParametersOfABert) {
  const std::int64_t embeddings = (17 + 7 + 3) * 12 + 2 * 12, block = 1056 + 4 * 12 + 20 + 12 + 4 * 12,
                     pooler = 12 * 12 + 12, prediction = 12 * 12 + 12 + 2 * 12 + 17;
  EXPECT_EQ(parameter_count(bert_with(ModelHead::sequence_classification)), embeddings + block + pooler + 4 * 12 + 4);
  EXPECT_EQ(parameter_count(bert_with(ModelHead::question_answering)), embeddings + block + 2 * 12 + 2);
  EXPECT_EQ(parameter_count(bert_with(ModelHead::masked_lm)), embeddings + block + prediction);
  EXPECT_EQ(parameter_count(bert_with(ModelHead::masked_lm, false)), embeddings + block + prediction + 17 * 12);
  EXPECT_EQ(parameter_count(bert_with(ModelHead::pretraining)), embeddings + block + pooler + prediction + 2 * 12 + 2);
}

// Six heads of 6, two of keys and values: 36 x 36 twice, 12 x 36 twice, 20 x 36 three times.
TEST(CountedModels, ParametersOfALlama) {
  ModelDescription model = odd_network(ModelFamily::llama);
  const std::int64_t tables = 2 * 17 * 36, block = 2 * 1296 + 2 * 432 + 3 * 720, norms = 3 * 36;
  EXPECT_EQ(parameter_count(model), tables + block + norms);
  model.attention_bias = true;
  EXPECT_EQ(parameter_count(model), tables + block + norms + 36 + 2 * 12 + 36);
  model.feed_forward_bias = true;
  EXPECT_EQ(parameter_count(model), tables + block + norms + 96 + 2 * 20 + 36);
  model.attention_bias.reset();
  EXPECT_EQ(parameter_count(model), tables + block + norms + 76);
  model.tie_embeddings = true;
  model.head_width = 4;  // 24 columns of queries, 8 of keys
  EXPECT_EQ(parameter_count(model), 17 * 36 + 2 * 36 * 24 + 2 * 36 * 8 + 3 * 720 + norms + 76);
}

// Three times: a multiply-add is two, of 10 tokens of 2 sequences, whose scores are 5 for each token.
TEST(CountedModels, FlopsAreThoseOfTheProductsThreeTimes) {
  const ModelDescription gpt2 = odd_network(ModelFamily::gpt2), llama = odd_network(ModelFamily::llama);
  EXPECT_EQ(model_flops(gpt2, 2, 5), 3.0 * (2 * 10 * 1056 + 4 * 10 * 5 * 12 + 2 * 10 * 12 * 17));
  EXPECT_EQ(model_flops(llama, 2, 5), 3.0 * (2 * 10 * 5616 + 4 * 10 * 5 * 36 + 2 * 10 * 36 * 17));
  const double encoder = 2 * 10 * 1056 + 4 * 10 * 5 * 12;
  EXPECT_EQ(model_flops(bert_with(ModelHead::sequence_classification), 2, 5), 3.0 * encoder);
  EXPECT_EQ(model_flops(bert_with(ModelHead::masked_lm), 2, 5), 3.0 * (encoder + 2 * 10 * 12 * 17 + 2 * 10 * 12 * 12));
  ModelDescription deep = gpt2;
  deep.layers = 3;
  EXPECT_EQ(model_flops(deep, 2, 5), 3.0 * (3 * encoder + 2 * 10 * 12 * 17));
}

TEST(CountedModels, PackedSequencesHaveFewerScores) {
  TrainingDescription training = odd_training();
  training.gradient_accumulation = 2;
  const ModelDescription model = odd_network(ModelFamily::gpt2);
  EXPECT_EQ(flops_of_step(model, training), model_flops(model, 6, 5));
  training.packed_lengths = {2, 3};  // 4 + 9 pairs of 25
  EXPECT_EQ(flops_of_step(model, training), model_flops(model, 6, 5) - 12.0 * 6 * (25 - 13) * 12);
}

std::string why_no_model(const std::function<void(ModelDescription&)>& change, ModelFamily family = ModelFamily::gpt2) {
  ModelDescription model = odd_network(family);
  change(model);
  try {
    check_model(model);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CountedModels, SizesThatMakeNoModelAreRefused) {
  EXPECT_EQ(why_no_model([](ModelDescription&) {}), "");
  const std::string least = "a model needs layers, heads, hidden and vocabulary of at least 1";
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.layers = 0; }), least);
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.heads = 0; }), least);
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.hidden = 0; }), least);
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.vocabulary = 0; }), least);
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.layers = m.heads = m.hidden = m.vocabulary = 1; }), "");
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.heads = 5; }), "hidden 12 is not a multiple of 5 heads");
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.heads = 5, m.head_width = 4; }), "");
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.key_value_heads = 4, m.heads = 6; }),
            "6 heads cannot share 4 key-value heads evenly");
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.key_value_heads = 3, m.heads = 6; }), "");
}

TEST(CountedModels, SomeCodesAreOfNetworksWrittenOut) {
  for (const bool plain : {false, true}) {
    EXPECT_EQ(why_no_model([=](ModelDescription& m) { m.fused_norms = true, m.plain = plain; }, ModelFamily::llama),
              plain ? "" : "norms: fused goes with code: plain");
    EXPECT_EQ(why_no_model([=](ModelDescription& m) { m.complex_rotary = true, m.plain = plain; }, ModelFamily::llama),
              plain ? "" : "rotary: complex goes with code: plain");
  }
  EXPECT_THAT(why_no_model([](ModelDescription& m) { m.head_width = 5; }, ModelFamily::llama),
              HasSubstr("a head dimension of 5: rotary positions turn pairs"));
  EXPECT_EQ(why_no_model([](ModelDescription& m) { m.heads = 4; }), "");  // odd heads of another family
}

TEST(CountedModels, NetworksBeyondAnyGpuAreRefused) {
  const auto wide = [](std::int64_t heads) {
    return [=](ModelDescription& m) { m.heads = heads, m.head_width = 1 << 12, m.key_value_heads = 0; };
  };
  EXPECT_EQ(why_no_model(wide(1 << 12)), "");
  EXPECT_EQ(why_no_model(wide((1 << 12) + 1)), "4097 heads of 4096 are wider than any network");
  const auto of = [](std::int64_t layers, std::int64_t inner, std::int64_t vocabulary) {
    return [=](ModelDescription& m) {
      m.heads = 1000, m.hidden = 1'000'000, m.layers = layers, m.feed_forward = inner, m.vocabulary = vocabulary;
    };
  };
  EXPECT_EQ(why_no_model(of(6, 4'000'000, 17)), "");  // 6 x 1e6 x (4e6 + 12e6)
  EXPECT_EQ(why_no_model(of(7, 4'000'000, 17)), "1.1e+14 parameters are more than any GPU could ever hold");
  EXPECT_EQ(why_no_model(of(24, 1, 17)), "");
  EXPECT_EQ(why_no_model(of(26, 1, 17)), "1e+14 parameters are more than any GPU could ever hold");
  EXPECT_EQ(why_no_model(of(1, 4'000'000, 80'000'000)), "");
  EXPECT_EQ(why_no_model(of(1, 4'000'000, 90'000'000)), "1.1e+14 parameters are more than any GPU could ever hold");
}

TEST(CountedModels, AttentionLooksBackNoFurtherThanItsWindow) {
  ModelDescription model = odd_network(ModelFamily::llama);
  EXPECT_NO_THROW(check_window(model, 1 << 20));  // none
  for (const std::int64_t window : {1, 5}) {
    model.window = window;
    EXPECT_NO_THROW(check_window(model, window));
    EXPECT_THROW(check_window(model, window + 1), UserError);
  }
}

std::string why_no_training(const std::function<void(OddStep&)>& change) {
  OddStep step(ModelFamily::gpt2);
  change(step);
  try {
    check_training(step.model, step.training);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CountedModels, NumbersThatTrainNothingAreRefused) {
  EXPECT_EQ(why_no_training([](OddStep&) {}), "");
  EXPECT_EQ(why_no_training([](OddStep& s) { s.training.micro_batch = 0; }),
            "training.micro_batch: must be at least 1");
  EXPECT_EQ(why_no_training([](OddStep& s) { s.training.sequence_length = 0; }),
            "training.sequence_length: must be at least 1");
  EXPECT_EQ(why_no_training([](OddStep& s) { s.training.gradient_accumulation = 0; }),
            "training.gradient_accumulation: must be at least 1");
  EXPECT_EQ(why_no_training([](OddStep& s) { s.training.sequence_length = 7; }), "");
  EXPECT_THAT(why_no_training([](OddStep& s) { s.training.sequence_length = 8; }),
              HasSubstr("8 is more than the 7 positions of the model"));
  EXPECT_EQ(why_no_training([](OddStep& s) {
              s.training.sequence_length = 8, s.training.packed_lengths = {1, 7};
            }),
            "");
  EXPECT_THAT(why_no_training([](OddStep& s) { s.model.key_value_heads = 1; }),
              HasSubstr("family gpt2 has keys for each head: expected 2"));
  EXPECT_EQ(why_no_training([](OddStep& s) {
              s.model.key_value_heads = 1;
              s.training.parallel.framework = Framework::megatron;
            }),
            "");
}

TEST(CountedModels, NumbersThatNoLossReadsAreRefused) {
  OddStep step(odd_composition("embedding_width: 8, head_transform: true"));
  for (const std::int64_t micro_batches : {1, 2}) {
    step.training.gradient_accumulation = micro_batches;
    EXPECT_THROW((void)step.trace(), UserError);
  }
}

// 1236 trained numbers of a block, two norms and the tokens' table.
TEST(CountedModels, TablesThatAreNotTrainedCountAsParametersOfTheModel) {
  const auto counted = [](const std::string& keys) { return OddStep(odd_composition(keys)).trace().parameters; };
  const std::int64_t base = counted("");
  EXPECT_EQ(base, parameter_count(odd_composition()));
  EXPECT_EQ(base, 17 * 12 + 1056 + 4 * 12 + 20 + 12 + 3 * 24);
  EXPECT_EQ(counted("positions: sinusoidal"), base + 7 * 12);
  EXPECT_EQ(counted("positions: sinusoidal, position_buffer: true"), base);
  EXPECT_EQ(counted("positions: rotary"), base);
  EXPECT_EQ(counted("positions: rotary, rotary_table: true"), base + 7 * 6);
  EXPECT_EQ(counted("cross_attention: true, encoder: {positions: sinusoidal}"),
            counted("cross_attention: true, encoder: {positions: none}") + 7 * 12);
  EXPECT_EQ(counted("contact_head: true"), base + 2 + 1);
  EXPECT_EQ(counted("experts: 5, shared_feed_forward: 1"), counted("experts: 5") + 2 * 12 + 1 + 12);
  EXPECT_EQ(counted("cross_attention: true, encoder: {positions: rotary, rotary_table: true}"),
            counted("cross_attention: true, encoder: {positions: rotary}") + 7 * 6);
}

TEST(CountedModels, AdaptersAreTrainedBesideFrozenNumbers) {
  OddStep step(ModelFamily::gpt2);
  step.training.lora = LoraDescription{};
  step.training.lora->rank = 3;  // of the layer of queries, keys and values: 3 x 12 and 36 x 3
  for (const FrozenWeights frozen : {FrozenWeights::as_stored, FrozenWeights::nf4, FrozenWeights::nf4_double}) {
    step.training.lora->frozen = frozen;
    const OpTrace trace = step.trace();
    EXPECT_EQ(trace.parameters, 1496 + 36 + 108);
    EXPECT_EQ(trace.parameter_tensors, 2);
    EXPECT_EQ(trace.model_flops, model_flops(step.model, 3, 5) * 2.0 / 3.0);
    EXPECT_THAT(trace.notes, ::testing::Contains(HasSubstr("lora: 144 of 1640 parameters are trained")));
  }
}

}  // namespace
}  // namespace ridgeline
