// The least time of a way to train, term by term: everything else is made to take nothing, and the term is worked out
// by hand.
#include <gtest/gtest.h>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/peak.h"
#include "sim/study/plan/plan_bounds.h"
#include "sim/workload/composition.h"

namespace ridgeline {
namespace {

constexpr double kSure = 0.97;  // of what was found for one micro-batch alone

/// Eight blocks, five micro-batches of three sequences of 64 tokens; memory, links and host that take no time.
Scenario quick_step(const std::string& model =
                        "{family: gpt2, layers: 8, heads: 4, hidden: 64, vocabulary: 500, "
                        "max_positions: 64}") {
  ScenarioSource source;
  source.text = "{hardware: nvidia-h200-sxm-141gb, cluster: hgx-h200, model: " + model +
                ", training: {micro_batch: 3, sequence_length: 64, gradient_accumulation: 5, parallel: {data: 1}}}";
  source.text_name = "test";
  Scenario s = load_scenario(source);
  s.gpu.dram.bandwidth = BytesPerSecond{1e30};
  s.host.scale = 0.0;
  return s;
}

double least(const Scenario& s, const MicroStep& micro_step) { return least_time(s, micro_step).value(); }

// FLOPs of the model less half of the scores, which a causal kernel may leave out: of a micro-batch and its eight
// blocks 12 x 3 x 64 x 64 x 64 FLOPs each.
TEST(PlanTimeBounds, ArithmeticTakesItsTimeAtThePeak) {
  Scenario s = quick_step();
  s.training.precision = Precision::bf16;
  const double peak = peak_of_precision(Precision::bf16, s.gpu).value();
  const double whole = model_flops(s.model, 3, 64), scores = 12.0 * 3 * 64 * 64 * 64 * 8;
  const double causal = 5 * (whole - 0.5 * scores) / peak;
  EXPECT_NEAR(least(s, {}), causal, 1e-12 * causal);
  s.training.lora.emplace();
  EXPECT_NEAR(least(s, {}), causal / 1.5, 1e-12 * causal) << "gradients of frozen weights are left out";
  s.training.lora.reset();
  s.training.packed_lengths = {32, 32};
  EXPECT_NEAR(least(s, {}), 5 * (whole - scores) / peak, 1e-12 * causal) << "scores of packed sequences are fewer";
  s.training.packed_lengths.clear();
  s.training.parallel.expert_capacity = 0.25;
  EXPECT_NEAR(least(s, {}), causal / 4, 1e-12 * causal) << "experts take a quarter of the tokens";
  s.training.parallel.expert_capacity = 1.5;
  EXPECT_NEAR(least(s, {}), causal, 1e-12 * causal);
  s.training.parallel.expert_capacity = 0.0;
  s.training.parallel.tensor = 2;
  EXPECT_NEAR(least(s, {}), causal / 2, 1e-12 * causal);
  s.training.precision = Precision::fp32;
  EXPECT_NEAR(least(s, {}), causal / 2 * peak / peak_of_precision(Precision::fp32, s.gpu).value(), 1e-12 * causal * 20);
  s.training.precision = Precision::tf32;
  s.training.parallel.data = 2;
  s.training.parallel.strategy = DataStrategy::fsdp;
  s.training.parallel.parameter_type = DType::bf16;
  s.cluster->links.rate = BytesPerSecond{1e30};
  s.model.layers = 8000;  // long beside a message
  const double thousand = 5 * (model_flops(s.model, 3, 64) - 500 * scores) / peak / 2;
  EXPECT_NEAR(least(s, {}), thousand, 1e-12 * thousand) << "computed in the type that weights are gathered in";
}

// Ranks that share a sequence share its FLOPs; scores are as wide as attention is, not as the network.
TEST(PlanTimeBounds, RanksOfASequenceShareItsArithmetic) {
  Scenario s = quick_step(
      "{family: llama, code: plain, layers: 8, heads: 4, head_dim: 512, hidden: 1024, feed_forward: 2048, vocabulary: "
      "500}");
  s.training.micro_batch = 30;
  s.training.parallel.context = 4;
  s.cluster->links.rate = BytesPerSecond{1e30};
  const double flops = model_flops(s.model, 30, 64) - 0.5 * 12.0 * 30 * 64 * 64 * (4 * 512) * 8;
  const double expected = 5 * flops / 4 / peak_of_precision(Precision::fp32, s.gpu).value();
  EXPECT_NEAR(least(s, {}), expected, 1e-12 * expected);
}

// Kernels of five micro-batches and of the fill of the pipeline, on each of so many ranks.
TEST(PlanTimeBounds, KernelsFillAndDrainAPipeline) {
  MicroStep micro_step;
  micro_step.kernels = Seconds{10.0};
  const auto passes = [&](std::int64_t ranks, PipelineSchedule schedule, std::int64_t stages_a_rank = 1) {
    Scenario s = quick_step();
    s.training.parallel.pipeline = ranks;
    s.training.parallel.schedule = schedule;
    s.training.parallel.virtual_stages = stages_a_rank;
    return least(s, micro_step) / (10.0 * kSure);
  };
  using enum PipelineSchedule;
  EXPECT_NEAR(passes(1, one_forward_one_backward), 5.0, 1e-9);
  EXPECT_NEAR(passes(2, one_forward_one_backward), (5 + 1) / 2.0, 1e-9);
  EXPECT_NEAR(passes(4, gpipe), (5 + 3) / 4.0, 1e-9);
  EXPECT_NEAR(passes(4, interleaved, 2), (5 + 3 / 2.0) / 4.0, 1e-9) << "stages are half as long";
  EXPECT_NEAR(passes(4, zb1p), (5 + 0.25 * 3) / 4.0, 1e-9) << "gradients of weights fill the drain";
  EXPECT_NEAR(passes(2, zbv, 2), (5 + 0.25 / 2) / 2.0, 1e-9);
  EXPECT_NEAR(passes(2, interleaved_zero_bubble, 2), (5 + 0.25 / 2) / 2.0, 1e-9);
}

// A block takes 2 s, the embedding 3 s, the head 11 s, of four ranks with two blocks each; a micro-batch comes to the
// last one behind three ranks' passes. Or the first is busy for longer.
TEST(PlanTimeBounds, TheBusiestRankDecides) {
  MicroStep micro_step;
  micro_step.block = Seconds{2.0};
  micro_step.embedding = Seconds{3.0};
  micro_step.head = Seconds{11.0};
  const auto time = [&](std::int64_t ranks, PipelineSchedule schedule, std::int64_t stages_a_rank = 1,
                        std::int64_t layers = 8) {
    Scenario s = quick_step();
    s.model.layers = layers;
    s.training.parallel.pipeline = ranks;
    s.training.parallel.schedule = schedule;
    s.training.parallel.virtual_stages = stages_a_rank;
    return least(s, micro_step) / kSure;
  };
  using enum PipelineSchedule;
  EXPECT_NEAR(time(4, one_forward_one_backward), 5 * (4 + 11) + 3 * 4, 1e-6);
  EXPECT_NEAR(time(4, zb1p), 5 * (4 + 11) + 0.25 * 3 * 4, 1e-6);
  EXPECT_NEAR(time(2, one_forward_one_backward), 5 * (8 + 11) + 8, 1e-6);
  EXPECT_NEAR(time(2, one_forward_one_backward, 1, 7), 5 * (6 + 11) + 6, 1e-6) << "three blocks at least on each";
  EXPECT_NEAR(time(2, interleaved, 2), 5 * (8 + 11) + 4, 1e-6);
  EXPECT_NEAR(time(2, zbv, 2), 5 * (8 + 3 + 11), 1e-6) << "the first rank has both ends";
  EXPECT_LT(time(1, one_forward_one_backward), 1e-3) << "without a pipeline, kernels say it all";
  micro_step.embedding = Seconds{31.0};
  EXPECT_NEAR(time(4, one_forward_one_backward), 5 * (4 + 31), 1e-6);
  micro_step.block = Seconds{};
  EXPECT_LT(time(4, one_forward_one_backward), 1e-3) << "where blocks are not known, neither are ranks";
  // What is longer counts, of ranks and of the network shared out.
  micro_step.block = Seconds{2.0};
  micro_step.kernels = Seconds{100.0};
  EXPECT_NEAR(time(4, one_forward_one_backward), 100 * (5 + 3) / 4.0, 1e-6);
}

// A step of one micro-batch and four further ones, one after the other, where the host may be the limit: shared out
// over the stages.
TEST(PlanTimeBounds, MicroBatchesFollowOneAnother) {
  MicroStep micro_step;
  micro_step.first = Seconds{7.0};
  micro_step.further = Seconds{3.0};
  Scenario s = quick_step();
  EXPECT_NEAR(least(s, micro_step), kSure * (7 + 4 * 3), 1e-9);
  s.training.parallel.pipeline = 4;
  EXPECT_NEAR(least(s, micro_step), kSure * (7 + 4 * 3) / 4, 1e-9);
  micro_step.kernels = Seconds{3.9};  // (5 + 3) / 4 = 2 of them
  EXPECT_NEAR(least(s, micro_step), kSure * 7.8, 1e-9);
  micro_step.kernels = Seconds{2.3};
  EXPECT_NEAR(least(s, micro_step), kSure * (7 + 4 * 3) / 4, 1e-9) << "the longer of both";
}

/// Beside ten seconds of kernels.
double of_optimizer(Scenario s) {
  s.training.gradient_accumulation = 1;
  MicroStep micro_step;
  micro_step.kernels = Seconds{10.0};
  s.gpu.dram.bandwidth = BytesPerSecond{1e6};
  return least(s, micro_step) - 10.0 * kSure * (s.training.parallel.pipeline > 1 ? 3.0 / 4 : 1.0);
}

// Weights, gradients and states go through the DRAM's pins once, at 1 MB/s here, but for what the L2 holds.
TEST(PlanTimeBounds, TheOptimizerReadsEverythingOnce) {
  Scenario s = quick_step();
  const double p = static_cast<double>(parameter_count(s.model));
  s.gpu.l2.capacity = Bytes{1000.0};
  EXPECT_NEAR(of_optimizer(s), (p * 16 - 1000) / 1e6, 1e-9);
  s.training.precision = Precision::bf16;
  EXPECT_NEAR(of_optimizer(s), (p * 8 - 1000) / 1e6, 1e-9);
  s.training.parallel.tensor = 2;
  EXPECT_NEAR(of_optimizer(s), (p * 8 / 2 - 1000) / 1e6, 1e-9);
  s.training.parallel.tensor = 1;
  s.training.parallel.data = 6;
  s.training.parallel.strategy = DataStrategy::ddp;
  EXPECT_NEAR(of_optimizer(s), (p * 8 - 1000) / 1e6, 1e-9) << "each rank updates everything";
  for (const DataStrategy strategy :
       {DataStrategy::zero1, DataStrategy::zero2, DataStrategy::fsdp, DataStrategy::fsdp1}) {
    s.training.parallel.strategy = strategy;
    EXPECT_NEAR(of_optimizer(s), (p * 8 / 6 - 1000) / 1e6, 1e-9);
  }
  s.training.parallel.strategy = DataStrategy::hsdp;
  s.training.parallel.replicate = 2;
  EXPECT_NEAR(of_optimizer(s), (p * 8 / 3 - 1000) / 1e6, 1e-9);
  s.training.lora.emplace();
  EXPECT_NEAR(of_optimizer(s), (p * 2 / 3 - 1000) / 1e6, 1e-9);
  s.training.parallel = {};
  s.training.parallel.pipeline = 2;
  s.training.lora.reset();
  s.gpu.l2.capacity = Bytes{p * 4 + 100};
  EXPECT_EQ(least_time(s, {}) > Seconds{}, true);
  s.training.parallel.pipeline = 1;
  s.gpu.l2.capacity = Bytes{p * 8 - 500};
  EXPECT_NEAR(of_optimizer(s), 500 / 1e6, 1e-9);
  s.gpu.l2.capacity = Bytes{p * 8 + 500};
  EXPECT_NEAR(of_optimizer(s), 0.0, 1e-9) << "all of it lies in the L2";
}

/// Links of 1 kB/s: nothing takes as long as what goes through them.
Scenario slow_links(const std::string& model =
                        "{family: gpt2, layers: 8, heads: 4, hidden: 64, vocabulary: 500, "
                        "max_positions: 64}") {
  Scenario s = quick_step(model);
  s.cluster->links.rate = BytesPerSecond{1e3};
  return s;
}

double time_for(const Scenario& s, const Collective& collective) {
  return time_of_collective(s, collective).time.value();
}

// Gradients of 16 bits at least are added up over all ranks that see other tokens, once a step.
TEST(PlanTimeBounds, GradientsGoThroughTheLinks) {
  Scenario s = slow_links();
  const std::int64_t p = parameter_count(s.model);
  ParallelDescription& how = s.training.parallel;
  how.data = 4;
  const auto sums = [&](CollectiveKind kind, std::int64_t ranks, std::int64_t bytes) {
    return time_for(s, {kind, GroupKind::data, DType::bf16, ranks, bytes});
  };
  for (const DataStrategy strategy : {DataStrategy::ddp, DataStrategy::zero1}) {
    how.strategy = strategy;
    const double expected = sums(CollectiveKind::all_reduce, 4, 2 * p);
    EXPECT_GT(expected, 1.0);
    EXPECT_NEAR(least(s, {}), expected, 1e-12 * expected);
  }
  for (const DataStrategy strategy : {DataStrategy::zero2, DataStrategy::fsdp, DataStrategy::fsdp1}) {
    how.strategy = strategy;
    const double expected = sums(CollectiveKind::reduce_scatter, 4, 2 * p);
    EXPECT_NEAR(least(s, {}), expected, 1e-12 * expected);
  }
  how.strategy = DataStrategy::hsdp;
  how.replicate = 2;
  EXPECT_LT(least(s, {}), 1e-3) << "its groups are not looked at";
  how.replicate = 1;
  how.strategy = DataStrategy::ddp;
  how.tensor = 2;
  EXPECT_NEAR(least(s, {}), sums(CollectiveKind::all_reduce, 4, p), 1e-3);
  how.tensor = 1;
  how.data = 2;
  EXPECT_NEAR(least(s, {}), sums(CollectiveKind::all_reduce, 2, 2 * p), 1e-3);
  how.data = 1;
  EXPECT_LT(least(s, {}), 1e-3) << "nobody to send to";
  how.data = 4;
  s.training.lora.emplace();
  EXPECT_LT(least(s, {}), 1e-3) << "adapters are small";
}

// Experts on ranks of their own are no part of what all ranks add up; where layers are sharded, no expert of another
// rank is.
TEST(PlanTimeBounds, ExpertsAreAddedUpApart) {
  Scenario s = slow_links(
      "{family: composed, layers: 4, heads: 4, hidden: 64, feed_forward: 128, vocabulary: 500, positions: rotary, "
      "norm: "
      "rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: false, "
      "experts: 6}");
  const std::int64_t p = parameter_count(s.model), experts = 4 * 6 * 3 * 64 * 128;
  ParallelDescription& how = s.training.parallel;
  how.data = 6;
  how.expert = 3;
  const double kept = time_for(s, {CollectiveKind::all_reduce, GroupKind::data, DType::bf16, 6, 2 * (p - experts)});
  EXPECT_NEAR(least(s, {}), kept, 1e-5 * kept) << "a byte more or less";
  how.strategy = DataStrategy::fsdp;
  const double sharded =
      time_for(s, {CollectiveKind::reduce_scatter, GroupKind::data, DType::bf16, 6, 2 * (p - experts)});
  EXPECT_NEAR(least(s, {}), sharded, 1e-5 * sharded);
}

// Keys and values of 32 tokens (of 64, on two ranks), of three sequences: two tensors of 4 heads of 16 numbers, in 16
// bits once forward and once backward, and their gradients in fp32 in each turn; in eight blocks, five times.
TEST(PlanTimeBounds, RanksOfASequenceExchangeKeysAndValues) {
  Scenario s = slow_links();
  ParallelDescription& how = s.training.parallel;
  how.strategy = DataStrategy::hsdp;  // whose sums are not looked at
  const auto expected = [&](std::int64_t ranks, bool gathers, std::int64_t numbers, double layers) {
    const auto one = [&](CollectiveKind kind, DType type, std::int64_t bytes) {
      return time_for(s, {kind, GroupKind::context, type, ranks, bytes});
    };
    const double keys = gathers
                            ? one(CollectiveKind::all_gather, DType::bf16, 2 * numbers * ranks)
                            : static_cast<double>(ranks - 1) * one(CollectiveKind::send_recv, DType::bf16, 2 * numbers);
    const double gradients = static_cast<double>(ranks) * one(CollectiveKind::send_recv, DType::fp32, 4 * numbers);
    return layers * (2 * keys + gradients);
  };
  how.context = 2;
  double time = expected(2, true, 2 * 3 * 32 * 4 * 16, 8 * 5);
  EXPECT_GT(time, 1.0);
  EXPECT_NEAR(least(s, {}), time, 1e-9 * time);
  how.context = 4;
  time = expected(4, true, 2 * 3 * 16 * 4 * 16, 8 * 5);
  EXPECT_NEAR(least(s, {}), time, 1e-9 * time);
  how.rotation = ContextRotation::all_to_all;
  time = expected(4, false, 2 * 3 * 16 * 4 * 16, 8 * 5);
  EXPECT_NEAR(least(s, {}), time, 1e-9 * time);
  how.tensor = 2;
  time = expected(4, false, 2 * 3 * 16 * 2 * 16, 8 * 5);
  EXPECT_NEAR(least(s, {}), time, 1e-9 * time) << "each has two of the heads";
  s.model.key_value_heads = 1;
  how.tensor = 2;
  time = expected(4, false, 2 * 3 * 16 * 1 * 16, 8 * 5);
  EXPECT_NEAR(least(s, {}), time, 1e-9 * time) << "and one at least";
  s.training.gradient_accumulation = 3;
  how.pipeline = 2;
  time = expected(4, false, 2 * 3 * 16 * 1 * 16, 8 * 3 / 2.0);
  EXPECT_NEAR(least(s, {}), time, 1e-9 * time) << "a stage has half of the blocks";
}

// Of each turn around the ranks: two kernels of attention and ten pointwise ones, of a host whose quickest part counts.
TEST(PlanTimeBounds, TurnsCostTheHost) {
  Scenario s = quick_step();
  s.training.parallel.context = 4;
  s.host.scale = 0.5;
  s.host.class_costs[static_cast<std::size_t>(HostClass::attention_fused)] = Seconds{3.0};
  s.host.class_costs[static_cast<std::size_t>(HostClass::pointwise)] = Seconds{7.0};
  const double turn = 2 * 3 + 10 * 7, turns = 4 * 8 * 5;
  HostParts& parts = s.host.parts;
  for (double* part :
       {&parts.python, &parts.dispatcher, &parts.autograd, &parts.allocation, &parts.launch, &parts.backward}) {
    parts = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6};
    *part = 0.8;
    EXPECT_NEAR(least(s, {}), turn * turns * 0.5 * 0.8, 1e-6);
  }
  s.training.parallel.pipeline = 4;
  EXPECT_NEAR(least(s, {}), turn * turns * 0.5 * 0.8 / 4, 1e-6);
  s.training.parallel.pipeline = 1;
  s.training.parallel.context = 1;
  EXPECT_LT(least(s, {}), 1e-3) << "alone there are no turns";
}

}  // namespace
}  // namespace ridgeline
