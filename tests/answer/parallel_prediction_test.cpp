// Steps of several GPUs as a whole: against the single-GPU product, against links, against closed forms.
#include "sim/answer/parallel/parallel_prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/sensitivity.h"
#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// GPT-2 on some H200s of one server.
Scenario scenario(const std::vector<std::string>& sets, const std::string& cluster = "hgx-h200") {
  ScenarioSource source;
  source.text =
      "cluster: " + cluster +
      "\nmodel: gpt2\ntraining: {micro_batch: 4, sequence_length: 512, precision: amp-bf16, optimizer: {name: "
      "adamw, implementation: fused}}\n";
  source.text_name = "test";
  for (const std::string& set : sets) source.overrides.push_back(config::parse_override(set));
  return load_scenario(source);
}

Prediction predicted(const std::vector<std::string>& sets, const std::string& cluster = "hgx-h200") {
  return predict(scenario(sets, cluster), "analytic");
}

TEST(ParallelPrediction, of_one_rank_is_the_prediction_of_one_gpu_to_the_bit) {
  ScenarioSource alone;
  alone.text =
      "hardware: nvidia-h200-sxm-141gb\nmodel: gpt2\ntraining: {micro_batch: 4, sequence_length: 512, precision: "
      "amp-bf16, "
      "optimizer: {name: adamw, implementation: fused}}\n";
  const Prediction one = predict(load_scenario(alone), "analytic");
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    const Prediction same =
        predicted({"training.parallel.data=1", std::string("training.parallel.strategy=") + strategy});
    EXPECT_EQ(one.step.time.value(), same.step.time.value());
    EXPECT_EQ(one.step.low.value(), same.step.low.value());
    EXPECT_EQ(one.memory.device_used, same.memory.device_used);
    EXPECT_EQ(one.kernels.size(), same.kernels.size());
    EXPECT_FALSE(same.parallel);
  }
}

TEST(ParallelPrediction, counts_the_samples_of_all_ranks) {
  const Prediction four = predicted({"training.parallel.data=4"});
  EXPECT_NEAR(four.step.samples_per_s * four.step.time.value(), 16.0, 1e-9);
  ASSERT_TRUE(four.parallel);
  EXPECT_EQ(four.parallel->gpus, 4);
  EXPECT_GT(four.parallel->efficiency, 0.3);
  EXPECT_LE(four.parallel->efficiency, 1.0);
}

TEST(ParallelPrediction, sensitivity_knows_the_links) {
  Session session;
  const StepRun run(session, scenario({"cluster.gpus=4"}, "t4-x4-pcie"), "analytic");
  const Sensitivity more = step_sensitivity(run);
  EXPECT_EQ(more.time.value(), run.timeline().step.value());
  ASSERT_EQ(more.links.size(), 1u);  // one node: there is no network
  EXPECT_EQ(more.links.front().resource, LinkResource::link_bandwidth);
  EXPECT_GT(ratio(more.links.front().saved, more.time), 0.005);
  EXPECT_LT(ratio(more.links.front().saved, more.time), 0.1);
  // A tenth more of anything saves less than a tenth of the step.
  for (const Resource resource : kResources) EXPECT_LT(more.share(resource), 0.1) << name_of(resource);
  // As the step with those links is predicted.
  Scenario faster = run.scenario();
  faster.cluster = with_more(*faster.cluster, LinkResource::link_bandwidth, kSensitivityFactor);
  EXPECT_NEAR((more.time - more.links.front().saved).value(),
              StepRun(session, faster, "analytic").timeline().step.value(), 1e-12);
}

TEST(ParallelPrediction, divides_communication_into_exposed_and_hidden) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "fsdp"}) {
    const Prediction p = predicted({std::string("training.parallel.strategy=") + strategy});
    ASSERT_TRUE(p.parallel) << strategy;
    Seconds all{}, exposed{};
    for (const CommunicationUse& use : p.parallel->communication) {
      all += use.time;
      exposed += use.exposed;
      EXPECT_GT(use.count, 0);
      EXPECT_GT(use.bytes, 0);
    }
    EXPECT_NEAR(all.value(), (p.parallel->exposed + p.parallel->hidden).value(), 1e-12);
    EXPECT_NEAR(exposed.value(), p.parallel->exposed.value(), 1e-12);
    // What a step is made of adds up to it.
    EXPECT_NEAR(p.step.latency.total().value(), p.step.time.value(), 1e-6 * p.step.time.value()) << strategy;
    Seconds classes = p.idle;
    for (const Seconds t : p.time_by_class) classes += t;
    EXPECT_NEAR(classes.value(), p.step.time.value(), 1e-6 * p.step.time.value()) << strategy;
  }
}

