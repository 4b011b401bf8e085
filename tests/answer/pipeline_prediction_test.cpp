// Pipelines as a whole: against the product without one, against links, over many micro-batches and GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using Sets = std::vector<std::string>;

Scenario pipeline_scenario(const Sets& sets, const std::string& cluster = "hgx-h200") {
  ScenarioSource source;
  source.text = "cluster: " + cluster +
                "\nmodel: gpt2\ntraining: {micro_batch: 4, sequence_length: 512, gradient_accumulation: 8, precision: "
                "bf16, optimizer: {name: adamw, implementation: fused}}\n";
  source.text_name = "test";
  source.overrides.push_back(config::parse_override("model.tie_embeddings=false"));
  for (const std::string& set : sets) source.overrides.push_back(config::parse_override(set));
  return load_scenario(source);
}

/// Of `ranks` GPUs in one pipeline.
Sets pipeline(int ranks, Sets more = {}) {
  more.insert(more.begin(), {"training.parallel.data=1", "training.parallel.pipeline=" + std::to_string(ranks)});
  return more;
}

Prediction pipeline_predicted(const Sets& sets, const std::string& cluster = "hgx-h200") {
  return predict(pipeline_scenario(sets, cluster), "analytic");
}

double step_of(const Sets& sets, const std::string& cluster = "hgx-h200") {
  Session session;
  return StepRun(session, pipeline_scenario(sets, cluster), "analytic").timeline().step.value();
}

constexpr const char* kHostless = "host.scale=0.01";

TEST(PipelinePrediction, of_one_stage_is_that_without_a_pipeline_to_the_bit) {
  const Prediction none = pipeline_predicted({"training.parallel.data=2"}),
                   one = pipeline_predicted({"training.parallel.data=2", "training.parallel.pipeline=1"});
  EXPECT_EQ(none.step.time.value(), one.step.time.value());
  EXPECT_EQ(none.step.high.value(), one.step.high.value());
  EXPECT_EQ(none.memory.device_used, one.memory.device_used);
}

TEST(PipelinePrediction, stages_hold_the_parameters_of_the_model) {
  Session session;
  const Scenario whole = pipeline_scenario({"training.parallel.data=1"});
  const std::int64_t all = StepRun(session, whole, "analytic").trace().parameters;
  for (const char* schedule : {"1f1b", "interleaved", "zbv"}) {
    std::int64_t sum = 0;
    for (int rank = 0; rank < 3; ++rank) {
      Scenario stage = pipeline_scenario(pipeline(3, {std::string("training.parallel.schedule=") + schedule}));
      stage.training.parallel.pipeline_rank = rank;
      sum += StepRun(session, stage, "analytic").trace().parameters;
    }
    EXPECT_EQ(sum, all) << schedule;
  }
}

// Transformers' llama, a generic transformer, and the one written out differ in labels and positions alone.
TEST(PipelinePrediction, stages_of_a_llama_are_as_busy_whoever_wrote_it) {
  constexpr double kLabelsAndPositions = 0.01;
  for (const char* schedule : {"1f1b", "interleaved", "zb1p", "zbv"}) {
    const auto of = [&](const char* code) {
      return pipeline_predicted(pipeline(
          4, {"model=llama-3-8b", std::string("model.code=") + code, "model.layers=8", "training.micro_batch=1",
              "training.attention=flash", std::string("training.parallel.schedule=") + schedule}));
    };
    const Prediction plain = of("plain"), transformers = of("transformers");
    ASSERT_EQ(plain.parallel->ranks.size(), transformers.parallel->ranks.size()) << schedule;
    for (std::size_t i = 0; i < plain.parallel->ranks.size(); ++i)
      EXPECT_NEAR((transformers.parallel->ranks[i].busy / plain.parallel->ranks[i].busy).value(), 1.0,
                  kLabelsAndPositions)
          << schedule << " class " << i;
  }
}

TEST(PipelinePrediction, every_schedule_is_predicted) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb1p", "zbv", "interleaved-zero-bubble"}) {
    const Prediction p = pipeline_predicted(pipeline(4, {std::string("training.parallel.schedule=") + schedule}));
    ASSERT_TRUE(p.parallel) << schedule;
    EXPECT_EQ(p.parallel->gpus, 4);
    std::int64_t ranks = 0;
    for (const RankClass& one : p.parallel->ranks) {
      ranks += one.ranks;
      EXPECT_LE(one.memory.needed_high, p.memory.needed_high) << schedule;
    }
    EXPECT_EQ(ranks, 4) << schedule;
    EXPECT_GT(p.parallel->bubble.value(), 0.0) << schedule;
    EXPECT_GT(p.parallel->efficiency, 0.2) << schedule;
    EXPECT_LE(p.parallel->efficiency, 1.0) << schedule;
    EXPECT_NEAR(p.step.samples_per_s * p.step.time.value(), 32.0, 1e-9) << schedule;
    EXPECT_LE(p.step.low.value(), p.step.time.value());
    EXPECT_GE(p.step.high.value(), p.step.time.value());
    // What a step is made of adds up to it.
    Seconds classes = p.idle;
    for (const Seconds t : p.time_by_class) classes += t;
    EXPECT_NEAR(classes.value(), p.step.time.value(), 1e-6 * p.step.time.value()) << schedule;
  }
}

TEST(PipelinePrediction, earlier_stages_of_1f1b_hold_more_micro_batches) {
  const Prediction p = pipeline_predicted(pipeline(4));
  ASSERT_EQ(p.parallel->ranks.size(), 4u);
  EXPECT_GT(p.parallel->ranks[1].memory.peak_allocated, p.parallel->ranks[2].memory.peak_allocated);
  const auto gpipe = pipeline_predicted(pipeline(4, {"training.parallel.schedule=gpipe"}));
  EXPECT_GT(gpipe.parallel->ranks[1].memory.peak_allocated, p.parallel->ranks[1].memory.peak_allocated);
}

TEST(PipelinePrediction, micro_batches_beyond_the_warm_up_take_equally_long) {
  for (const char* schedule : {"1f1b", "zbv"}) {
    const auto at = [&](int m) {
      return step_of(pipeline(2, {std::string("training.parallel.schedule=") + schedule, kHostless,
                                  "training.gradient_accumulation=" + std::to_string(m)}));
    };
    // The first are written out, the last are played from a shorter step.
    const double each = at(5) - at(4);
    EXPECT_NEAR(at(7) - at(6), each, 0.01 * each) << schedule;
    EXPECT_NEAR((at(96) - at(32)) / 64.0, each, 0.01 * each) << schedule;
    EXPECT_NEAR((at(1 << 16) - at(96)) / ((1 << 16) - 96), each, 0.01 * each) << schedule;
  }
}

TEST(PipelinePrediction, the_bubble_vanishes_over_many_micro_batches) {
  double last = 1.0;
  for (const int m : {4, 16, 64, 256}) {
    const Prediction p =
        pipeline_predicted(pipeline(4, {kHostless, "training.gradient_accumulation=" + std::to_string(m)}));
    // Of the rank that works most.
    Seconds bubble = p.step.time;
    for (const RankClass& one : p.parallel->ranks) bubble = std::min(bubble, one.bubble);
    const double share = ratio(bubble, p.step.time);
    EXPECT_LT(share, last) << m;
    last = share;
  }
  EXPECT_LT(last, 0.02);
}

TEST(PipelinePrediction, faster_links_are_never_slower) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zbv"}) {
    double last = 1e9;
    for (const char* rate : {"0.1 GB/s", "1 GB/s", "3 GB/s", "10 GB/s", "100 GB/s"}) {
      const double step = step_of(pipeline(
          4, {std::string("training.parallel.schedule=") + schedule, std::string("cluster.links.rate=") + rate}));
      EXPECT_LE(step, 1.001 * last) << schedule << " at " << rate;
      last = step;
    }
  }
}

TEST(PipelinePrediction, stretches_of_kernels_are_played_as_their_kernels) {
  Session session;
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const Scenario s = pipeline_scenario(pipeline(2, {std::string("training.parallel.schedule=") + schedule}));
    std::vector<std::unique_ptr<StepRun>> runs;
    std::vector<PipelineClass> classes;
    for (int rank = 0; rank < 2; ++rank) {
      Scenario own = s;
      own.training.parallel.pipeline_rank = rank;
      runs.push_back(std::make_unique<StepRun>(session, own, "analytic"));
      classes.push_back({&runs.back()->program(), runs.back()->times(), static_cast<std::size_t>(rank)});
    }
    const std::vector<std::size_t> class_of{0, 1};
    const auto shape = parallel::shape_of(s.training.parallel, s.training.gradient_accumulation);
    PipelineOptions coarse, fine;
    fine.longest_stretch = 1;
    const double one = run_pipeline(classes, class_of, shape, s.gpu, s.host, fine, 0).step.value(),
                 some = run_pipeline(classes, class_of, shape, s.gpu, s.host, coarse, 0).step.value();
    EXPECT_NEAR(some, one, 2e-3 * one) << schedule;
  }
}

TEST(PipelinePrediction, replicas_exchange_gradients_once_a_step) {
  const Prediction alone = pipeline_predicted(pipeline(2)),
                   four = pipeline_predicted({"training.parallel.pipeline=2", "training.parallel.data=4"});
  EXPECT_EQ(four.parallel->gpus, 8);
  const auto gradients = [](const Prediction& p) {
    std::int64_t count = 0;
    for (const CommunicationUse& use : p.parallel->communication)
      if (use.group == GroupKind::data) count += use.count;
    return count;
  };
  EXPECT_EQ(gradients(alone), 0);
  EXPECT_GT(gradients(four), 0);
  EXPECT_LT(gradients(four), 16);
  EXPECT_GT(four.step.time.value(), alone.step.time.value());
  EXPECT_NEAR(four.step.samples_per_s * four.step.time.value(), 128.0, 1e-9);
}

