// What several GPUs add to a step's memory: communicators group by group, buckets that steps hold longer than the trace
// says; and what faster links are.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/answer/parallel/communication.h"
#include "sim/answer/sensitivity.h"
#include "sim/answer/step_run.h"
#include "sim/network/communicator_memory.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {
namespace {

Scenario of_parallel(const std::string& parallel, const std::string& more = "",
                     const std::string& model = "{family: gpt2, layers: 8, heads: 8, hidden: 512, vocabulary: 1024}") {
  ScenarioSource source;
  source.text = "{cluster: hgx-h200, model: " + model + ", training: {micro_batch: 4, sequence_length: 64, " +
                "gradient_accumulation: 8, precision: amp-bf16, parallel: {" + parallel + "}" + more + "}}";
  source.text_name = "test";
  Scenario scenario = load_scenario(source);
  scenario.training.parallel.holds_first_buckets = false;
  scenario.training.reads_loss = LossRead::never;
  return scenario;
}

/// NCCL itself, and communicators of collectives of so many ranks.
double with_groups(const Scenario& s, const std::vector<int>& groups) {
  Bytes sum = nccl_base_memory(*s.cluster);
  for (const int ranks : groups) sum += communicator_memory(*s.cluster, {.ranks = ranks, .collectives = true});
  return sum.value();
}

TEST(CommunicatorParts, ADataParallelRankHasOneGroup) {
  const Scenario s = of_parallel("data: 8");
  EXPECT_EQ(communicator_bytes(s), std::llround(with_groups(s, {8})));
  EXPECT_GT(with_groups(s, {8}), with_groups(s, {}));
  EXPECT_EQ(communicator_bytes(of_parallel("data: 1")), 0);
  const Scenario hybrid = of_parallel("data: 8, strategy: hsdp, replicate: 2");
  EXPECT_EQ(communicator_bytes(hybrid), std::llround(with_groups(hybrid, {4, 2})));
  const Scenario context = of_parallel(
      "data: 2, context: 4", "",
      "{family: llama, layers: 2, heads: 8, key_value_heads: 8, hidden: 512, feed_forward: 1024, vocabulary: 1024}");
  const double shards = static_cast<double>(context.training.parallel.gradient_ranks());
  EXPECT_EQ(communicator_bytes(context), std::llround(with_groups(context, {static_cast<int>(shards), 4})));
}

// Megatron-LM's ranks: the model's group of all stages and tensor ranks; the first and the last stage share the
// embedding's table where it is tied; the tensor ranks'; and a pair of neighbours for each side.
TEST(CommunicatorParts, AMegatronPipelinesRanksHaveTheirNeighboursTheModelAndItsEnds) {
  for (const bool tied : {false, true})
    for (const std::int64_t rank : {-1, 0, 1, 2, 3}) {
      Scenario s = of_parallel("pipeline: 4, tensor: 2, framework: megatron");
      s.model.tie_embeddings = tied;
      s.training.parallel.pipeline_rank = rank;
      const bool end = rank == -1 || rank == 0 || rank == 3;
      std::vector<int> groups{8, 2};
      if (end && tied) groups.push_back(2);
      const double neighbours =
          communicator_memory(*s.cluster, {.ranks = 4, .collectives = false, .peers = end ? 1 : 2}).value();
      EXPECT_EQ(communicator_bytes(s), std::llround(with_groups(s, groups) + neighbours)) << tied << ' ' << rank;
    }
}

/// Buckets of 1000 and 500 bytes that the wrapped network gets before its first step.
OpTrace with_buckets() {
  OpTrace trace;
  trace.storages = {
      {1000, Category::gradients}, {70, Category::weights}, {500, Category::gradients}, {9000, Category::gradients}};
  for (std::uint32_t i = 0; i < 4; ++i) trace.records.push_back({Record::Kind::allocate, HostClass::other, 0, i});
  trace.records.push_back({Record::Kind::free, HostClass::other, 0, 0});
  trace.steps = {{3, 5}};
  return trace;
}
MemoryPrediction some_memory() {
  MemoryPrediction memory;
  memory.peak_allocated = 7000;
  memory.peak_reserved = 8000;
  memory.device_used = memory.needed = 9000;
  memory.needed_low = 8900;
  memory.needed_high = 9100;
  memory.cached_unused = 1000;
  memory.capacity = 20000;
  memory.peak_phase = Phase::backward;
  return memory;
}

TEST(HeldBuckets, MayStandBesideTheStepsOwn) {
  const OpTrace trace = with_buckets();
  MemoryPrediction memory = some_memory();
  allow_for_held_buckets(memory, of_parallel("data: 4"), trace, Seconds{0.035});
  EXPECT_EQ(memory.needed_low, 8900);
  EXPECT_EQ(memory.needed_high, 9100 + 1500);
  EXPECT_EQ(memory.needed, 9000);
  EXPECT_TRUE(memory.fits);
  // The device is just large enough, and a byte too small.
  for (const std::int64_t capacity : {10600, 10599}) {
    memory = some_memory();
    memory.capacity = capacity;
    allow_for_held_buckets(memory, of_parallel("data: 4"), trace, Seconds{0.035});
    EXPECT_EQ(memory.fits, capacity == 10600);
  }
  memory = some_memory();
  memory.fits = false;
  allow_for_held_buckets(memory, of_parallel("data: 4"), trace, Seconds{0.035});
  EXPECT_FALSE(memory.fits);
}

// Where the trace has those of before the first step in each step, a step without them needs less.
TEST(HeldBuckets, MayBeGoneWhereTheTraceHoldsThem) {
  Scenario s = of_parallel("data: 4");
  s.training.parallel.holds_first_buckets = true;
  MemoryPrediction memory = some_memory();
  allow_for_held_buckets(memory, s, with_buckets(), Seconds{0.035});
  EXPECT_EQ(memory.needed_low, 8900 - 1500);
  EXPECT_EQ(memory.needed_high, 9100);
}

TEST(HeldBuckets, AreOfDistributedDataParallelAlone) {
  for (const char* other : {"data: 1", "data: 4, strategy: fsdp", "data: 4, find_unused_parameters: true",
                            "data: 2, tensor: 2, framework: megatron"}) {
    MemoryPrediction memory = some_memory();
    allow_for_held_buckets(memory, of_parallel(other), with_buckets(), Seconds{0.035});
    EXPECT_EQ(memory.needed_low, 8900) << other;
    EXPECT_EQ(memory.needed_high, 9100) << other;
  }
}

// Compressed buckets, half as long, wait until a thread that looks ten times a second drops them. Of a step of 35 ms
// with gradients exchanged in each of 8 micro-batches, those of 22 exchanges, or of 2 where only the last exchanges.
TEST(HeldBuckets, CompressedOnesAreDroppedByAThreadThatSleeps) {
  const OpTrace trace = with_buckets();
  for (const bool no_sync : {false, true})
    for (const Phase phase : {Phase::backward, Phase::clipping, Phase::optimizer}) {
      Scenario s = of_parallel("data: 4");
      s.training.parallel.compression = GradientCompression::bf16;
      s.training.parallel.no_sync = no_sync;
      s.training.parallel.find_unused_parameters = true;  // the range of the other buckets is left alone
      const std::int64_t held = ((no_sync ? 2 : 22) + (phase == Phase::backward ? 0 : 1)) * 750;
      MemoryPrediction memory = some_memory();
      memory.peak_phase = phase;
      allow_for_held_buckets(memory, s, trace, Seconds{0.035});
      EXPECT_EQ(memory.peak_allocated, 7000 + held);
      EXPECT_EQ(memory.at_peak[static_cast<std::size_t>(Category::gradients)], held);
      const std::int64_t more = std::max<std::int64_t>(0, 7000 + held - 8000);
      EXPECT_EQ(memory.cached_unused, std::max<std::int64_t>(0, 1000 - held));
      EXPECT_EQ(memory.peak_reserved, 8000 + more);
      EXPECT_EQ(memory.device_used, 9000 + more);
      EXPECT_EQ(memory.needed, 9000 + more);
      EXPECT_EQ(memory.needed_low, 8900 + more);
      EXPECT_EQ(memory.needed_high, 9100 + more);
      EXPECT_EQ(memory.fits, 9100 + more <= 20000);
    }
}

TEST(HeldBuckets, OfCompressedStepsDecideWhetherTheyFit) {
  Scenario s = of_parallel("data: 4");
  s.training.parallel.compression = GradientCompression::fp16;
  s.training.parallel.no_sync = s.training.parallel.find_unused_parameters = true;
  for (const std::int64_t capacity : {9600, 9599}) {  // 1500 more are allocated, 500 more reserved
    MemoryPrediction memory = some_memory();
    memory.capacity = capacity;
    allow_for_held_buckets(memory, s, with_buckets(), Seconds{0.035});
    EXPECT_EQ(memory.needed_high, 9600);
    EXPECT_EQ(memory.fits, capacity == 9600);
  }
}

// Ranks that run the same blocks in the same order are one class.
TEST(RankClasses, AreNamedByTheirStages) {
  const Prediction answer = predict(of_parallel("data: 1, pipeline: 4, schedule: gpipe"), "analytic");
  ASSERT_TRUE(answer.parallel);
  std::vector<std::string> names;
  std::vector<std::int64_t> ranks;
  for (const RankClass& one : answer.parallel->ranks) {
    names.push_back(one.name);
    ranks.push_back(one.ranks);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"first stage", "stages 2 to 3", "last stage"}));
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{1, 2, 1}));
}

