// What all ways of a plan share: which cluster, which batch, what is kept of what was said, and what is left out of the
// scenario because it is searched.
#include "sim/study/plan/plan_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

PlanRequest asked_of(const std::string& text, std::vector<std::int64_t> gpus, std::optional<std::int64_t> batch = {},
                     std::vector<config::Override> overrides = {}) {
  PlanRequest request;
  request.source.text = text;
  request.source.text_name = "question";
  request.source.overrides = std::move(overrides);
  request.gpus = std::move(gpus);
  request.batch = batch;
  return request;
}
PlanBase base_of(const PlanRequest& request) {
  Descriptions descriptions;
  return plan_base(request, descriptions);
}
std::string complaint_of(const PlanRequest& request) {
  try {
    (void)base_of(request);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

std::string on_hardware(const std::string& gpu, const std::string& training = "micro_batch: 2, sequence_length: 128") {
  return "{hardware: " + gpu + ", model: gpt2, training: {" + training + "}}";
}

/// "training.micro_batch=1", in the order of the tree.
void flatten(const config::Node& node, const std::string& path, std::vector<std::string>& out) {
  if (node.kind == config::Node::Kind::scalar) out.push_back(path + "=" + node.scalar);
  for (const config::Entry& entry : node.entries)
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, out);
}
std::vector<std::string> lines_of(const config::Node& tree) {
  std::vector<std::string> out;
  flatten(tree, "", out);
  return out;
}

// The machine with the smallest node that has them all, the first of equal ones; else the largest nodes that a network
// joins.
TEST(PlanBase, AssumesTheSmallestMachineThatHasTheGpus) {
  const auto cluster = [](const std::string& gpu, std::vector<std::int64_t> gpus) {
    const PlanBase base = base_of(asked_of(on_hardware(gpu), std::move(gpus)));
    EXPECT_EQ(base.assumed, base.cluster_name + " is assumed for " + gpu + "; --cluster names another");
    EXPECT_EQ(base.cluster.name, base.cluster_name);
    EXPECT_EQ(*base.scenario.cluster, base.cluster);
    return base.cluster_name;
  };
  EXPECT_EQ(cluster("nvidia-a100-sxm4-80gb", {1}), "hgx-a100-x4");
  EXPECT_EQ(cluster("nvidia-a100-sxm4-80gb", {4}), "hgx-a100-x4");
  EXPECT_EQ(cluster("nvidia-a100-sxm4-80gb", {8}), "dgx-a100") << "p4de has as many";
  EXPECT_EQ(cluster("nvidia-a100-sxm4-80gb", {1, 4, 8}), "dgx-a100") << "for the most that are asked for";
  EXPECT_EQ(cluster("nvidia-a100-sxm4-80gb", {16}), "dgx-a100") << "nodes of eight";
  EXPECT_EQ(cluster("nvidia-v100-sxm2-16gb", {3}), "v100-x4-nvlink");
  EXPECT_EQ(cluster("nvidia-v100-sxm2-16gb", {5}), "dgx-1-v100");
  EXPECT_EQ(cluster("nvidia-v100-sxm2-16gb", {24}), "dgx-1-v100");
  EXPECT_EQ(cluster("nvidia-rtx-3090", {2}), "rtx3090-x2-nvlink");
  EXPECT_EQ(cluster("nvidia-rtx-3090", {3}), "rtx3090-x4-nvlink") << "the first by name of those as small";
  EXPECT_THAT(complaint_of(asked_of(on_hardware("nvidia-rtx-3090"), {5})),
              HasSubstr("5 GPUs are several nodes of rtx3090-x2-nvlink, which has 2 a node and no NICs (nics.count)"));
  EXPECT_THAT(
      complaint_of(asked_of(on_hardware("nvidia-l4"), {2})),
      StartsWith("plan: no machine of hw/clusters has the GPU nvidia-l4: name one with --cluster, or describe it "
                 "in the scenario (cluster: {gpu: nvidia-l4, gpus: 8, ...}; docs/clusters.md). There are those "
                 "with nvidia-a100-pcie-80gb, nvidia-a100-sxm4-40gb, nvidia-a100-sxm4-80gb"));
}

TEST(PlanBase, TakesTheClusterThatIsNamedOrDescribed) {
  const PlanBase named = base_of(asked_of("{cluster: p4de, model: gpt2, training: {sequence_length: 128}}", {8}, 16));
  EXPECT_EQ(named.cluster_name, "p4de");
  EXPECT_EQ(named.assumed, "");
  EXPECT_EQ(named.scenario.gpu.name, "nvidia-a100-sxm4-80gb");
  const PlanBase by_command_line =
      base_of(asked_of(on_hardware("nvidia-t4"), {4}, 16, {{"cluster", "hgx-a100-x4", ""}}));
  EXPECT_EQ(by_command_line.cluster_name, "hgx-a100-x4");
  EXPECT_EQ(by_command_line.scenario.gpu.name, "nvidia-a100-sxm4-80gb") << "the file's GPU is another question's";
  EXPECT_THAT(complaint_of(asked_of(on_hardware("nvidia-t4"), {4}, 16,
                                    {{"cluster", "hgx-a100-x4", ""}, {"hardware", "nvidia-t4", ""}})),
              HasSubstr("nvidia-t4"))
      << "two answers to one question";
  const PlanBase described = base_of(
      asked_of("{hardware: nvidia-t4, cluster: {gpu: nvidia-t4, gpus: 3, interconnect: pcie, pcie: {rate: 10 GB/s, "
               "peer_to_peer: false, host: 20 GB/s}}, model: gpt2, training: {sequence_length: 128}}",
               {3}, 6));
  EXPECT_EQ(described.cluster_name, "described in the scenario");
  EXPECT_EQ(described.assumed, "");
  EXPECT_EQ(described.cluster.gpus, 3);
  EXPECT_THAT(complaint_of(asked_of("{hardware: {dram: 3}, model: gpt2, training: {sequence_length: 128}}", {3}, 6)),
              StartsWith("plan: on which GPUs?"));
}

TEST(PlanBase, NodesAreWholeOrAPartOfOne) {
  Cluster cluster;
  cluster.gpus = 8;
  cluster.nics.count = 4;
  for (const std::int64_t gpus : {1, 3, 7, 8}) EXPECT_EQ(nodes_for(cluster, gpus), 1) << gpus;
  EXPECT_EQ(nodes_for(cluster, 16), 2);
  EXPECT_EQ(nodes_for(cluster, 40), 5);
  const auto refusal = [&](std::int64_t gpus) {
    try {
      (void)nodes_for(cluster, gpus);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal(20), "plan: 20 GPUs are no whole number of nodes: the cluster has 8 a node; 16 or 24?");
  cluster.name = "four";
  EXPECT_EQ(refusal(9), "plan: 9 GPUs are no whole number of nodes: four has 8 a node; 8 or 16?");
  cluster.nics.count = 0;
  EXPECT_EQ(refusal(8), "none");
  EXPECT_EQ(
      refusal(16),
      "plan: 16 GPUs are several nodes of four, which has 8 a node and no NICs (nics.count) that would join them");
}

constexpr const char* kEverythingSaid =
    "{hardware: nvidia-a100-sxm4-80gb, measured: {step_time: 3 ms}, model: {family: gpt2, layers: 8, heads: 4, hidden: "
    "256, vocabulary: 500, max_positions: 128}, training: {micro_batch: 3, gradient_accumulation: 5, sequence_length: "
    "128, precision: bf16, activation_checkpointing: block, parallel: {data: 4, strategy: ddp, tensor: 2, pipeline: 2, "
    "schedule: 1f1b, virtual_stages: 1, context: 1, expert: 1, replicate: 1, tensor_style: by-hand, "
    "sequence_parallel: false, no_sync: true, bucket_cap: 4 MiB}}}";

// What is searched is gone, whatever the file says of it; what narrows the search stands apart; the rest stays.
TEST(PlanBase, LeavesOutWhatIsSearched) {
  const PlanBase base = base_of(asked_of(kEverythingSaid, {4}, 64));
  EXPECT_THAT(lines_of(base.tree),
              ElementsAre("hardware=nvidia-a100-sxm4-80gb", "model.family=gpt2", "model.layers=8", "model.heads=4",
                          "model.hidden=256", "model.vocabulary=500", "model.max_positions=128",
                          "training.micro_batch=1", "training.gradient_accumulation=1", "training.sequence_length=128",
                          "training.precision=bf16", "training.parallel.bucket_cap=4 MiB", "cluster=hgx-a100-x4"));
  EXPECT_THAT(base.changes, IsEmpty());
  std::vector<std::string> kept;
  for (const auto& [key, change] : base.kept) kept.push_back(key + ": " + change.key + "=" + change.value);
  EXPECT_THAT(kept, ElementsAre("no_sync: training.parallel.no_sync=true",
                                "sequence_parallel: training.parallel.sequence_parallel=false",
                                "tensor_style: training.parallel.tensor_style=by-hand"));
  EXPECT_EQ(base.kept.at("no_sync").origin.substr(0, 9), "question:");
  EXPECT_EQ(base.scenario.training.micro_batch, 1);
  EXPECT_EQ(base.scenario.training.gradient_accumulation, 1);
  EXPECT_EQ(base.scenario.training.parallel.gpus(), 1);
  EXPECT_EQ(base.scenario.training.activation_checkpointing, ActivationCheckpointing::none);
  EXPECT_FALSE(base.scenario.measured.step_time);
}

// What the command line says of what is searched is kept, before what the file says; changes of descriptions stand for
// themselves; others change the tree.
TEST(PlanBase, KeepsWhatTheCommandLineSays) {
  const PlanBase base = base_of(asked_of(kEverythingSaid, {4}, 64,
                                         {{"training.parallel.tensor", "2", ""},
                                          {"training.parallel.no_sync", "false", "a flag"},
                                          {"training.activation_checkpointing", "none", ""},
                                          {"hardware.dram.capacity", "20 GB", ""},
                                          {"model.layers", "12", ""},
                                          {"host.scale", "1.5", ""},
                                          {"training.sequence_length", "64", ""},
                                          {"training.parallel.bucket_cap", "2 MiB", ""}}));
  std::vector<std::string> kept, changes;
  for (const auto& [key, change] : base.kept)
    kept.push_back(key + ": " + change.key + "=" + change.value + " by " + change.origin.substr(0, 8));
  EXPECT_THAT(kept, ElementsAre("activation_checkpointing: training.activation_checkpointing=none by --set tr",
                                "no_sync: training.parallel.no_sync=false by a flag",
                                "sequence_parallel: training.parallel.sequence_parallel=false by question",
                                "tensor: training.parallel.tensor=2 by --set tr",
                                "tensor_style: training.parallel.tensor_style=by-hand by question"));
  EXPECT_EQ(base.kept.at("tensor").origin, "--set training.parallel.tensor=2");
  for (const config::Override& change : base.changes) changes.push_back(change.key + "=" + change.value);
  EXPECT_THAT(changes, ElementsAre("hardware.dram.capacity=20 GB", "model.layers=12", "host.scale=1.5"));
  EXPECT_EQ(base.scenario.model.layers, 12);
  EXPECT_EQ(base.scenario.gpu.dram.capacity, Bytes{20e9});
  const std::vector<std::string> lines = lines_of(base.tree);
  EXPECT_THAT(lines, ::testing::Contains("training.sequence_length=64"));
  EXPECT_THAT(lines, ::testing::Contains("training.parallel.bucket_cap=2 MiB"));
  EXPECT_THAT(lines, ::testing::Contains("model.layers=8")) << "the change stands beside the tree";
}

// Sequences of a step: as many as are asked for, else as the scenario's own ranks and micro-batches make.
TEST(PlanBase, KeepsTheBatchOfTheStep) {
  const auto batch = [](const std::string& text, std::optional<std::int64_t> given = {},
                        std::vector<config::Override> overrides = {}) {
    return base_of(asked_of(text, {4}, given, std::move(overrides))).batch;
  };
  EXPECT_EQ(batch(kEverythingSaid), 4 * 3 * 5);
  EXPECT_EQ(batch(kEverythingSaid, 7), 7);
  EXPECT_EQ(batch(kEverythingSaid, {}, {{"training.micro_batch", "2", ""}}), 4 * 2 * 5);
  EXPECT_EQ(batch(on_hardware("nvidia-t4")), 2);
  EXPECT_EQ(batch(on_hardware("nvidia-t4", "micro_batch: 2, gradient_accumulation: 3, sequence_length: 128")), 6);
  EXPECT_EQ(batch(on_hardware("nvidia-t4", "micro_batch: 2, sequence_length: 128, parallel: {strategy: zero1}")), 2);
  // A cluster in the file, and no word of ranks: all of its GPUs see other data.
  constexpr const char* kOnCluster =
      "{cluster: t4-x4-pcie, model: gpt2, training: {micro_batch: 2, gradient_accumulation: 3, sequence_length: 128}}";
  EXPECT_EQ(batch(kOnCluster), 4 * 2 * 3);
  EXPECT_EQ(batch(kOnCluster, {}, {{"cluster", "hgx-a100-x4", ""}}), 2 * 3) << "a machine of the command line's";
  EXPECT_EQ(complaint_of(asked_of("{hardware: nvidia-t4, model: gpt2, training: {sequence_length: 128}}", {2})),
            "plan: how many sequences does a step have? --batch N says it");
  EXPECT_EQ(complaint_of(asked_of("{hardware: nvidia-t4, model: gpt2}", {2})),
            "plan: how many sequences does a step have? --batch N says it");
  EXPECT_THAT(complaint_of(asked_of(on_hardware("nvidia-t4", "micro_batch: 0, sequence_length: 128"), {2})),
              HasSubstr("training.micro_batch"));
}

TEST(PlanBase, CountsAreWithinReason) {
  const std::string good = on_hardware("nvidia-t4");
  EXPECT_EQ(complaint_of(asked_of(good, {})), "plan: on how many GPUs? --gpus N");
  EXPECT_EQ(complaint_of(asked_of(good, {2, 0})), "plan: --gpus 0: expected 1 to 65536");
  EXPECT_EQ(complaint_of(asked_of(good, {65537})), "plan: --gpus 65537: expected 1 to 65536");
  EXPECT_EQ(complaint_of(asked_of(on_hardware("nvidia-v100-sxm2-16gb"), {65536})), "none");
  EXPECT_EQ(complaint_of(asked_of(good, {1})), "none");
  EXPECT_EQ(complaint_of(asked_of(good, {1}, 0)), "plan: --batch 0: expected at least one sequence");
  EXPECT_EQ(complaint_of(asked_of(good, {1}, 1)), "none");
}

TEST(PlanBase, RefusesWhatDoesNotTrain) {
  EXPECT_EQ(complaint_of(asked_of("{hardware: nvidia-t4, trace: step.json}", {2}, 4)),
            "plan: a recorded step runs as it was recorded; plan needs a model");
  PlanRequest request = asked_of("{hardware: nvidia-t4, model: gpt2, inference: {prompt_length: 8}}", {2}, 4);
  EXPECT_EQ(complaint_of(request), "plan: plan is about training; this scenario has inference");
  request = asked_of(on_hardware("nvidia-t4"), {2}, 4);
  request.source.numbers = Numbers::datasheet;
  EXPECT_EQ(complaint_of(request), "plan: --datasheet does not go with plan");
  constexpr const char* kNotSearched =
      "plan: training.parallel.framework: deepspeed is not searched; expected torch or megatron (sweep tries "
      "DeepSpeed's stages: training.parallel.strategy: [zero1, zero2, zero3])";
  EXPECT_EQ(complaint_of(
                asked_of(on_hardware("nvidia-t4", "sequence_length: 128, parallel: {framework: deepspeed}"), {2}, 4)),
            kNotSearched);
  EXPECT_EQ(
      complaint_of(asked_of(on_hardware("nvidia-t4"), {2}, 4, {{"training.parallel.framework", "deepspeed", ""}})),
      kNotSearched);
  EXPECT_EQ(complaint_of(asked_of(on_hardware("nvidia-t4", "sequence_length: 128, parallel: {framework: deepspeed}"),
                                  {2}, 4, {{"training.parallel.framework", "megatron", ""}})),
            "none");
}

// A value that is kept must be one that some way can have.
TEST(PlanBase, RefusesWhatNoWayCanHave) {
  const auto told = [](const std::string& key, const std::string& value, std::vector<std::int64_t> gpus = {4}) {
    return complaint_of(
        asked_of(on_hardware("nvidia-a100-sxm4-80gb"), std::move(gpus), 8, {{"training.parallel." + key, value, ""}}));
  };
  for (const char* degree : {"data", "tensor", "pipeline", "context", "expert"}) {
    const std::string key = std::string("training.parallel.") + degree;
    EXPECT_EQ(told(degree, "2"), "none");
    EXPECT_EQ(told(degree, "3"), "--set " + key + "=3: " + key + ": does not divide the 4 GPUs");
    EXPECT_EQ(told(degree, "3", {2, 4}), "--set " + key + "=3: " + key + ": does not divide the 2, 4 GPUs");
    EXPECT_EQ(told(degree, "4", {2, 4}), "none") << "one of them will do";
    EXPECT_THAT(told(degree, "0"), HasSubstr(key));
    EXPECT_THAT(told(degree, "many"), HasSubstr(key));
  }
  EXPECT_EQ(told("strategy", "zero2"), "none");
  EXPECT_THAT(told("strategy", "zero4"), HasSubstr("unknown value"));
  EXPECT_EQ(told("schedule", "zbv"), "none") << "with a pipeline, as it would be";
  EXPECT_THAT(told("schedule", "2f2b"), HasSubstr("unknown value"));
  EXPECT_EQ(told("tensor_style", "by-hand"), "none");
  EXPECT_THAT(told("tensor_style", "by-foot"), HasSubstr("unknown value"));
  EXPECT_EQ(told("virtual_stages", "2"), "none");
  EXPECT_THAT(complaint_of(asked_of(on_hardware("nvidia-a100-sxm4-80gb"), {4}, 8,
                                    {{"training.activation_checkpointing", "some", ""}})),
              HasSubstr("unknown value"));
}

}  // namespace
}  // namespace ridgeline
