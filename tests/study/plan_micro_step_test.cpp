// One micro-batch alone, which the bounds of a plan stand on: what is left of a scenario, and what its kernels and
// activations are, looked over once more in the launches of its program.
#include <gtest/gtest.h>

#include <set>
#include <variant>

#include "sim/answer/step_run.h"
#include "sim/program/launched_kernels.h"
#include "sim/study/plan/plan_bounds.h"

namespace ridgeline {
namespace {

Scenario stepped(const std::string& training, std::int64_t layers = 6,
                 const std::string& hardware = "nvidia-h200-sxm-141gb") {
  ScenarioSource source;
  source.text = "{hardware: " + hardware + ", " + (hardware == "nvidia-h200-sxm-141gb" ? "cluster: hgx-h200, " : "") +
                "model: {family: gpt2, layers: " + std::to_string(layers) +
                ", heads: 4, hidden: 128, vocabulary: 1000, max_positions: 128}, training: {micro_batch: 2, "
                "sequence_length: 96, precision: amp-bf16, " +
                training + "}}";
  source.text_name = "test";
  return load_scenario(source);
}

// Everything that makes a step out of micro-batches is gone; what splits layers and experts stays.
TEST(PlanMicroStep, IsOneMicroBatchOfOneTensorParallelGroup) {
  Scenario s = stepped("parallel: {data: 1}");
  TrainingDescription& t = s.training;
  t.sequence_length = 96;
  t.gradient_accumulation = 7;
  t.gradient_clipping = 1.0;
  t.reads_loss = LossRead::step;
  t.activation_checkpointing = ActivationCheckpointing::block;
  t.parallel = {};
  t.parallel.data = 4;
  t.parallel.strategy = DataStrategy::fsdp;
  t.parallel.bucket_cap = 5;
  t.parallel.gradient_as_bucket_view = true;
  t.parallel.no_sync = true;
  t.parallel.wrap = 2;
  t.parallel.parameter_type = DType::bf16;
  t.parallel.replicate = 2;
  t.parallel.tensor = 2;
  t.parallel.tensor_style = TensorStyle::by_hand;
  t.parallel.sequence_parallel = true;
  t.parallel.loss_parallel = true;
  t.parallel.prepared_inputs = false;
  t.parallel.context = 3;
  t.parallel.rotation = ContextRotation::all_to_all;
  t.parallel.expert = 4;
  t.parallel.expert_capacity = 1.25;
  t.parallel.pipeline = 2;
  t.parallel.schedule = PipelineSchedule::interleaved;
  t.parallel.virtual_stages = 2;
  t.precision = Precision::fp32;
  const Scenario own = micro_step_of(s);
  TrainingDescription expected = s.training;
  expected.precision = Precision::bf16;  // what weights are gathered in
  expected.gradient_accumulation = 1;
  expected.gradient_clipping.reset();
  expected.reads_loss = LossRead::never;
  expected.optimizer.kind = OptimizerKind::none;
  expected.sequence_length = 32;  // a third of each sequence
  expected.parallel = {};
  expected.parallel.data = 4;
  expected.parallel.tensor = 2;
  expected.parallel.tensor_style = TensorStyle::by_hand;
  expected.parallel.sequence_parallel = true;
  expected.parallel.loss_parallel = true;
  expected.parallel.prepared_inputs = false;
  expected.parallel.expert = 4;
  expected.parallel.expert_capacity = 1.25;
  EXPECT_EQ(own.training, expected);
  EXPECT_EQ(own.model, s.model);
  EXPECT_EQ(own.gpu.dram.capacity, Bytes{1e18});
  EXPECT_EQ(own.cluster->nodes, 1);
}

TEST(PlanMicroStep, KeepsAReadingOfEachMicroBatchAndMegatronsOptimizer) {
  Scenario s = stepped("parallel: {data: 1}");
  s.training.reads_loss = LossRead::micro_batch;
  EXPECT_EQ(micro_step_of(s).training.reads_loss, LossRead::micro_batch);
  s.training.reads_loss = LossRead::never;
  EXPECT_EQ(micro_step_of(s).training.reads_loss, LossRead::never);
  s.training.parallel.framework = Framework::megatron;
  EXPECT_EQ(micro_step_of(s).training.parallel.framework, Framework::megatron);
  EXPECT_EQ(micro_step_of(s).training.optimizer.kind, OptimizerKind::adamw) << "it has no step without";
}

// As many nodes of eight as hold the ranks that stay.
TEST(PlanMicroStep, HasTheNodesThatItsRanksNeed) {
  Scenario s = stepped("parallel: {data: 1}");
  s.cluster->nodes = 4;
  const auto nodes = [&](std::int64_t tensor, std::int64_t expert) {
    s.training.parallel.tensor = tensor;
    s.training.parallel.expert = expert;
    return micro_step_of(s).cluster->nodes;
  };
  EXPECT_EQ(nodes(1, 1), 1);
  EXPECT_EQ(nodes(8, 1), 1);
  EXPECT_EQ(nodes(2, 4), 1);
  EXPECT_EQ(nodes(3, 3), 2);
  EXPECT_EQ(nodes(2, 8), 2);
  EXPECT_EQ(nodes(16, 1), 2);
  EXPECT_EQ(nodes(17, 1), 3);
  s.cluster.reset();
  EXPECT_FALSE(micro_step_of(s).cluster);
}

struct Split {
  double all = 0.0, block = 0.0, embedding = 0.0, head = 0.0;
};

/// Kernels of a pass in their order; those of blocks stand between the first and the last one that a layer has.
Split split_of(const StepRun& run) {
  struct Launched {
    std::int16_t layer;
    double time;
  };
  std::vector<Launched> passes[2];
  const StepProgram& program = run.program();
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const double time = run.times()[i++].time.value();
    if (action.call == Action::kNoCall) continue;
    const Call& call = program.trace->calls[action.call];
    if (std::holds_alternative<Collective>(program.trace->ops[call.op])) continue;
    if (call.phase == Phase::forward) passes[0].push_back({call.layer, time});
    if (call.phase == Phase::backward) passes[1].push_back({call.layer, time});
  }
  Split result;
  for (const int pass : {0, 1}) {
    std::size_t first = passes[pass].size(), last = 0;
    for (std::size_t k = 0; k < passes[pass].size(); ++k)
      if (passes[pass][k].layer >= 0) first = std::min(first, k), last = k;
    for (std::size_t k = 0; k < passes[pass].size(); ++k) {
      const double time = passes[pass][k].time;
      result.all += time;
      if (passes[pass][k].layer >= 0) result.block += time / static_cast<double>(run.scenario().model.layers);
      else if (k < first) (pass == 0 ? result.embedding : result.head) += time;
      else if (k > last) (pass == 0 ? result.head : result.embedding) += time;
    }
  }
  return result;
}

/// Bytes of activations alive at once: all that are alive are added up after each action.
double most_alive(const StepRun& run) {
  const StepProgram& program = run.program();
  std::set<std::uint32_t> alive;
  std::int64_t most = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind == Action::Kind::allocate) alive.insert(action.index);
    else if (action.kind == Action::Kind::free) alive.erase(action.index);
    else continue;
    std::int64_t bytes = 0;
    for (const std::uint32_t one : alive)
      if (program.storages[one].category == Category::activations) bytes += program.storages[one].bytes;
    most = std::max(most, bytes);
  }
  return static_cast<double>(most);
}

void expect_micro_step(const Scenario& scenario, bool alone) {
  const Scenario own = micro_step_of(scenario);
  Session session;
  const MicroStep found = time_micro_step(session, own, "analytic");
  const StepRun run(session, own, "analytic");
  const Split split = split_of(run);
  EXPECT_GT(split.embedding, 0.0);
  EXPECT_NEAR(found.kernels.value(), split.all, 1e-9 * split.all);
  EXPECT_NEAR(found.block.value(), split.block, 1e-9 * split.block);
  EXPECT_NEAR(found.embedding.value(), split.embedding, 1e-9 * split.embedding);
  EXPECT_NEAR(found.head.value(), split.head, 1e-9 * split.head);
  EXPECT_EQ(found.activations, most_alive(run));
  Scenario fewer = own;
  fewer.model.layers = own.model.layers / 2;
  const double of_block = (most_alive(run) - most_alive(StepRun(session, fewer, "analytic"))) /
                          static_cast<double>(own.model.layers - own.model.layers / 2);
  EXPECT_GT(of_block, 0.0);
  EXPECT_EQ(found.of_block, of_block);
  if (!alone) {
    EXPECT_EQ(found.first, found.kernels);
    EXPECT_EQ(found.further, found.kernels);
    return;
  }
  Scenario two = own;
  two.training.gradient_accumulation = 2;
  EXPECT_EQ(found.first, run.timeline().step);
  EXPECT_EQ(found.further,
            std::min(found.first, StepRun(session, two, "analytic").timeline().step - run.timeline().step));
  EXPECT_GT(found.further, Seconds{});
}

TEST(PlanMicroStep, TimesWhatItsProgramRuns) {
  expect_micro_step(stepped("parallel: {data: 1}"), true);
  expect_micro_step(stepped("parallel: {data: 1}", 5), true);
  expect_micro_step(stepped("gradient_accumulation: 4, parallel: {data: 1}", 4), true);
  expect_micro_step(stepped("activation_checkpointing: block, parallel: {data: 1}"), true);
  expect_micro_step(stepped("parallel: {data: 1, tensor: 2, tensor_style: by-hand}"), true);
  expect_micro_step(stepped("parallel: {framework: megatron, data: 1, tensor: 2}"), false);
}

// Blocks are alike: so many more take so much longer and hold so much more, and what is outside of them stays.
TEST(PlanMicroStep, GrowsByItsBlocks) {
  Session session;
  const auto of = [&](std::int64_t layers) {
    return time_micro_step(session, micro_step_of(stepped("parallel: {data: 1}", layers)), "roofline");
  };
  const MicroStep eight = of(8), twelve = of(12), three = of(3), four = of(4);
  EXPECT_NEAR(ratio(twelve.kernels - eight.kernels, eight.block * 4.0), 1.0, 1e-2);
  EXPECT_NEAR(ratio(twelve.embedding, eight.embedding), 1.0, 1e-9);
  EXPECT_NEAR(ratio(twelve.head, eight.head), 1.0, 1e-9);
  EXPECT_NEAR(twelve.activations - eight.activations, 4 * eight.of_block, 1.0);
  EXPECT_GT(four.of_block, 0.0);
  EXPECT_EQ(three.of_block, 0.0) << "too few to tell";
}

// Where it cannot run, nothing is known.
TEST(PlanMicroStep, KnowsNothingOfWhatCannotRun) {
  Session session;
  const Scenario s = stepped("attention: flash", 6, "nvidia-v100-sxm2-32gb");
  const MicroStep none = time_micro_step(session, micro_step_of(s), "analytic");
  for (const Seconds time : {none.kernels, none.first, none.further, none.block, none.embedding, none.head})
    EXPECT_EQ(time, Seconds{});
  EXPECT_EQ(none.activations, 0.0);
  EXPECT_EQ(none.of_block, 0.0);
}

}  // namespace
}  // namespace ridgeline