// The buckets of the first step, which a rank may still hold, are of what is trained: little of a network with
// adapters.
TEST(ParallelPrediction, the_range_of_memory_reaches_down_by_the_gradients_of_what_is_trained) {
  const auto below = [](const std::vector<std::string>& sets) {
    const MemoryPrediction m = predicted(sets).memory;
    EXPECT_GT(m.needed_low, 0);
    return m.needed - m.needed_low - (m.needed_high - m.needed);
  };
  Session session;
  const std::int64_t parameters =
      StepRun(session, scenario({"training.parallel.strategy=ddp"}), "analytic").trace().parameters;
  EXPECT_NEAR(static_cast<double>(below({"training.parallel.strategy=ddp"})), 4.0 * static_cast<double>(parameters),
              1e3);
  EXPECT_LT(below({"training.parallel.strategy=ddp", "training.lora.rank=8"}), parameters / 10);
}

TEST(ParallelPrediction, faster_links_are_never_slower) {
  for (const char* strategy : {"ddp", "zero1", "fsdp"}) {
    double last = 1e9;
    for (const char* rate : {"1 GB/s", "3 GB/s", "10 GB/s", "30 GB/s", "100 GB/s"}) {
      const double step =
          predicted({std::string("training.parallel.strategy=") + strategy, std::string("cluster.links.rate=") + rate})
              .step.time.value();
      EXPECT_LE(step, 1.001 * last) << strategy << " at " << rate;
      last = step;
    }
  }
}

TEST(ParallelPrediction, sharding_takes_less_memory_the_more_ranks_there_are) {
  std::int64_t last = predicted({"training.parallel.data=2"}).memory.peak_allocated;
  for (const char* data : {"2", "4", "8"}) {
    const std::int64_t now =
        predicted({"training.parallel.strategy=fsdp", std::string("training.parallel.data=") + data})
            .memory.peak_allocated;
    EXPECT_LT(now, last) << data;
    last = now;
  }
}

TEST(ParallelPrediction, tensor_parallel_ranks_share_samples_and_layers) {
  const std::vector<std::string> by_hand{"training.parallel.tensor=4", "training.parallel.tensor_style=by-hand"};
  const Prediction p = predicted(by_hand);
  EXPECT_NEAR(p.step.samples_per_s * p.step.time.value(), 8.0, 1e-9);  // two data parallel ranks of four
  ASSERT_TRUE(p.parallel);
  EXPECT_EQ(p.parallel->gpus, 8);
  EXPECT_LE(p.parallel->efficiency, 1.0);
  std::map<GroupKind, std::int64_t> count;
  for (const CommunicationUse& use : p.parallel->communication) count[use.group] += use.count;
  EXPECT_EQ(count[GroupKind::tensor], 4 * 12);
  EXPECT_GT(count[GroupKind::data], 0);
  EXPECT_GT(communicator_bytes(scenario(by_hand)), communicator_bytes(scenario({"training.parallel.data=4"})));
}

TEST(ParallelPrediction, splitting_layers_takes_less_memory_and_faster_links_never_more_time) {
  const auto with = [](const std::string& tensor, const std::string& framework, const std::string& rate) {
    std::vector<std::string> sets{"training.parallel.data=1", "training.parallel.tensor=" + tensor,
                                  "cluster.links.rate=" + rate};
    if (framework == "torch") sets.push_back("training.parallel.tensor_style=by-hand");
    else sets.push_back("training.parallel.framework=megatron");
    return predicted(sets);
  };
  for (const char* framework : {"torch", "megatron"}) {
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const char* ranks : {"1", "2", "4"}) {
      const std::int64_t now = with(ranks, framework, "25 GB/s").memory.peak_allocated;
      EXPECT_LT(now, most) << framework << ranks;
      most = now;
    }
    double last = 1e9;
    for (const char* rate : {"1 GB/s", "10 GB/s", "100 GB/s"}) {
      const double step = with("4", framework, rate).step.time.value();
      EXPECT_LE(step, 1.001 * last) << framework << " at " << rate;
      last = step;
    }
  }
}

