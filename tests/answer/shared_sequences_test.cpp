// Steps of ranks that share sequences: time, memory and exchanges against those of one rank, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/answer/advice.h"
#include "sim/answer/parallel/communication.h"
#include "sim/answer/prediction.h"
#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Changes = std::vector<std::string>;

/// A Llama of eight blocks with long sequences on the H200s of one server.
Scenario long_scenario(const Changes& changes, const std::string& cluster = "hgx-h200") {
  ScenarioSource source;
  source.text = "cluster: " + cluster +
                "\nmodel: {family: llama, code: plain, layers: 8, heads: 16, key_value_heads: 8, hidden: 2048, "
                "feed_forward: 5632, vocabulary: 32000, max_positions: 131072}\n"
                "training:\n  micro_batch: 1\n  sequence_length: 16384\n  precision: bf16\n"
                "  optimizer: {name: adamw, implementation: fused}\n  parallel:\n    data: 1\n";
  source.text_name = "long";
  for (const std::string& change : changes) source.overrides.push_back(config::parse_override(change));
  return load_scenario(source);
}

Prediction long_step(const Changes& changes, const std::string& cluster = "hgx-h200") {
  return predict(long_scenario(changes, cluster), "analytic");
}

std::string of_context(std::int64_t ranks) { return "training.parallel.context=" + std::to_string(ranks); }

TEST(SharedSequences, of_one_rank_is_that_without_the_key_to_the_bit) {
  for (const Changes& changes : {Changes{}, Changes{"training.parallel.data=4"}}) {
    Changes with = changes;
    with.push_back(of_context(1));
    const Prediction none = long_step(changes), one = long_step(with);
    EXPECT_EQ(none.step.time.value(), one.step.time.value());
    EXPECT_EQ(none.step.high.value(), one.step.high.value());
    EXPECT_EQ(none.memory.device_used, one.memory.device_used);
    EXPECT_EQ(none.step.samples_per_s, one.step.samples_per_s);
  }
}

TEST(SharedSequences, more_ranks_take_less_time_and_no_more_memory) {
  const std::string longer = "training.sequence_length=65536";  // enough that hosts are not the limit
  const Prediction one = long_step({of_context(1), longer});
  double before = one.step.time.value();
  std::int64_t held = one.memory.peak_allocated;
  for (const std::int64_t ranks : {2, 4, 8}) {
    const Prediction p = long_step({of_context(ranks), longer});
    EXPECT_LT(p.step.time.value(), before) << ranks;
    EXPECT_GT(p.step.time.value(), one.step.time.value() / static_cast<double>(ranks)) << ranks;
    EXPECT_LE(p.memory.peak_allocated, held) << ranks;
    ASSERT_TRUE(p.parallel);
    EXPECT_EQ(p.parallel->gpus, ranks);
    EXPECT_NEAR(p.parallel->efficiency, one.step.time.value() / p.step.time.value() / static_cast<double>(ranks), 1e-9);
    EXPECT_NEAR(p.step.samples_per_s * p.step.time.value(), 1.0, 1e-9);
    EXPECT_NEAR(p.step.tokens_per_s * p.step.time.value(), 65536.0, 1e-6);
    before = p.step.time.value();
    held = p.memory.peak_allocated;
  }
}

// States are sharded over data and context ranks alike: as many GPUs hold as little of them.
TEST(SharedSequences, shards_span_data_and_context_ranks) {
  const Changes sharded{"training.parallel.strategy=fsdp"};
  const auto states = [&](std::int64_t data, std::int64_t context) {
    Changes changes = sharded;
    changes.push_back("training.parallel.data=" + std::to_string(data));
    changes.push_back(of_context(context));
    const Prediction p = long_step(changes);
    return p.memory.at_peak[static_cast<std::size_t>(Category::optimizer_state)];
  };
  // Blocks that were not worth splitting are counted whole.
  constexpr double kUnsplit = 0.01;
  const auto eight = static_cast<double>(states(8, 1));
  EXPECT_NEAR(static_cast<double>(states(1, 8)), eight, kUnsplit * eight);
  EXPECT_NEAR(static_cast<double>(states(2, 4)), eight, kUnsplit * eight);
  EXPECT_NEAR(static_cast<double>(states(1, 2)), 4.0 * eight, 4.0 * kUnsplit * eight);
}

TEST(SharedSequences, counts_a_batch_for_each_data_rank) {
  const Prediction p = long_step({of_context(4), "training.parallel.data=2"});
  EXPECT_EQ(p.parallel->gpus, 8);
  EXPECT_NEAR(p.step.samples_per_s * p.step.time.value(), 2.0, 1e-9);
  const Scenario left = long_scenario({of_context(4), "training.parallel.strategy=fsdp"});
  EXPECT_EQ(left.training.parallel.data, 1);
}