TEST(PipelinePrediction, sharded_stages_gather_again_and_reduce_once) {
  const Sets sets{"training.parallel.pipeline=2", "training.parallel.data=4", "training.parallel.strategy=fsdp"};
  const Prediction whole = pipeline_predicted({"training.parallel.pipeline=2", "training.parallel.data=4"}),
                   cut = pipeline_predicted(sets);
  const auto count = [](const Prediction& p, CollectiveKind kind) {
    std::int64_t sum = 0;
    for (const CommunicationUse& use : p.parallel->communication)
      if (use.kind == kind && use.group != GroupKind::pipeline) sum += use.count;
    return sum;
  };
  // Six blocks and what is beside them.
  EXPECT_EQ(count(cut, CollectiveKind::reduce_scatter), 7);
  EXPECT_GE(count(cut, CollectiveKind::all_gather), 8 * 6);
  EXPECT_EQ(count(whole, CollectiveKind::all_gather), 0);
  EXPECT_GT(cut.step.time.value(), whole.step.time.value());
  // Three quarters of the states lie elsewhere.
  EXPECT_LT(cut.memory.at_peak[static_cast<std::size_t>(Category::optimizer_state)],
            0.3 * static_cast<double>(whole.memory.at_peak[static_cast<std::size_t>(Category::optimizer_state)]));
}

TEST(PipelinePrediction, thousands_of_gpus_are_answered_through_classes) {
  const auto before = std::chrono::steady_clock::now();
  const Prediction p = pipeline_predicted({"model=gpt2-xl", "model.tie_embeddings=false", "cluster.nodes=512",
                                           "training.parallel.pipeline=16", "training.gradient_accumulation=64"},
                                          "hgx-h100");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(p.parallel->gpus, 4096);
  EXPECT_LE(p.parallel->ranks.size(), 3u);
  std::int64_t ranks = 0;
  for (const RankClass& one : p.parallel->ranks) ranks += one.ranks;
  EXPECT_EQ(ranks, 4096);
  EXPECT_LT(took.count(), 3.0);  // well under a second without the debugger's options
}

TEST(PipelinePlacement, stages_of_different_nodes_share_their_nics) {
  const Scenario s = pipeline_scenario({"cluster.nodes=4", "training.parallel.pipeline=8", "training.parallel.data=4"});
  EXPECT_EQ(stride_of(s.training.parallel, GroupKind::pipeline), 4);
  // Two stages a node: the first and the second are neighbours, the second and the third are not.
  const double inside = time_between_stages(s, 0, 1, 1 << 24).time.value(),
               outside = time_between_stages(s, 1, 2, 1 << 24).time.value();
  EXPECT_GT(outside, 3.0 * inside);
  EXPECT_EQ(time_between_stages(s, 1, 2, 1 << 24).time.value(), time_between_stages(s, 2, 1, 1 << 24).time.value());
}

TEST(PipelineScenario, refuses_what_does_not_fit_together) {
  const auto message = [](const Sets& sets) {
    try {
      pipeline_scenario(sets);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(message({"training.parallel.pipeline=16"}), AllOf(HasSubstr("parallel.pipeline"), HasSubstr("8 GPUs")));
  EXPECT_THAT(message(pipeline(4, {"training.parallel.schedule=1f1"})), HasSubstr("1f1b"));
  EXPECT_THAT(message(pipeline(4, {"training.gradient_accumulation=3"})),
              AllOf(HasSubstr("gradient_accumulation"), HasSubstr("4 stages")));
  EXPECT_THAT(message(pipeline(4, {"training.gradient_accumulation=9", "training.parallel.schedule=interleaved"})),
              HasSubstr("rounds"));
  EXPECT_THAT(message(pipeline(8, {"training.parallel.schedule=interleaved"})),
              AllOf(HasSubstr("16 stages"), HasSubstr("12 blocks")));
  EXPECT_THAT(message(pipeline(2, {"training.parallel.virtual_stages=2"})), HasSubstr("one stage a rank"));
  EXPECT_THAT(message({"training.parallel.schedule=gpipe"}), HasSubstr("two stages or more"));
  EXPECT_THAT(message(pipeline(2, {"training.gradient_clipping=1.0"})), HasSubstr("gradient_clipping"));
  EXPECT_THAT(message(pipeline(2, {"training.compile=true"})), HasSubstr("several GPUs"));
  EXPECT_THAT(message(pipeline(2, {"training.precision=amp-fp16"})), HasSubstr("scales no losses"));
  EXPECT_THAT(message(pipeline(2, {"training.activation_checkpointing=block", "training.parallel.schedule=zb1p"})),
              HasSubstr("activation_checkpointing"));
}

}  // namespace
}  // namespace ridgeline
