// Pipelines of Megatron-LM as a whole: what stages hold, what they exchange, against links and over many micro-batches;
// and layers split by hand inside the stages of PyTorch's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"
#include "sim/workload/families/megatron.h"

namespace ridgeline {
namespace {

using Sets = std::vector<std::string>;

/// GPT-2 with four micro-batches of two sequences a step on servers of eight.
Scenario scenario(const Sets& sets) {
  ScenarioSource source;
  source.text =
      "cluster: dgx-a100\nmodel: gpt2\ntraining: {micro_batch: 2, sequence_length: 512, gradient_accumulation: 4, "
      "precision: amp-bf16, attention: flash, optimizer: {name: adamw}, parallel: {framework: megatron, data: 1}}\n";
  source.text_name = "test";
  for (const std::string& set : sets) source.overrides.push_back(config::parse_override(set));
  return load_scenario(source);
}

Sets degrees(int tensor, int pipeline, int data, Sets more = {}) {
  const std::string key = "training.parallel.";
  more.insert(more.begin(), {key + "tensor=" + std::to_string(tensor), key + "pipeline=" + std::to_string(pipeline),
                             key + "data=" + std::to_string(data)});
  return more;
}

Prediction predicted(const Sets& sets) { return predict(scenario(sets), "analytic"); }

double step_of(const Sets& sets) {
  Session session;
  return StepRun(session, scenario(sets), "analytic").timeline().step.value();
}

std::int64_t count(const Prediction& p, CollectiveKind kind, GroupKind group) {
  for (const CommunicationUse& use : p.parallel->communication)
    if (use.kind == kind && use.group == group) return use.count;
  return 0;
}

constexpr const char* kInterleaved = "training.parallel.schedule=interleaved";

TEST(MegatronPipeline, of_one_stage_is_that_without_a_pipeline_to_the_bit) {
  const Prediction none = predicted({"training.parallel.tensor=2"}), one = predicted(degrees(2, 1, 1));
  EXPECT_EQ(none.step.time.value(), one.step.time.value());
  EXPECT_EQ(none.memory.device_used, one.memory.device_used);
}

TEST(MegatronPipeline, stages_hold_the_network_and_the_table_twice) {
  Session session;
  const std::int64_t all = StepRun(session, scenario({}), "analytic").trace().parameters;
  const std::int64_t table = families::padded_vocabulary(50257, 1) * 768;
  for (const Sets& more : {Sets{}, Sets{kInterleaved}}) {
    std::int64_t sum = 0;
    for (int rank = 0; rank < 2; ++rank) {
      Scenario stage = scenario(degrees(1, 2, 1, more));
      stage.training.parallel.pipeline_rank = rank;
      sum += StepRun(session, stage, "analytic").trace().parameters;
    }
    EXPECT_EQ(sum, all + table);
  }
}

TEST(MegatronPipeline, every_arrangement_is_predicted) {
  for (const Sets& sets :
       {degrees(1, 4, 2), degrees(2, 2, 2), degrees(4, 2, 1, {"training.parallel.sequence_parallel=true"}),
        degrees(2, 2, 2, {"training.parallel.strategy=zero1", "training.gradient_clipping=1.0"}),
        degrees(2, 2, 2, {kInterleaved, "training.parallel.virtual_stages=3"}),
        degrees(1, 2, 4, {"training.precision=amp-fp16", "training.activation_checkpointing=block"}),
        degrees(2, 4, 1, {"training.attention=eager", "training.activation_checkpointing=selective"})}) {
    const Prediction p = predicted(sets);
    ASSERT_TRUE(p.parallel);
    EXPECT_EQ(p.parallel->gpus, 8);
    std::int64_t ranks = 0;
    for (const RankClass& one : p.parallel->ranks) ranks += one.ranks;
    EXPECT_EQ(ranks, 8);
    EXPECT_GT(p.parallel->bubble.value(), 0.0);
    EXPECT_LE(p.parallel->efficiency, 1.0);
    EXPECT_LE(p.step.low.value(), p.step.time.value());
    Seconds classes = p.idle;
    for (const Seconds t : p.time_by_class) classes += t;
    EXPECT_NEAR(classes.value(), p.step.time.value(), 1e-6 * p.step.time.value());
  }
}

TEST(MegatronPipeline, stages_meet_at_the_end_of_a_step) {
  const Prediction p = predicted(degrees(1, 2, 1, {"training.precision=amp-fp16", "training.gradient_clipping=1.0"}));
  EXPECT_EQ(count(p, CollectiveKind::all_reduce, GroupKind::embedding), 1);
  EXPECT_EQ(count(p, CollectiveKind::all_reduce, GroupKind::model), 2);  // overflow and norm
  const Prediction apart = predicted(degrees(1, 2, 1, {"model.tie_embeddings=false"}));
  EXPECT_EQ(count(apart, CollectiveKind::all_reduce, GroupKind::embedding), 0);
  EXPECT_EQ(count(apart, CollectiveKind::all_reduce, GroupKind::model), 0);
}

TEST(MegatronPipeline, stages_that_differ_still_take_one_step) {
  const Prediction p = predicted(degrees(2, 4, 1, {"training.gradient_clipping=1.0"}));
  for (const RankClass& one : p.parallel->ranks)
    EXPECT_NEAR(one.step.value(), p.step.time.value(), 1e-3 * p.step.time.value()) << one.name;
}

TEST(MegatronPipeline, micro_batches_beyond_the_warm_up_take_equally_long) {
  for (const Sets& more : {Sets{}, Sets{kInterleaved}}) {
    const auto at = [&](int m) {
      Sets sets = degrees(2, 2, 1, more);
      sets.push_back("training.gradient_accumulation=" + std::to_string(m));
      return step_of(sets);
    };
    const double each = (at(24) - at(16)) / 8.0;
    EXPECT_NEAR((at(96) - at(32)) / 64.0, each, 0.02 * each);
    EXPECT_NEAR((at(1 << 14) - at(96)) / ((1 << 14) - 96), each, 0.02 * each);
  }
}

TEST(MegatronPipeline, faster_links_are_never_slower) {
  double last = 1e9;
  for (const char* rate : {"1 GB/s", "10 GB/s", "100 GB/s"}) {
    const double step = step_of(degrees(2, 2, 2, {std::string("cluster.links.rate=") + rate}));
    EXPECT_LE(step, 1.001 * last) << rate;
    last = step;
  }
}

// Parameters in 16 bits, gradients added up in fp32, and three fp32 tensors of the optimizer; of the last the
// distributed optimizer keeps a share.
TEST(MegatronPipeline, a_stage_keeps_eighteen_bytes_a_parameter) {
  Session session;
  for (const bool distributed : {false, true}) {
    Sets sets = degrees(1, 2, 4);
    if (distributed) sets.push_back("training.parallel.strategy=zero1");
    const Scenario s = scenario(sets);
    const StepRun run(session, s, "analytic");
    const auto& at_peak = run.pipeline()->fullest().memory().at_peak;
    const auto of = [&](Category category) { return static_cast<double>(at_peak[static_cast<std::size_t>(category)]); };
    const auto parameters = static_cast<double>(run.pipeline()->fullest().trace().parameters);
    // Blocks may be larger than their tensors.
    const auto expect = [&](Category category, double bytes) {
      EXPECT_GE(of(category), bytes * parameters);
      EXPECT_LE(of(category), 1.02 * bytes * parameters);
    };
    expect(Category::weights, 2.0);
    expect(Category::gradients, 4.0);
    expect(Category::optimizer_state, distributed ? 3.0 : 12.0);
  }
}

// A stage of 1F1B holds as many micro-batches as stages follow it, and itself: what recomputation keeps of one is the
// input of each of its blocks and of the stage.
TEST(MegatronPipeline, earlier_stages_hold_more_micro_batches) {
  const Prediction p = predicted(degrees(
      1, 4, 1,
      {"training.activation_checkpointing=block", "training.gradient_accumulation=16", "training.micro_batch=8"}));
  ASSERT_EQ(p.parallel->ranks.size(), 4u);
  const double input = 8.0 * 512.0 * 768.0 * 2.0;
  const auto allocated = [&](std::size_t i) { return static_cast<double>(p.parallel->ranks[i].memory.peak_allocated); };
  EXPECT_NEAR(allocated(1) - allocated(2), 3.0 * input, 0.1 * input);
}

TEST(MegatronPipeline, of_a_thousand_gpus_is_answered_through_classes) {
  const Prediction p = predicted(degrees(8, 16, 8,
                                         {"model=gpt2-xl", "model.heads=32", "model.hidden=2048", "model.layers=48",
                                          "cluster.nodes=128", "training.gradient_accumulation=64"}));
  EXPECT_EQ(p.parallel->gpus, 1024);
  EXPECT_LE(p.parallel->ranks.size(), 3u);
  std::int64_t ranks = 0;
  for (const RankClass& one : p.parallel->ranks) ranks += one.ranks;
  EXPECT_EQ(ranks, 1024);
}

TEST(MegatronPipeline, groups_that_reach_over_stages_leave_the_node_with_them) {
  const Scenario near = scenario(degrees(2, 2, 2, {"training.precision=amp-fp16"})),
                 far = scenario(degrees(4, 4, 2, {"cluster.nodes=4"}));
  const auto placed = [](const Scenario& s, GroupKind group, std::int64_t ranks) {
    return placement_of(s, {CollectiveKind::all_reduce, group, DType::fp32, ranks, 4});
  };
  EXPECT_EQ(placed(near, GroupKind::model, 4).nodes, 1);
  EXPECT_EQ(placed(near, GroupKind::embedding, 2).nodes, 1);
  EXPECT_EQ(placed(far, GroupKind::model, 16).nodes, 4);
  EXPECT_EQ(placed(far, GroupKind::model, 16).ranks_a_node, 4);
  EXPECT_EQ(placed(far, GroupKind::embedding, 2).nodes, 2);
  EXPECT_EQ(placed(far, GroupKind::embedding, 2).groups_a_nic, 8);
}

TEST(MegatronPipeline, refuses_what_megatron_refuses) {
  const auto message = [](const Sets& sets) {
    try {
      scenario(sets);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(message(degrees(1, 8, 1)), AllOf(HasSubstr("parallel.pipeline"), HasSubstr("12 layers")));
  EXPECT_THAT(message(degrees(1, 4, 1, {kInterleaved, "training.parallel.virtual_stages=2"})),
              AllOf(HasSubstr("virtual_stages"), HasSubstr("4 ranks with 2 each")));
  EXPECT_THAT(message(degrees(1, 4, 1, {"training.parallel.virtual_stages=3"})), HasSubstr("one stage"));
  EXPECT_THAT(message(degrees(1, 2, 1, {kInterleaved, "training.gradient_accumulation=5"})),
              AllOf(HasSubstr("gradient_accumulation"), HasSubstr("multiple of 2")));
  EXPECT_THAT(message(degrees(1, 2, 1, {"training.parallel.schedule=gpipe"})), HasSubstr("1f1b and interleaved"));
  EXPECT_THAT(message(degrees(4, 4, 1)), HasSubstr("8 GPUs"));
  EXPECT_THAT(message(degrees(2, 2, 4)), AllOf(HasSubstr("parallel.data"), HasSubstr("8 GPUs")));
  EXPECT_THAT(message(degrees(1, 2, 1, {"model=bert-base", "model.head=masked-lm"})),
              HasSubstr("family gpt2 and llama"));
}

TEST(SplitStages, by_hand_add_up_twice_a_block_and_pass) {
  const Sets sets{"training.parallel.framework=torch", "training.parallel.tensor_style=by-hand",
                  "training.precision=bf16", "model.tie_embeddings=false"};
  const Prediction whole = predicted(degrees(1, 2, 1, sets)), split = predicted(degrees(2, 2, 1, sets)),
                   four = predicted(degrees(2, 2, 2, sets));
  EXPECT_EQ(count(whole, CollectiveKind::all_reduce, GroupKind::tensor), 0);
  // Four a block and micro-batch, of six blocks; and two of each block in the pass that learns the shapes, once.
  EXPECT_EQ(count(split, CollectiveKind::all_reduce, GroupKind::tensor), 4 * 6 * 4);
  EXPECT_EQ(four.parallel->gpus, 8);
  EXPECT_LT(split.memory.peak_allocated, whole.memory.peak_allocated);
  EXPECT_GT(count(four, CollectiveKind::all_reduce, GroupKind::data), 0);
}

// A stage sends its share of the rows: tensor parallel ranks gather them on the other side. Both directions are of one
// size, whether a rank sends only, receives only or both.
TEST(MegatronPipeline, a_message_is_the_rows_of_a_micro_batch_over_the_tensor_ranks) {
  Session session;
  for (const int tensor : {1, 2, 4})
    for (int rank = 0; rank < 2; ++rank) {
      Scenario stage = scenario(degrees(tensor, 2, 1));
      stage.training.parallel.pipeline_rank = rank;
      const StepRun run(session, stage, "analytic");
      int messages = 0;
      for (const Op& op : run.trace().ops) {
        const auto* collective = std::get_if<Collective>(&op);
        if (collective == nullptr || collective->kind != CollectiveKind::send_recv) continue;
        EXPECT_EQ(collective->bytes, 2 * 512 * 768 * 2 / tensor) << tensor << ' ' << rank;
        ++messages;
      }
      EXPECT_GT(messages, 0);
    }
}

// Of m micro-batches each of p equal stages waits for p - 1 of m + p - 1, though it is the host that waits.
TEST(MegatronPipeline, stages_wait_for_each_other_as_long_as_the_schedule_says) {
  for (const int micro_batches : {8, 32}) {
    const Prediction p = predicted(
        degrees(1, 4, 1,
                {"model.hidden=2048", "model.heads=16", "model.layers=16", "model.vocabulary=512",
                 "training.micro_batch=8", "training.gradient_accumulation=" + std::to_string(micro_batches)}));
    const double share = ratio(p.parallel->bubble, p.step.time);
    EXPECT_NEAR(share, 3.0 / (micro_batches + 3.0), 0.35 * 3.0 / (micro_batches + 3.0)) << micro_batches;
  }
}

// nvFuser and the fuser before it draw four random numbers at once and use them all; Triton's kernels, which
// Megatron-LM takes since PyTorch 2.2, use one of them.
TEST(MegatronPipeline, dropout_in_kernels_of_torch_jit_uses_all_four_numbers_of_a_draw) {
  const auto kernel = [](const char* software) {
    Session session;
    const StepRun run(session,
                      scenario({"model.dropout=0.1", "training.attention=eager", std::string("software=") + software}),
                      "analytic");
    for (const Op& op : run.trace().ops)
      if (const auto* fused = std::get_if<FusedKernel>(&op); fused != nullptr && fused->name == "bias_dropout_add")
        return *fused;
    ADD_FAILURE() << "no such kernel";
    return FusedKernel{};
  };
  FusedKernel by_four = kernel("pytorch-1.13");
  const FusedKernel by_one = kernel("pytorch-2.5");
  EXPECT_EQ(by_four.arithmetic, by_one.arithmetic / 4);
  by_four.arithmetic = by_one.arithmetic;
  EXPECT_EQ(by_four, by_one);
}

// The last stage runs back what it has just run: without running it again it does three passes where the others do
// four.
TEST(MegatronPipeline, a_last_stage_that_recomputes_nothing_is_busy_for_less) {
  const Sets all = degrees(1, 4, 1, {"training.activation_checkpointing=block", "training.gradient_accumulation=16"});
  Sets less = all;
  less.push_back("training.parallel.last_stage_recomputes=false");
  const Prediction every = predicted(all), others = predicted(less);
  EXPECT_LT(others.parallel->ranks.back().busy, every.parallel->ranks.back().busy);
  EXPECT_EQ(others.parallel->ranks.front().busy.value(), every.parallel->ranks.front().busy.value());
  EXPECT_LT(others.step.time, every.step.time);
}

TEST(MegatronPipeline, keys_of_megatrons_own_code_are_refused_elsewhere) {
  for (const char* key : {"blocking_wait=true", "fp32_copies=false", "fp16_cross_entropy=true",
                          "vocabulary_multiple=64", "last_stage_recomputes=false"}) {
    const std::string set = std::string("training.parallel.") + key;
    EXPECT_THROW(scenario({"training.parallel.framework=torch", set}), UserError) << key;
  }
  const std::string fp16_loss = "training.parallel.fp16_cross_entropy=true";
  EXPECT_THROW(scenario({fp16_loss}), UserError);  // amp-bf16
  EXPECT_NO_THROW(scenario({fp16_loss, "training.precision=amp-fp16"}));
  EXPECT_THROW(scenario({"training.parallel.fp32_copies=false", "training.parallel.strategy=zero1"}), UserError);
  // One stage has no last one apart, and an interleaved rank's last pass is not what it runs back next.
  EXPECT_THROW(scenario({"training.parallel.last_stage_recomputes=false"}), UserError);
  EXPECT_THROW(scenario(degrees(1, 2, 1, {kInterleaved, "training.parallel.last_stage_recomputes=false"})), UserError);
}

}  // namespace
}  // namespace ridgeline