// Keys of all ranks at once need room for all of them; from neighbour to neighbour there is room for two.
TEST(SharedSequences, rings_hold_less_and_wait_more_often) {
  const Prediction gathered = long_step({of_context(8)}),
                   ring = long_step({of_context(8), "training.parallel.rotate_method=alltoall"});
  const auto count = [](const Prediction& p, CollectiveKind kind) {
    std::int64_t sum = 0;
    for (const CommunicationUse& use : p.parallel->communication)
      if (use.group == GroupKind::context && use.kind == kind) sum += use.count;
    return sum;
  };
  EXPECT_EQ(count(gathered, CollectiveKind::all_gather), 2 * 8);
  EXPECT_EQ(count(gathered, CollectiveKind::send_recv), 8 * 8);
  EXPECT_EQ(count(ring, CollectiveKind::all_gather), 0);
  EXPECT_EQ(count(ring, CollectiveKind::send_recv), 8 * (2 * 7 + 8));
}

TEST(SharedSequences, a_slower_network_between_ranks_shows) {
  const std::string far =
      "{gpu: nvidia-h200-sxm-141gb, nodes: 8, gpus: 1, interconnect: none, nics: {count: 1, rate: "
      "100 Gbit/s}}";
  EXPECT_GT(long_step({of_context(8)}, far).step.time.value(), 1.2 * long_step({of_context(8)}).step.time.value());
  const Scenario s = long_scenario({of_context(4), "training.parallel.data=2"});
  EXPECT_GT(communicator_bytes(s), communicator_bytes(long_scenario({"training.parallel.data=8"})));
}

TEST(SharedSequences, goes_through_stages_and_tensor_ranks) {
  const Prediction stages =
                       long_step({of_context(2), "training.parallel.pipeline=2", "training.gradient_accumulation=4"}),
                   whole = long_step({"training.parallel.pipeline=2", "training.gradient_accumulation=4"});
  EXPECT_LT(stages.step.time.value(), whole.step.time.value());
  EXPECT_EQ(stages.parallel->gpus, 4);
  for (const RankClass& one : stages.parallel->ranks) {
    EXPECT_EQ(one.ranks, 2);
  }
  const Prediction split =
      long_step({of_context(2), "training.parallel.tensor=2", "training.parallel.tensor_style=by-hand"});
  EXPECT_LT(split.step.time.value(), long_step({of_context(2)}).step.time.value());
}

// What is advised is what the reader of scenarios takes: weights of four bits are not sharded.
TEST(SharedSequences, go_with_adapters_and_advice) {
  for (const char* ranks : {"training.parallel.context=2", "training.parallel.data=2"}) {
    Session session;
    const StepRun run(session, long_scenario({ranks, "training.lora.frozen_weights=nf4"}), "analytic");
    for (const Advice& advice : find_advice(run))
      EXPECT_EQ(advice.change.find("fsdp"), std::string::npos) << advice.change;
  }
}

TEST(SharedSequences, refuses_what_does_not_go_together) {
  const auto message = [](const Changes& changes) {
    try {
      (void)long_step(changes);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message({of_context(16)}), AllOf(HasSubstr("training.parallel.context"), HasSubstr("8 GPUs")));
  EXPECT_THAT(message({of_context(8), "training.parallel.data=2"}),
              AllOf(HasSubstr("training.parallel.data"), HasSubstr("8 GPUs")));
  EXPECT_THAT(message({of_context(4), "training.sequence_length=1020"}),
              AllOf(HasSubstr("training.parallel.context"), HasSubstr("multiple of 8")));
  EXPECT_THAT(message({of_context(2), "training.attention=math"}), HasSubstr("math"));
  EXPECT_THAT(message({of_context(2), "training.parallel.framework=megatron", "training.precision=amp-bf16"}),
              AllOf(HasSubstr("training.parallel.context"), HasSubstr("Megatron-LM")));
  EXPECT_THAT(message({of_context(2), "training.compile=true"}), HasSubstr("training.compile"));
  EXPECT_THAT(message({of_context(2), "training.parallel.split=2"}), HasSubstr("no other ranks"));
  EXPECT_THAT(message({of_context(2), "training.parallel.strategy=dataparallel"}), HasSubstr("one process"));
  EXPECT_THAT(message({of_context(2), "training.data_loader=tensor-dataset"}), HasSubstr("context"));
  EXPECT_THAT(message({of_context(2), "training.parallel.rotate_method=ring"}),
              AllOf(HasSubstr("allgather"), HasSubstr("alltoall")));
  EXPECT_THAT(message({"training.parallel.rotate_method=allgather"}), HasSubstr("context"));
  EXPECT_THAT(message({"training.parallel.expert=2"}), HasSubstr("training.parallel.expert"));
}

}  // namespace
}  // namespace ridgeline