TEST(MoreOfALink, IsMoreBandwidthOrLessLatency) {
  Cluster cluster;
  cluster.links.rate = BytesPerSecond{300e9};
  cluster.pcie.rate = BytesPerSecond{30e9};
  cluster.pcie.host = BytesPerSecond{20e9};
  cluster.nics.rate = BytesPerSecond{50e9};
  cluster.nics.latency = Seconds{12e-6};
  Cluster links = cluster;
  links.links.rate = BytesPerSecond{1200e9};
  links.pcie.rate = BytesPerSecond{120e9};
  links.pcie.host = BytesPerSecond{80e9};
  EXPECT_EQ(with_more(cluster, LinkResource::link_bandwidth, 4.0), links);
  Cluster network = cluster;
  network.nics.rate = BytesPerSecond{200e9};
  EXPECT_EQ(with_more(cluster, LinkResource::network_bandwidth, 4.0), network);
  Cluster latency = cluster;
  latency.nics.latency = Seconds{3e-6};
  EXPECT_EQ(with_more(cluster, LinkResource::network_latency, 4.0), latency);
  EXPECT_EQ(name_of(LinkResource::link_bandwidth), "link_bandwidth");
  EXPECT_EQ(name_of(LinkResource::network_bandwidth), "network_bandwidth");
  EXPECT_EQ(name_of(LinkResource::network_latency), "network_latency");
  EXPECT_EQ(title_of(LinkResource::link_bandwidth), "bandwidth of links between GPUs");
  EXPECT_EQ(title_of(LinkResource::network_bandwidth), "bandwidth of the network");
  EXPECT_EQ(title_of(LinkResource::network_latency), "latency of the network");
}

}  // namespace
}  // namespace ridgeline
