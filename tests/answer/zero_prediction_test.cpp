// Steps of DeepSpeed's ZeRO, of compiled blocks and of shards in the host's memory as a whole: what is less, what is
// more, and what is refused.
#include <gtest/gtest.h>

#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// GPT-2 on four H200s, by DeepSpeed unless `sets` say otherwise.
Scenario zero_scenario(const std::vector<std::string>& sets) {
  ScenarioSource source;
  source.text =
      "cluster: hgx-h200\nmodel: gpt2\ntraining: {micro_batch: 8, sequence_length: 1024, precision: amp-bf16, "
      "parallel: "
      "{data: 4, framework: deepspeed, strategy: zero1, zero_optimization: {reduce_bucket_size: 2e7}}}\n";
  source.text_name = "test";
  for (const std::string& set : sets) source.overrides.push_back(config::parse_override(set));
  return load_scenario(source);
}

Prediction zero_step(const std::vector<std::string>& sets) { return predict(zero_scenario(sets), "analytic"); }

/// A scenario of PyTorch's own wrappers.
Prediction torch_step(std::vector<std::string> sets, const std::string& strategy, const std::string& more = "") {
  ScenarioSource source;
  source.text =
      "cluster: hgx-h200\nmodel: gpt2\ntraining: {micro_batch: 8, sequence_length: 1024, precision: bf16, "
      "optimizer: {name: adamw, implementation: fused}, parallel: {data: 4, strategy: " +
      strategy + more + "}}\n";
  source.text_name = "test";
  for (const std::string& set : sets) source.overrides.push_back(config::parse_override(set));
  return predict(load_scenario(source), "analytic");
}

