// Steps whose experts are spread over ranks: against those of one rank, over faster links, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/prediction.h"
#include "sim/answer/step_run.h"
#include "sim/network/communicator_memory.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Changes = std::vector<std::string>;

Scenario expert_scenario(const Changes& changes, const std::string& more = "") {
  ScenarioSource source;
  source.text =
      "cluster: hgx-h100\nmodel: {family: composed, name: sixteen, layers: 2, heads: 16, key_value_heads: 8, hidden: "
      "1024, feed_forward: 2048, vocabulary: 32000, positions: rotary, norm: rms, feed_forward_kind: gated, "
      "activation: silu, qkv_bias: false, output_bias: false, feed_forward_bias: false, tie_embeddings: false, "
      "experts: 16}\n"
      "training:\n  micro_batch: 4\n  sequence_length: 1024\n  precision: bf16\n"
      "  optimizer: {name: adamw, implementation: fused}\n  parallel:\n    data: 8\n" +
      more;
  source.text_name = "experts.yaml";
  for (const std::string& change : changes) source.overrides.push_back(config::parse_override(change));
  return load_scenario(source);
}
Prediction expert_step(const Changes& changes) { return predict(expert_scenario(changes), "analytic"); }
std::string complaint_of(const Changes& changes, const std::string& more = "") {
  try {
    static_cast<void>(expert_scenario(changes, more));
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}
std::string of_experts(std::int64_t ranks) { return "training.parallel.expert=" + std::to_string(ranks); }

TEST(ExpertRanks, of_one_rank_are_those_without_the_key_to_the_bit) {
  for (const Changes& changes : {Changes{}, Changes{"training.parallel.strategy=fsdp"}}) {
    Changes with = changes;
    with.push_back(of_experts(1));
    const Prediction none = expert_step(changes), one = expert_step(with);
    EXPECT_EQ(none.step.time.value(), one.step.time.value());
    EXPECT_EQ(none.step.high.value(), one.step.high.value());
    EXPECT_EQ(none.memory.device_used, one.memory.device_used);
  }
}

TEST(ExpertRanks, more_of_them_hold_less_and_communicators_are_counted) {
  std::int64_t held = expert_step({of_experts(2)}).memory.peak_allocated;
  for (const std::int64_t ranks : {4, 8}) {
    const std::int64_t now = expert_step({of_experts(ranks)}).memory.peak_allocated;
    EXPECT_LT(now, held) << ranks;
    held = now;
  }
  const std::int64_t one = communicator_bytes(expert_scenario({})),
                     all = communicator_bytes(expert_scenario({of_experts(8)}));
  EXPECT_GT(all, one);
  // Groups of ranks with the same experts are one more.
  const Cluster cluster = *expert_scenario({}).cluster;
  EXPECT_EQ(communicator_bytes(expert_scenario({of_experts(4)})) - one,
            static_cast<std::int64_t>((communicator_memory(cluster, {.ranks = 4, .collectives = false, .peers = 3}) +
                                       communicator_memory(cluster, {.ranks = 2}))
                                          .value()));
}

TEST(ExpertRanks, faster_links_are_never_slower) {
  for (const Changes& changes : {Changes{of_experts(8)}, Changes{of_experts(4), "training.parallel.strategy=fsdp"},
                                 Changes{of_experts(8), "training.parallel.expert_capacity=1.25"}}) {
    double before = 1e9;
    for (const char* rate : {"10 GB/s", "15 GB/s", "25 GB/s", "50 GB/s"}) {
      Changes with = changes;
      with.push_back(std::string("cluster.links.rate=") + rate);
      const double now = expert_step(with).step.time.value();
      EXPECT_LE(now, before) << rate;
      before = now;
    }
  }
}

TEST(ExpertRanks, say_what_is_exchanged_among_whom) {
  const Prediction p = expert_step({of_experts(4)});
  ASSERT_TRUE(p.parallel);
  std::int64_t sent = 0, summed = 0;
  for (const CommunicationUse& use : p.parallel->communication) {
    if (use.group == GroupKind::expert) sent += use.count;
    if (use.group == GroupKind::expert_data) summed += use.count;
  }
  EXPECT_EQ(sent, 2 * 5);    // counts, there, back, and back and there
  EXPECT_EQ(summed, 2 * 2);  // weights of a layer
}

TEST(ExpertRanks, are_refused_by_name_where_they_are_not_modelled) {
  EXPECT_THAT(complaint_of({of_experts(3)}),
              AllOf(HasSubstr("training.parallel.expert"), HasSubstr("does not divide the 8")));
  EXPECT_THAT(complaint_of({of_experts(8), "model.experts=12"}),
              HasSubstr("does not divide the 12 experts of sixteen"));
  EXPECT_THAT(complaint_of({of_experts(8), "model.experts=0"}), HasSubstr("sixteen has no experts: expected 1"));
  EXPECT_EQ(complaint_of({of_experts(4), "training.parallel.data=4", "training.parallel.pipeline=2",
                          "training.gradient_accumulation=4"}),
            "");
  EXPECT_EQ(complaint_of({of_experts(8), "training.parallel.data=4", "training.parallel.context=2"}), "");
  EXPECT_EQ(complaint_of({of_experts(4), "training.parallel.data=4", "training.parallel.tensor=2",
                          "training.parallel.tensor_style=by-hand"}),
            "");
  EXPECT_THAT(complaint_of({of_experts(4), "training.parallel.strategy=zero1"}),
              HasSubstr("expected ddp, fsdp or zero2"));
  EXPECT_THAT(complaint_of({of_experts(4), "training.parallel.framework=megatron"}), HasSubstr("framework: torch"));
  EXPECT_THAT(complaint_of({of_experts(4), "training.precision=amp-fp16"}), HasSubstr("overflow of fp16"));
  EXPECT_THAT(complaint_of({of_experts(4), "training.compile=true"}), HasSubstr("experts whole on each"));
  EXPECT_THAT(complaint_of({"training.parallel.expert_capacity=1.25"}), HasSubstr("goes with expert"));
  EXPECT_EQ(complaint_of({of_experts(4), "training.parallel.expert_capacity=dropless"}), "");
}

}  // namespace
}  // namespace ridgeline