TEST(ParallelPrediction, communicators_lie_outside_the_allocator) {
  const Scenario four = scenario({"training.parallel.data=4"});
  EXPECT_GT(communicator_bytes(four), 256 << 20);
  const Prediction p = predict(four, "analytic");
  EXPECT_EQ(p.memory.device_used, p.memory.peak_reserved + p.memory.context);
  EXPECT_EQ(p.parallel->ranks.front().communicator_bytes, communicator_bytes(four));
}

TEST(ParallelPrediction, keeps_micro_batches_apart_that_exchange_gradients) {
  const std::int64_t sync = predicted({"training.gradient_accumulation=4"}).parallel->communication.front().count;
  const std::int64_t once = predicted({"training.gradient_accumulation=4", "training.parallel.no_sync=true"})
                                .parallel->communication.front()
                                .count;
  EXPECT_EQ(sync, 4 * once);
}

TEST(ClusterScenario, refuses_what_does_not_fit_together) {
  const auto message = [](const std::vector<std::string>& sets, const std::string& cluster = "hgx-h200") {
    try {
      scenario(sets, cluster);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(message({"training.parallel.data=9"}).find("8 GPUs"), std::string::npos);
  EXPECT_NE(message({"training.parallel.expert=2"}).find("has no experts: expected 1"), std::string::npos);
  EXPECT_NE(message({"training.parallel.tensor=3"}).find("does not divide the 8 GPUs"), std::string::npos);
  EXPECT_NE(message({"training.parallel.tensor=16"}).find("8 GPUs"), std::string::npos);
  EXPECT_NE(message({"training.parallel.tensor=8", "training.parallel.tensor_style=by-hand"})
                .find("allowed are divisors of 12"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.tensor=4", "training.parallel.data=4"}).find("8 GPUs"), std::string::npos);
  EXPECT_NE(message({"training.parallel.framework=megatron", "training.parallel.strategy=fsdp"}).find("zero1"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.framework=megatron", "training.precision=bf16"}).find("amp-bf16"),
            std::string::npos);
  EXPECT_NE(message({"training.activation_checkpointing=selective"}).find("megatron"), std::string::npos);
  EXPECT_NE(message({"training.parallel.tensor=2", "training.parallel.tensor_style=by-hand",
                     "training.parallel.sequence_parallel=true"})
                .find("dtensor"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.strategy=hsdp", "training.parallel.replicate=3"}).find("does not divide"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.strategy=fdsp"}).find("fsdp"), std::string::npos);
  EXPECT_EQ(message({"training.compile=true"}), "nothing");
  EXPECT_NE(message({"training.compile=true", "training.parallel.strategy=fsdp1"}).find("strategy: ddp and zero1"),
            std::string::npos);
  EXPECT_NE(message({"training.compile=true", "training.activation_checkpointing=block"}).find("expected none"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.pieces=2"}).find("goes with split"), std::string::npos);
  EXPECT_NE(message({"training.parallel.split=16"}).find("a node has 8"), std::string::npos);
  EXPECT_NE(message({"training.parallel.split=2", "training.parallel.data=2"}).find("no other ranks"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.split=2", "training.parallel.pieces=3"}).find("does not divide"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.split=2", "training.gradient_clipping=1.0"}).find("not modelled"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.strategy=dataparallel"}).find("do not divide the 4 sequences"),
            std::string::npos);
  EXPECT_NE(message({"training.parallel.strategy=dataparallel", "training.parallel.data=2",
                     "training.parallel.bucket_cap=1 MiB"})
                .find("one process"),
            std::string::npos);
  EXPECT_NE(message({"hardware=nvidia-t4"}).find("consists of"), std::string::npos);
  EXPECT_NE(message({}, "hgx-h20").find("hgx-h200"), std::string::npos);
  EXPECT_EQ(message({"training.compile=true", "training.parallel.data=1"}), "nothing");
}

// Layers on two devices one after the other: the step of one GPU, but for two copies and a head of its own.
TEST(OneProcess, a_network_cut_over_devices_is_no_faster) {
  const auto time = [](const std::vector<std::string>& more) {
    std::vector<std::string> sets{"training.micro_batch=16", "model.tie_embeddings=false", "host.scale=0.1"};
    sets.insert(sets.end(), more.begin(), more.end());
    return predicted(sets).step.time.value();
  };
  const double one = time({"training.parallel.data=1"});
  EXPECT_NEAR(time({"training.parallel.split=2"}), one, 0.06 * one);
  EXPECT_GT(time({"training.parallel.split=4"}), 0.94 * one);
}

TEST(OneProcess, holds_less_on_each_device) {
  const Prediction one = predicted({"training.parallel.data=1", "training.micro_batch=16"}),
                   two = predicted({"training.parallel.split=2", "training.micro_batch=16"});
  EXPECT_LT(two.memory.peak_allocated, one.memory.peak_allocated);
  EXPECT_GT(two.memory.peak_allocated, one.memory.peak_allocated / 3);
  ASSERT_TRUE(two.parallel);
  EXPECT_EQ(two.parallel->gpus, 2);
  EXPECT_NEAR(two.step.samples_per_s * two.step.time.value(), 16.0, 1e-9);
}

// A slower host costs DataParallel once more for each GPU, DistributedDataParallel once.
TEST(OneProcess, data_parallel_pays_for_the_host_of_every_gpu) {
  const auto time = [](const char* strategy, const char* scale) {
    const bool one_process = std::string(strategy) == "dataparallel";
    return predicted({std::string("training.parallel.strategy=") + strategy, "training.parallel.data=4",
                      one_process ? "training.micro_batch=16" : "training.micro_batch=4", scale})
        .step.time.value();
  };
  EXPECT_GT(time("dataparallel", "host.scale=1"), 1.5 * time("ddp", "host.scale=1"));
  EXPECT_GT(time("dataparallel", "host.scale=2") - time("dataparallel", "host.scale=1"),
            1.5 * (time("ddp", "host.scale=2") - time("ddp", "host.scale=1")));
}

TEST(ClusterScenario, takes_a_cluster_in_place) {
  const Scenario inline_one = scenario({},
                                       "{gpu: nvidia-a100-sxm4-80gb, nodes: 2, gpus: 8, interconnect: nvswitch, nics: "
                                       "{count: 8, rate: 200 Gbit/s}}");
  EXPECT_EQ(inline_one.gpu.name, "nvidia-a100-sxm4-80gb");
  EXPECT_EQ(inline_one.training.parallel.data, 16);
}

TEST(ParallelPrediction, of_one_gpu_in_a_cluster_links_limit_nothing_and_of_four_they_do) {
  Session session;
  const auto links = [&](const char* ranks) {
    return step_sensitivity(StepRun(session, scenario({ranks}), "analytic")).links.size();
  };
  EXPECT_EQ(links("training.parallel.data=1"), 0u);
  EXPECT_GT(links("training.parallel.data=4"), 0u);
}

TEST(ParallelPrediction, what_a_collective_moves_passes_the_l2) {
  Session session;
  const StepRun run(session, scenario({"training.parallel.data=4"}), "analytic");
  const std::vector<KernelTime>& times = run.times();
  std::size_t at = 0, collectives = 0;
  for (const Action& action : run.program().steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelTime& time = times[at++];
    if (action.call == Action::kNoCall ||
        !std::holds_alternative<Collective>(run.trace().ops[run.trace().calls[action.call].op]))
      continue;
    ++collectives;
    EXPECT_GT(time.l2_bytes, 0.0);
    EXPECT_DOUBLE_EQ(time.l2_bytes, time.dram_read_bytes + time.dram_write_bytes);
  }
  EXPECT_GT(collectives, 0u);
}

// One process on all GPUs (nn.DataParallel): each step's samples are those of all of them.
TEST(ParallelPrediction, of_one_process_on_two_gpus_is_less_than_twice_one) {
  const Prediction two = predicted({"training.parallel.data=2", "training.parallel.strategy=dataparallel"});
  ASSERT_TRUE(two.parallel);
  EXPECT_GT(two.parallel->efficiency, 0.05);
  EXPECT_LE(two.parallel->efficiency, 1.0);
}

}  // namespace
}  // namespace ridgeline
