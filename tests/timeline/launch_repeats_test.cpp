// Launches that come again, against the storages that they touch.
#include "sim/timeline/launch_repeats.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/timeline/step_launches.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

class LaunchRepeatsOfANetwork : public ::testing::TestWithParam<ModelFamily> {
 protected:
  LaunchRepeatsOfANetwork() {
    ModelDescription model;
    model.family = GetParam();
    model.layers = 8;
    model.heads = 4;
    model.hidden = 256;
    model.vocabulary = 1000;
    model.max_positions = 256;
    if (model.family == ModelFamily::bert) model.head = ModelHead::masked_lm;
    TrainingDescription training;
    training.micro_batch = 4;
    training.sequence_length = 128;
    training.precision = Precision::amp_bf16;
    trace_ = training_run(model, training, AttentionChoice::eager);
    program_ = make_program(trace_, load_gpu("nvidia-a100-sxm4-80gb"), load_software("pytorch-2.11"));
    launches_ = launches_before(program_);
    for (const Action& action : program_.steady_step())
      if (action.kind == Action::Kind::launch) launches_.push_back(&action);
    repeats_ = repeats_of_launches(program_);
  }
  OpTrace trace_;
  StepProgram program_;
  std::vector<const Action*> launches_;
  LaunchRepeats repeats_;
};

TEST_P(LaunchRepeatsOfANetwork, EachStorageOfARunStandsForOneOther) {
  ASSERT_EQ(repeats_.runs.size(), launches_.size());
  for (std::size_t at = 0; at < launches_.size(); ++at) {
    const auto [back, length] = repeats_.runs[at];
    ASSERT_LE(back, at);
    ASSERT_LE(at + length, launches_.size());
    std::map<StorageId, StorageId> stands_for, stood_for_by;
    for (std::size_t i = at; i < at + length; ++i) {
      const Action &now = *launches_[i], &before = *launches_[i - back];
      ASSERT_EQ(now.index, before.index);
      const auto operands = program_.operands_of(now.call), others = program_.operands_of(before.call);
      ASSERT_EQ(operands.size(), others.size());
      for (std::size_t k = 0; k < operands.size(); ++k) {
        ASSERT_EQ(stands_for.try_emplace(operands[k].storage, others[k].storage).first->second, others[k].storage);
        ASSERT_EQ(stood_for_by.try_emplace(others[k].storage, operands[k].storage).first->second, operands[k].storage);
      }
    }
  }
}

TEST_P(LaunchRepeatsOfANetwork, MostLaunchesOfEqualBlocksComeAgainInLongRuns) {
  std::size_t in_long_runs = 0;
  for (const LaunchRepeats::Run& run : repeats_.runs) in_long_runs += run.length >= 8 ? 1 : 0;
  EXPECT_GT(2 * in_long_runs, launches_.size());
}

INSTANTIATE_TEST_SUITE_P(Families, LaunchRepeatsOfANetwork, ::testing::Values(ModelFamily::bert, ModelFamily::gpt2));

}  // namespace
}  // namespace ridgeline