std::string complaint_of(const std::vector<std::string>& sets) {
  try {
    zero_scenario(sets);
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ZeroPrediction, stage_1_holds_less_than_whole_states_and_stage_2_no_more) {
  const std::int64_t whole = torch_step({"training.precision=amp-bf16"}, "ddp").memory.peak_allocated;
  const std::int64_t first = zero_step({}).memory.peak_allocated;
  const std::int64_t second = zero_step({"training.parallel.strategy=zero2"}).memory.peak_allocated;
  EXPECT_LT(first, whole);
  EXPECT_LE(second, first);
}

// A network whose states outweigh its activations, gathered block by block.
TEST(ZeroPrediction, stage_3_holds_least_where_parameters_are_most) {
  const std::vector<std::string> large{"model=gpt2-xl", "training.micro_batch=1", "training.sequence_length=128"};
  const auto peak = [&](const char* stage, std::vector<std::string> more) {
    more.insert(more.end(), large.begin(), large.end());
    more.push_back(std::string("training.parallel.strategy=") + stage);
    return zero_step(more).memory.peak_allocated;
  };
  const std::int64_t third = peak("zero3", {"training.parallel.zero_optimization.stage3_max_reuse_distance=0",
                                            "training.parallel.zero_optimization.stage3_max_live_parameters=1e8"});
  EXPECT_LT(third, peak("zero2", {}));
  EXPECT_LT(peak("zero2", {}), peak("zero1", {}));
  EXPECT_LT(third, peak("zero3", {}));
}

// Frozen parameters are cut and gathered like others, and have neither gradients nor states.
TEST(ZeroPrediction, stage_3_cuts_the_network_beside_adapters) {
  const std::vector<std::string> large{"model=gpt2-xl", "training.micro_batch=1", "training.sequence_length=128",
                                       "training.parallel.zero_optimization.stage3_max_reuse_distance=0",
                                       "training.parallel.zero_optimization.stage3_max_live_parameters=1e8"};
  const auto step = [&](const char* stage, std::vector<std::string> more) {
    more.insert(more.end(), large.begin(), large.begin() + 3);
    if (std::string(stage) == "zero3") more.insert(more.end(), large.begin() + 3, large.end());
    more.push_back(std::string("training.parallel.strategy=") + stage);
    return zero_step(more);
  };
  const Prediction adapters = step("zero3", {"training.lora={rank: 8}"}), full = step("zero3", {});
  EXPECT_LT(adapters.memory.peak_allocated, full.memory.peak_allocated);
  EXPECT_LT(adapters.memory.peak_allocated, step("zero2", {"training.lora={rank: 8}"}).memory.peak_allocated);
  const auto bytes = [](const Prediction& p, CollectiveKind kind) {
    std::int64_t sum = 0;
    for (const CommunicationUse& use : p.parallel->communication) sum += use.kind == kind ? use.bytes : 0;
    return sum;
  };
  EXPECT_NEAR(static_cast<double>(bytes(adapters, CollectiveKind::all_gather)),
              static_cast<double>(bytes(full, CollectiveKind::all_gather)),
              0.05 * static_cast<double>(bytes(full, CollectiveKind::all_gather)));
  EXPECT_LT(bytes(adapters, CollectiveKind::reduce_scatter), bytes(full, CollectiveKind::reduce_scatter) / 50);
}

TEST(ZeroPrediction, exposed_communication_grows_as_links_slow_down) {
  for (const char* stage : {"zero1", "zero2", "zero3"}) {
    double before = 0.0, step = 0.0;
    for (const char* rate : {"50 GB/s", "20 GB/s", "5 GB/s"}) {
      const Prediction p =
          zero_step({std::string("training.parallel.strategy=") + stage, std::string("cluster.links.rate=") + rate});
      ASSERT_TRUE(p.parallel);
      EXPECT_GT(p.parallel->exposed.value(), before) << stage << rate;
      EXPECT_GT(p.step.time.value(), step) << stage << rate;
      before = p.parallel->exposed.value();
      step = p.step.time.value();
    }
  }
}

TEST(ZeroPrediction, overlap_hides_reductions) {
  const std::vector<std::string> slow{"training.parallel.strategy=zero2", "cluster.links.rate=5 GB/s"};
  std::vector<std::string> beside = slow;
  beside.emplace_back("training.parallel.zero_optimization.overlap_comm=true");
  const Prediction alone = zero_step(slow), hidden = zero_step(beside);
  EXPECT_EQ(alone.parallel->hidden.value(), 0.0);
  EXPECT_GT(hidden.parallel->hidden.value(), 0.0);
  EXPECT_LT(hidden.step.time.value(), alone.step.time.value());
  EXPECT_GT(hidden.memory.peak_allocated, alone.memory.peak_allocated - 1);  // a second buffer
}

TEST(ZeroPrediction, on_one_gpu_is_what_efficiency_is_measured_against) {
  const Prediction one = zero_step({"training.parallel.data=1"}), four = zero_step({});
  EXPECT_FALSE(one.parallel);
  EXPECT_NEAR(four.parallel->efficiency, one.step.time.value() / four.step.time.value(), 1e-9);
}

TEST(ZeroScenario, refuses_by_name_what_is_not_built) {
  const auto says = [](const std::vector<std::string>& sets, const char* what) {
    EXPECT_NE(complaint_of(sets).find(what), std::string::npos) << complaint_of(sets);
  };
  EXPECT_EQ(complaint_of({}), "nothing");
  says({"training.parallel.strategy=ddp"}, "zero1, zero2 and zero3");
  says({"training.parallel.strategy=fsdp"}, "zero1, zero2 and zero3");
  says({"training.parallel.tensor=2"}, "with framework: deepspeed is not modelled: expected 1");
  says({"training.parallel.bucket_cap=1 MiB"}, "goes with framework: torch");
  says({"training.parallel.zero_optimization.stage3_prefetch_bucket_size=1e6"}, "goes with strategy: zero3");
  says({"training.parallel.zero_optimization.allgather_bucket_size=5e8"}, "changes nothing");
  says({"training.parallel.zero_optimization.reduce_bucket_size=1.5"}, "whole number");
  says({"training.parallel.strategy=zero3", "training.parallel.zero_optimization.use_multi_rank_bucket_allreduce=true"},
       "zero1 and zero2");
  says({"training.precision=bf16"}, "amp-bf16 (its bf16)");
  says({"training.optimizer=adafactor"}, "one flat tensor");
  says({"training.compile=true"}, "not modelled");
  says({"training.lora={rank: 8, frozen_weights: nf4}"}, "weights of four bits");
  says({"training.parallel={strategy: zero3}"}, "zero3 is DeepSpeed's");
  says({"training.parallel={zero_optimization: {overlap_comm: true}}"}, "goes with framework: deepspeed");
}

TEST(CompiledBlocksPrediction, are_faster_than_eager_ones_and_send_as_much) {
  for (const char* strategy : {"fsdp", "zero2"}) {
    const Prediction eager = torch_step({}, strategy), compiled = torch_step({"training.compile=true"}, strategy);
    EXPECT_LT(compiled.step.gpu_busy.value(), eager.step.gpu_busy.value());
    const auto bytes = [](const Prediction& p) {
      std::int64_t sum = 0;
      for (const CommunicationUse& use : p.parallel->communication) sum += use.bytes;
      return sum;
    };
    EXPECT_EQ(bytes(compiled), bytes(eager));
  }
}

TEST(CompiledBlocksPrediction, go_with_checkpoints_and_with_no_ranks_that_share_sequences) {
  const auto message = [](std::vector<std::string> sets) {
    sets.emplace_back("training.compile=true");
    try {
      torch_step(sets, "fsdp");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(message({"training.activation_checkpointing=block", "model.dropout=0"}), "nothing");
  EXPECT_NE(message({"training.activation_checkpointing=block", "model.dropout=0.1"}).find("dropout"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.context=2"}).find("sequences and experts whole"), std::string::npos);
}

TEST(HostShardsPrediction, hold_less_and_take_longer) {
  const Prediction there = torch_step({}, "fsdp"), away = torch_step({}, "fsdp", ", offload: true");
  EXPECT_LT(away.memory.peak_allocated, there.memory.peak_allocated);
  EXPECT_GT(away.step.time.value(), there.step.time.value());
  // The host's pass over its share, 0.25 ns a number, during which the device waits; the loop of operations, 1.43 ns.
  const double share = 124.4e6 / 4;
  EXPECT_GT(away.step.host_time.value() - there.step.host_time.value(), 0.8 * share * 0.25e-9);
  const Prediction loop = torch_step({"training.optimizer.implementation=for-loop"}, "fsdp", ", offload: true");
  EXPECT_GT(loop.step.host_time.value() - away.step.host_time.value(), 0.8 * share * (1.43e-9 - 0.25e-9));
  EXPECT_GT(loop.step.time.value() - away.step.time.value(), 0.8 * share * (1.43e-9 - 0.25e-9));
  const Prediction slower = torch_step({"hardware.host_link.bandwidth=6 GB/s"}, "fsdp", ", offload: true");
  EXPECT_GT(slower.step.time.value(), away.step.time.value());
}

TEST(HostShardsScenario, refuses_by_name_what_is_not_built) {
  const auto message = [](const std::string& strategy, const std::vector<std::string>& sets) {
    try {
      torch_step(sets, strategy, ", offload: true");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(message("ddp", {}).find("fsdp, zero2 and hsdp"), std::string::npos);
  EXPECT_NE(message("fsdp1", {}).find("fsdp, zero2 and hsdp"), std::string::npos);
  EXPECT_NE(message("fsdp", {"training.gradient_clipping=1"}).find("expected none"), std::string::npos);
  EXPECT_NE(message("fsdp", {"training.optimizer=sgd"}).find("expected adamw or adam"), std::string::npos);
  EXPECT_NE(message("fsdp", {"training.precision=amp-fp16"}).find("not scaled"), std::string::npos);
  EXPECT_NE(message("fsdp", {"training.parallel.context=2"}).find("not modelled"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline
