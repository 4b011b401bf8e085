// What launches find in the L2, worked out stretch by stretch and remembered, against every launch visited in order.
#include "sim/timeline/step_residency.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/timeline/step_launches.h"
#include "sim/timing/l2_residency.h"
#include "sim/workload/training_step.h"
#include "tests/support/draws.h"

namespace ridgeline {
namespace {

/// Shares of all accesses of the steady step, to 1/32.
std::vector<double> shares_one_by_one(const StepProgram& program, const L2Spec& l2) {
  std::vector<double> all, shares;
  L2Residency held(l2);
  for (const Action* action : launches_before(program))
    held.visit(program.launches[action->index], program.operands_of(action->call), shares);
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    held.visit(program.launches[action.index], program.operands_of(action.call), shares);
    for (const double share : shares) all.push_back(std::round(share * 32.0) / 32.0);
  }
  return all;
}

struct Case {
  ModelDescription model;
  TrainingDescription training;
  AttentionChoice attention;
};
Case random_case(testing_support::Draws& draws) {
  Case one;
  ModelDescription& model = one.model;
  model.family = draws.index(2) == 0 ? ModelFamily::gpt2 : ModelFamily::bert;
  model.layers = 2 + static_cast<std::int64_t>(draws.index(6));
  model.heads = 4;
  model.hidden = 256 << draws.index(3);
  model.vocabulary = static_cast<std::int64_t>(draws.between(500, 60000));
  model.max_positions = 1024;
  model.dropout = 0.1;
  if (model.family == ModelFamily::bert) model.head = ModelHead::masked_lm;
  TrainingDescription& training = one.training;
  training.micro_batch = static_cast<std::int64_t>(draws.between(1, 40));
  training.sequence_length = static_cast<std::int64_t>(draws.between(16, 1024));
  training.precision = draws.index(2) == 0 ? Precision::amp_bf16 : Precision::fp32;
  training.optimizer.implementation =
      draws.index(2) == 0 ? OptimizerImplementation::foreach : OptimizerImplementation::fused;
  if (draws.index(2) == 0) training.gradient_clipping = 1.0;
  one.attention = draws.index(2) == 0 ? AttentionChoice::eager : AttentionChoice::math;
  return one;
}

TEST(StepResidency, OfStretchesIsThatOfAllLaunchesInOrder) {
  const std::uint64_t seed = testing_support::changing_seed();
  testing_support::Draws draws(seed);
  const Software software = load_software("pytorch-2.11");
  std::size_t found = 0, shares = 0;
  for (const char* name : {"nvidia-t4", "nvidia-a100-sxm4-80gb", "nvidia-h200-sxm-141gb", "nvidia-rtx-3090"}) {
    const Gpu gpu = load_gpu(name);
    KnownStretches known;
    for (int i = 0; i < 12; ++i) {
      SCOPED_TRACE(::testing::Message() << "RIDGELINE_TEST_SEED=" << seed << ", " << name << ", case " << i);
      const Case one = random_case(draws);
      const OpTrace trace = training_run(one.model, one.training, one.attention);
      const StepProgram program = make_program(trace, gpu, software);
      const std::vector<std::uint64_t> accesses = accesses_of_launches(program);
      const ListOperands lists(trace);
      const LaunchRepeats repeats = repeats_of_launches(program);
      const StepResidency residency = residency_of_step(program, gpu.l2, {accesses, lists, &repeats}, known);
      ASSERT_EQ(residency.shares, shares_one_by_one(program, gpu.l2));
      const StepResidency alone = residency_of_step(program, gpu.l2);
      ASSERT_EQ(residency.shares, alone.shares);
      ASSERT_EQ(residency.packed, alone.packed);
      ASSERT_EQ(residency.begin, alone.begin);
      for (const double share : residency.shares) found += share > 0.0 ? 1 : 0;
      shares += residency.shares.size();
    }
  }
  EXPECT_GT(found, shares / 20) << "an L2 that holds nothing shows nothing";
  EXPECT_LT(found, shares);
}

}  // namespace
}  // namespace ridgeline
