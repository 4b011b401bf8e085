// Steps on several GPUs that nothing was fitted on. Under Megatron-LM, published: GPTs of up to a million million
// parameters on 8 to 512 A100s (2022), and cut Llamas on eight B200s (2026). Bounds are today's errors with a little
// room.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/study/validation/published_training.h"

namespace ridgeline {
namespace {

struct Errors {
  std::vector<double> time, memory;
};

double median_of(std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  return errors.at(errors.size() / 2);
}
double worst_of(const std::vector<double>& errors) { return *std::max_element(errors.begin(), errors.end()); }

Errors errors_of(const char* name) {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  Session session;
  Errors errors;
  for (PublishedTraining& row : load_published_training(index.file(name))) {
    const StepRun run(session, std::move(row.scenario), "analytic");
    const double time = ratio(run.timeline().step, row.step_time) - 1.0;
    std::printf("%-55s time %+5.1f %%", row.id.c_str(), 100.0 * time);
    errors.time.push_back(std::abs(time));
    if (row.peak_allocated) {
      const double memory =
          static_cast<double>(run.memory().peak_allocated) / static_cast<double>(*row.peak_allocated) - 1.0;
      std::printf(", memory %+5.1f %%", 100.0 * memory);
      errors.memory.push_back(std::abs(memory));
    }
    std::printf("\n");
  }
  return errors;
}

TEST(MegatronPublished, on_up_to_512_a100s_take_the_time_they_took) {
  constexpr double kMedian = 0.045, kWorst = 0.065;  // asked for: a median of 0.10
  const Errors errors = errors_of("public/megatron_large.jsonl.gz");
  ASSERT_EQ(errors.time.size(), 7u);
  EXPECT_LE(median_of(errors.time), kMedian);
  EXPECT_LE(worst_of(errors.time), kWorst);
}

TEST(MegatronPublished, on_eight_b200s_take_the_time_and_memory_they_took) {
  constexpr double kMedian = 0.062, kWorst = 0.161;              // asked for: a median of 0.10
  constexpr double kMemoryMedian = 0.002, kMemoryWorst = 0.006;  // asked for: 0.01, 0.03
  const Errors errors = errors_of("public/megatron_b200.jsonl.gz");
  ASSERT_EQ(errors.time.size(), 16u);
  EXPECT_LE(median_of(errors.time), kMedian);
  EXPECT_LE(worst_of(errors.time), kWorst);
  EXPECT_LE(median_of(errors.memory), kMemoryMedian);
  EXPECT_LE(worst_of(errors.memory), kMemoryWorst);
}

// Ours, and no Megatron: a GPT of 7 thousand million parameters under FullyShardedDataParallel on four H100s, hot from
// a minute of products at their power limit.
TEST(SustainedStep, on_four_hot_h100s_takes_the_time_it_took) {
  constexpr double kTime = 0.063, kMemory = 0.022;  // asked for: 0.05 (measurements/DEVIATIONS.md), 0.04
  const Errors errors = errors_of("h100/parallel/sustained_steps.jsonl");
  ASSERT_EQ(errors.time.size(), 1u);
  EXPECT_LE(errors.time[0], kTime);
  EXPECT_LE(errors.memory[0], kMemory);
}

}  // namespace
}  // namespace ridgeline
