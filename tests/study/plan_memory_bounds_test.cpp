// The least memory of a way to train, term by term, against sums made by hand from its number of parameters.
#include <gtest/gtest.h>

#include "sim/answer/parallel/communication.h"
#include "sim/memory/memory_run.h"
#include "sim/study/plan/plan_bounds.h"
#include "sim/workload/composition.h"

namespace ridgeline {
namespace {

/// Eight blocks of 64 columns; nine micro-batches of three sequences of 40 tokens, where there are several.
Scenario small_step(const std::string& model =
                        "{family: gpt2, layers: 8, heads: 4, hidden: 64, vocabulary: 500, "
                        "max_positions: 64}") {
  ScenarioSource source;
  source.text = "{hardware: nvidia-h200-sxm-141gb, cluster: hgx-h200, model: " + model +
                ", training: {micro_batch: 3, sequence_length: 40, parallel: {data: 1}}}";
  source.text_name = "test";
  return load_scenario(source);
}

/// Beyond what the device holds before anything is allocated.
double held(const Scenario& s, const MicroStep& micro_step = {}) {
  return static_cast<double>(least_memory(s, micro_step) - context_bytes(s.gpu, s.software) - communicator_bytes(s));
}

/// Bytes that a parameter takes on one of four ranks that see different data.
struct BytesOfStates {
  double weights, gradients, optimizer;
};

BytesOfStates states_of(OptimizerKind optimizer, Precision precision, Framework framework = Framework::torch) {
  Scenario s = small_step();
  const double parameters = static_cast<double>(parameter_count(s.model));
  TrainingDescription& t = s.training;
  t.optimizer.kind = optimizer;
  t.precision = precision;
  t.parallel.framework = framework;
  const double all = held(s) / parameters;
  t.parallel.data = 4;
  t.parallel.gradient_as_bucket_view = true;
  EXPECT_NEAR(held(s) / parameters, all, 1e-4) << "everything is on each rank";
  t.parallel.strategy = DataStrategy::zero1;
  const double states = (all - held(s) / parameters) / 0.75;  // three quarters of them are elsewhere
  t.parallel.gradient_as_bucket_view = false;
  t.parallel.framework = Framework::torch;
  t.parallel.strategy = DataStrategy::ddp;
  const double buckets = held(s) / parameters;
  t.parallel.gradient_as_bucket_view = true;
  const double gradients = buckets - held(s) / parameters;
  return {all - states - gradients, gradients, states};
}

void expect_states(const BytesOfStates& found, double weights, double gradients, double optimizer) {
  EXPECT_NEAR(found.weights, weights, 1e-3);
  EXPECT_NEAR(found.gradients, gradients, 1e-3);
  EXPECT_NEAR(found.optimizer, optimizer, 1e-3);
}

// Two moments, one, or none; those of an 8-bit optimizer take a byte each whatever the weights are in, and Adafactor's
// rows and columns are few.
TEST(PlanMemoryBounds, StatesAreTwoNumbersAParameterOrLess) {
  using enum OptimizerKind;
  const std::vector<std::pair<OptimizerKind, double>> numbers{{adamw, 2.0},       {adam, 2.0},         {bert_adam, 2.0},
                                                              {adamw_kahan, 2.0}, {sgd_momentum, 1.0}, {sgd, 0.0},
                                                              {none, 0.0},        {adafactor, 0.0}};
  for (const auto& [kind, count] : numbers) {
    SCOPED_TRACE(static_cast<int>(kind));
    expect_states(states_of(kind, Precision::fp32), 4, 4, 4 * count);
    expect_states(states_of(kind, Precision::tf32), 4, 4, 4 * count);
    expect_states(states_of(kind, Precision::amp_fp16), 4, 4, 4 * count);
    expect_states(states_of(kind, Precision::amp_bf16), 4, 4, 4 * count);
    expect_states(states_of(kind, Precision::bf16), 2, 2, 2 * count);
    expect_states(states_of(kind, Precision::apex_o2), 2, 2, 4 + 4 * count);
  }
  expect_states(states_of(adamw_8bit, Precision::fp32), 4, 4, 2);
  expect_states(states_of(adamw_8bit, Precision::bf16), 2, 2, 2);
}

// Megatron-LM keeps weights and gradients in 16 bits under its mixed precision, and fp32 copies beside the states.
TEST(PlanMemoryBounds, MegatronHasCopiesInFp32) {
  const auto bytes = [](Precision precision) {
    Scenario s = small_step();
    s.training.precision = precision;
    s.training.parallel.framework = Framework::megatron;
    return held(s) / static_cast<double>(parameter_count(s.model));
  };
  EXPECT_NEAR(bytes(Precision::amp_bf16), 2 + 2 + 4 + 8, 1e-3);
  EXPECT_NEAR(bytes(Precision::amp_fp16), 2 + 2 + 4 + 8, 1e-3);
  EXPECT_NEAR(bytes(Precision::fp32), 4 + 4 + 8, 1e-3);
  EXPECT_NEAR(bytes(Precision::tf32), 4 + 4 + 8, 1e-3);
  EXPECT_NEAR(bytes(Precision::bf16), 2 + 2 + 4, 1e-3);
}

// Adapters are small: what is frozen has no gradients and no states.
TEST(PlanMemoryBounds, FrozenWeightsAreHeldAlone) {
  Scenario s = small_step();
  const double parameters = static_cast<double>(parameter_count(s.model));
  s.training.lora.emplace();
  EXPECT_NEAR(held(s), 2 * parameters, 1);
  s.training.lora->frozen = FrozenWeights::nf4;
  EXPECT_NEAR(held(s), 0.5 * parameters, 1);
  s.training.lora->frozen = FrozenWeights::nf4_double;
  EXPECT_NEAR(held(s), 0.5 * parameters, 1);
}

// Six ranks in fp32: weights 4, gradients 4, states 8. Fully sharded, a sixth of each; in two groups, a third; whole
// between the passes (zero2), two bytes a weight more at least. Tensor parallel ranks have a share of the network.
TEST(PlanMemoryBounds, StrategiesShareOutWhatTheyDo) {
  Scenario s = small_step();
  const double p = static_cast<double>(parameter_count(s.model));
  const auto of = [&](DataStrategy strategy, std::int64_t data, std::int64_t replicate = 1, std::int64_t tensor = 1) {
    s.training.parallel = {};
    s.training.parallel.strategy = strategy;
    s.training.parallel.data = data;
    s.training.parallel.replicate = replicate;
    s.training.parallel.tensor = tensor;
    return held(s) / p;
  };
  EXPECT_NEAR(of(DataStrategy::ddp, 6), 4 + 8 + 4 + 4, 1e-4) << "and buckets of gradients";
  EXPECT_NEAR(of(DataStrategy::zero1, 6), 4 + 8 / 6.0 + 4 + 4, 1e-4);
  EXPECT_NEAR(of(DataStrategy::zero1, 1), 4 + 8 + 4, 1e-4);
  EXPECT_NEAR(of(DataStrategy::fsdp, 6), 16 / 6.0, 1e-4);
  EXPECT_NEAR(of(DataStrategy::fsdp1, 6), 16 / 6.0, 1e-4);
  EXPECT_NEAR(of(DataStrategy::hsdp, 6, 2), 16 / 3.0, 1e-4);
  EXPECT_NEAR(of(DataStrategy::zero2, 6), 16 / 6.0 + 2, 1e-4);
  EXPECT_NEAR(of(DataStrategy::zero2, 1), 16, 1e-4) << "alone, all of it is whole anyway";
  EXPECT_NEAR(of(DataStrategy::fsdp, 3, 1, 2), 16 / 3.0 / 2, 1e-4);
  EXPECT_NEAR(of(DataStrategy::ddp, 3, 1, 2), 20 / 2.0, 1e-4);
  s.training.parallel.framework = Framework::megatron;
  EXPECT_NEAR(held(s) / p, 16 / 2.0, 1e-4) << "its buffer of gradients is what is sent";
  s.training.precision = Precision::bf16;
  EXPECT_NEAR(of(DataStrategy::zero2, 6), 8 / 6.0 + 2, 1e-4);
  s.training.lora.emplace().frozen = FrozenWeights::nf4;
  EXPECT_NEAR(of(DataStrategy::zero2, 6), 0.5 / 6.0 + 0.5, 1e-4) << "no more than a weight takes";
}

// Ranks that share sequences see other tokens: gradients are added up over them too.
TEST(PlanMemoryBounds, RanksOfASequenceShareStates) {
  Scenario s = small_step();
  const double p = static_cast<double>(parameter_count(s.model));
  s.training.parallel.data = 3;
  s.training.parallel.context = 2;
  s.training.parallel.strategy = DataStrategy::zero1;
  EXPECT_NEAR(held(s) / p, 4 + 8 / 6.0 + 4 + 4, 1e-4);
  s.training.parallel.strategy = DataStrategy::fsdp;
  EXPECT_NEAR(held(s) / p, 16 / 6.0, 1e-4);
}

// Micro-batches that are added up keep gradients beside activations, alone but for the shares of fully_shard.
TEST(PlanMemoryBounds, FurtherMicroBatchesRunBesideGradients) {
  Scenario s = small_step();
  const double p = static_cast<double>(parameter_count(s.model));
  MicroStep micro_step;
  micro_step.activations = 3e9;
  EXPECT_NEAR(held(s, micro_step), p * 12 + 0.97 * 3e9, 1);
  s.training.gradient_accumulation = 2;
  EXPECT_NEAR(held(s, micro_step), p * 16 + 0.97 * 3e9, 1);
  s.training.parallel.data = 4;
  s.training.parallel.strategy = DataStrategy::fsdp;
  EXPECT_NEAR(held(s, micro_step), p * 16 / 4 + 0.97 * 3e9, 1);
  s.training.gradient_accumulation = 1;
  EXPECT_NEAR(held(s, micro_step), p * 12 / 4 + 0.97 * 3e9, 1);
  micro_step.activations = 10;
  EXPECT_NEAR(held(s, micro_step), p * 16 / 4, 1) << "gradients are more";
  micro_step.activations = 3e9;
  s.compile = true;
  EXPECT_NEAR(held(s, micro_step), p * 16 / 4, 1) << "what a compiled graph keeps is not known";
}

Scenario four_stages(PipelineSchedule schedule, std::int64_t ranks, std::int64_t stages_a_rank, std::int64_t batches) {
  Scenario s = small_step();
  s.training.gradient_accumulation = batches;
  s.training.parallel.pipeline = ranks;
  s.training.parallel.schedule = schedule;
  s.training.parallel.virtual_stages = stages_a_rank;
  return s;
}

// Received: 3 x 40 tokens of 64 numbers in fp32, for each micro-batch. Of a stage: eight blocks over all stages, for
// each pass that the fullest rank holds.
TEST(PlanMemoryBounds, AStageHoldsThePassesThatItsScheduleHasUnderWay) {
  constexpr double kReceived = 3 * 40 * 64 * 4, kBlock = 1e9;
  const auto passes = [&](PipelineSchedule schedule, std::int64_t ranks, std::int64_t stages_a_rank,
                          std::int64_t batches) {
    const Scenario s = four_stages(schedule, ranks, stages_a_rank, batches);
    MicroStep micro_step;
    micro_step.of_block = kBlock;
    micro_step.activations = 1e15;  // of the whole network: means nothing here
    const double states = static_cast<double>(parameter_count(s.model)) * 12 / static_cast<double>(ranks);
    const double blocks = 8.0 / static_cast<double>(ranks * stages_a_rank);
    return (held(s, micro_step) - states - kReceived * static_cast<double>(batches)) / (0.97 * blocks * kBlock);
  };
  using enum PipelineSchedule;
  EXPECT_NEAR(passes(gpipe, 4, 1, 9), 9, 1e-2) << "all of them, and the scores of each";
  EXPECT_NEAR(passes(one_forward_one_backward, 4, 1, 9), 4, 1e-4) << "the first rank is a pass ahead of each other one";
  EXPECT_NEAR(passes(one_forward_one_backward, 2, 1, 9), 2, 1e-4);
  EXPECT_NEAR(passes(one_forward_one_backward, 4, 1, 3), 3, 1e-4) << "no more than there are";
  EXPECT_NEAR(passes(one_forward_one_backward, 4, 1, 900), 4, 1e-4);
  EXPECT_NEAR(passes(interleaved, 2, 2, 8), 2 + 2 + 1, 1e-4) << "a round of the first stage, two for each rank behind";
  EXPECT_NEAR(passes(interleaved, 4, 2, 8), 4 + 2 * 3 + 1, 1e-4);
  EXPECT_NEAR(passes(zb1p, 4, 1, 9), 4, 1e-4);
  EXPECT_NEAR(passes(zbv, 2, 2, 8), 4, 1e-4) << "two of each of its stages";
}

// The last rank holds the scores of one micro-batch; where all forward passes come first, of each. Two bytes for each
// of 120 tokens and 500 words, split over tensor parallel ranks.
TEST(PlanMemoryBounds, TheLastStageHoldsScores) {
  constexpr double kScores = 2.0 * 120 * 500;
  const auto beyond_blocks = [&](const Scenario& s) {
    MicroStep micro_step;
    micro_step.of_block = 1e6;
    const double received = 9.0 * static_cast<double>(bytes_between_stages(s));
    const double states = static_cast<double>(parameter_count(s.model)) * 12 /
                          static_cast<double>(s.training.parallel.pipeline * s.training.parallel.tensor);
    return held(s, micro_step) - states - received - 0.97 * 9 * 2e6;
  };
  Scenario s = four_stages(PipelineSchedule::gpipe, 4, 1, 9);
  EXPECT_NEAR(beyond_blocks(s), 0.97 * 9 * kScores, 1);
  s.training.parallel.tensor = 2;
  EXPECT_NEAR(beyond_blocks(s), 0.97 * 9 * kScores / 2, 1);
  s.training.parallel.tensor = 1;
  s.training.parallel.context = 2;
  s.training.parallel.gradient_as_bucket_view = true;
  EXPECT_NEAR(beyond_blocks(s), 0.97 * 9 * kScores / 2, 1) << "it has half of the tokens";
  s.training.parallel.context = 1;
  s.model.family = ModelFamily::llama;
  EXPECT_NEAR(beyond_blocks(s), 0.97 * 9 * kScores, 1);
  s.model.family = ModelFamily::bert;
  s.model.head = ModelHead::masked_lm;
  EXPECT_NEAR(beyond_blocks(s), 0.0, 1) << "what its loss reads is not known";
}

// Under 1F1B the first of four ranks holds four passes, the last one pass and its scores: what is more counts, and
// gradients where they are more than both.
TEST(PlanMemoryBounds, AStageHoldsPassesOrScoresOrGradients) {
  Scenario s = four_stages(PipelineSchedule::one_forward_one_backward, 4, 1, 9);
  const double of_stage = static_cast<double>(parameter_count(s.model)) / 4, received = 9 * 3 * 40 * 64 * 4;
  MicroStep micro_step;
  micro_step.of_block = 1000.0;
  EXPECT_NEAR(held(s, micro_step), of_stage * 16 + received, 1);
  micro_step.of_block = 200000.0;
  EXPECT_NEAR(held(s, micro_step), of_stage * 12 + 0.97 * 4 * 2 * 200000 + received, 1);
  s.training.optimizer.kind = OptimizerKind::sgd;
  s.training.precision = Precision::bf16;
  s.training.micro_batch = 300;  // scores of 12 000 tokens
  micro_step.of_block = 1000.0;
  EXPECT_NEAR(held(s, micro_step), of_stage * 2 + 0.97 * (2 * 1000.0 + 2.0 * 12000 * 500) + 9 * 12000 * 64 * 2, 1);
}

// Sharded stages keep half of their weights, which are those of blocks, and their gradients in 16 bits at least: whole.
// Nothing is added for micro-batches: their activations are those of the passes under way.
TEST(PlanMemoryBounds, StagesOfShardsAreWholeUntilTheEnd) {
  Scenario s = four_stages(PipelineSchedule::one_forward_one_backward, 4, 1, 9);
  const double of_stage = static_cast<double>(parameter_count(s.model)) / 4, received = 9 * 3 * 40 * 64 * 4;
  s.training.parallel.data = 2;
  s.training.parallel.strategy = DataStrategy::fsdp;
  EXPECT_NEAR(held(s), of_stage * (12 / 2.0 + 0.5 * (2 + 2)) + received, 1);
  MicroStep micro_step;
  micro_step.of_block = 1e9;
  EXPECT_NEAR(held(s, micro_step), of_stage * 12 / 2.0 + 0.97 * 4 * 2e9 + received, 1);
  s.training.lora.emplace().frozen = FrozenWeights::nf4;
  EXPECT_NEAR(held(s), of_stage * 0.5 / 2.0 + 0.97 * 2 * 120 * 500 + received, 1)
      << "scores are more than what is whole";
}

constexpr const char* kExperts =
    "{family: composed, layers: 4, heads: 4, hidden: 64, feed_forward: 128, vocabulary: 500, positions: rotary, norm: "
    "rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: false, "
    "experts: 6}";

// Four blocks of six experts with three matrices of 64 x 128. Where three ranks hold the experts of a layer together,
// each has two of them; where their layers are sharded, shares of everything are equal anyway.
TEST(PlanMemoryBounds, ExpertsAreSpreadOverTheirRanks) {
  Scenario s = small_step(kExperts);
  const double p = static_cast<double>(parameter_count(s.model)), experts = 4.0 * 6 * 3 * 64 * 128;
  ASSERT_EQ(static_cast<double>(s.model.composition->stack.weights_of_experts()), experts);
  s.training.parallel.data = 6;
  s.training.parallel.strategy = DataStrategy::ddp;
  EXPECT_NEAR(held(s), 20 * p, 1);
  s.training.parallel.expert = 3;
  EXPECT_NEAR(held(s), 16 * (p - experts * 2 / 3) + 4 * (p - experts), 1) << "buckets are of what all six share";
  s.training.parallel.strategy = DataStrategy::fsdp;
  EXPECT_NEAR(held(s), 16 * p / 6, 1);
}

}  // namespace
}  // namespace ridgeline
