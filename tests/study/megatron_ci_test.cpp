// What Megatron-LM's own tests of eight GPUs record of the last rank, GPT networks: step time and allocated memory. The
// scale of their host was taken from half of them, nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "sim/answer/session.h"
#include "sim/answer/step_run.h"
#include "sim/study/validation/published_training.h"

namespace ridgeline {
namespace {

constexpr double kMemoryMedian = 0.015, kMemoryWorst = 0.05;
constexpr double kTimeMedian = 0.5;

struct Errors {
  std::vector<double> memory, time;
};

double median_of(std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  return errors.at(errors.size() / 2);
}

Errors errors_of(bool held_out) {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  Session session;
  Errors errors;
  for (PublishedTraining& row : load_published_training(index.file("public/megatron_ci.jsonl.gz"))) {
    if (row.held_out != held_out) continue;
    Scenario last = row.scenario;
    last.training.parallel.pipeline_rank =
        last.training.parallel.pipelined() ? last.training.parallel.pipeline - 1 : -1;
    const StepRun rank(session, std::move(last), "analytic");
    const StepRun step(session, std::move(row.scenario), "analytic");
    const double memory = static_cast<double>(rank.memory().peak_allocated) /
                              static_cast<double>(row.peak_allocated.value()) -
                          1.0,
                 time = ratio(step.timeline().step, row.step_time) - 1.0;
    std::printf("%-95s memory %+5.1f %%, time %+5.1f %%\n", row.id.c_str(), 100.0 * memory, 100.0 * time);
    errors.memory.push_back(std::abs(memory));
    errors.time.push_back(std::abs(time));
  }
  std::printf("%zu rows: memory median %.2f %%, worst %.1f %%; time median %.1f %%, worst %.1f %%\n",
              errors.memory.size(), 100.0 * median_of(errors.memory),
              100.0 * *std::max_element(errors.memory.begin(), errors.memory.end()), 100.0 * median_of(errors.time),
              100.0 * *std::max_element(errors.time.begin(), errors.time.end()));
  return errors;
}

TEST(MegatronCi, of_the_last_rank_memory_and_step_time) {
  for (const bool held_out : {false, true}) {
    const Errors errors = errors_of(held_out);
    ASSERT_GE(errors.memory.size(), 14u);
    EXPECT_LE(median_of(errors.memory), kMemoryMedian);
    EXPECT_LE(*std::max_element(errors.memory.begin(), errors.memory.end()), kMemoryWorst);
    EXPECT_LE(median_of(errors.time), kTimeMedian);
  }
}

}  // namespace
}  // namespace ridgeline
