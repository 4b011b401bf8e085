// Axes of a sweep: which mistakes stop it before it begins, what its points are in brief, and which files they read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "sim/answer/step_run.h"
#include "tests/support/sweep_fixture.h"

namespace ridgeline {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class SweepAxes : public SweepFixture {};

// An axis is a mistake if none of its values can be; then the first value's reason is told. Of others a good value is
// what the axes behind it are tried with.
TEST_F(SweepAxes, AreMistakesWhereNoValueCanBe) {
  EXPECT_EQ(mistake("axes: {training.micro_batch: [1, 2]}\n"), "no mistake");
  EXPECT_EQ(mistake("axes: {training.micro_batch: [2, 0]}\n"), "no mistake") << "its points say so";
  EXPECT_EQ(mistake("axes: {hardware: [no-such-gpu, nvidia-t4]}\n"), "no mistake");
  EXPECT_EQ(mistake("axes: {hardware: [no-such-gpu, none-either, nvidia-t4], training.micro_batch: [2, 4]}\n"),
            "no mistake");
  EXPECT_THAT(mistake("axes: {hardware: [first-wrong, second-wrong]}\n"),
              ::testing::AllOf(HasSubstr("first-wrong"), Not(HasSubstr("second-wrong"))));
  EXPECT_THAT(mistake("axes: {hardware: [nvidia-t4], training.micro_batch: [0, -1]}\n"), HasSubstr("micro_batch"));
  EXPECT_THAT(
      mistake("axes: {training.micro_batch: [0], recipe: {cases: {plain: {}, other: {training.micro_batch: 4}}}}\n"),
      HasSubstr("micro_batch"))
      << "with what the axes behind it begin with";
  EXPECT_THAT(mistake("axes: {training.micro_batch: [1, 2], hardware: [no-such-gpu]}\n"), HasSubstr("no-such-gpu"));
}

TEST_F(SweepAxes, HaveTheEngineThatTheFileNames) {
  Sweep s = sweep("axes: {training.micro_batch: [1, 2]}\n");
  s.engine = "by guess";
  try {
    check_axes(s);
    ADD_FAILURE() << "there is no such engine";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith(s.file + ": "));
    EXPECT_THAT(error.what(), HasSubstr("by guess"));
  }
}

// Twice the bandwidth of each point's own GPU, whatever the order of the axes.
TEST_F(SweepAxes, MultiplyWhatThePointsHardwareSays) {
  for (const char* axes :
       {"axes: {hardware: [nvidia-t4, nvidia-h200-sxm-141gb], hardware.dram.bandwidth: {times: [1, 2]}}\n",
        "axes: {hardware.dram.bandwidth: {times: [1, 2]}, hardware: [nvidia-t4, nvidia-h200-sxm-141gb]}\n"}) {
    const Sweep s = sweep(axes);
    Descriptions descriptions;
    Remembered<HardwareSheet> sheets;
    const std::size_t hardware = s.axes[0].name == "hardware" ? 0 : 1;
    for (const std::size_t gpu : {0, 1})
      for (const std::size_t times : {0, 1}) {
        std::vector<std::size_t> values(2);
        values[hardware] = gpu;
        values[1 - hardware] = times;
        const Scenario found = scenario_of(s, values, descriptions, sheets).scenario;
        const Gpu own = load_gpu(gpu == 0 ? "nvidia-t4" : "nvidia-h200-sxm-141gb");
        EXPECT_EQ(found.gpu.name, own.name);
        EXPECT_NEAR(found.gpu.dram.bandwidth.value(), own.dram.bandwidth.value() * (times == 0 ? 1.0 : 2.0), 1.0);
      }
  }
  EXPECT_THAT(mistake("axes: {hardware.dram.capacities: {times: [1, 2]}}\n"), HasSubstr("dram.capacities"));
  EXPECT_THAT(mistake("axes: {hardware.architecture: {times: [1, 2]}}\n"), HasSubstr("architecture"));
}

// In brief a point has time, rates, memory and price, to the bit those of a whole point; of what does not fit, memory
// and price alone.
TEST_F(SweepAxes, PointsInBriefSayTheSame) {
  Sweep s = sweep("axes: {hardware.dram.capacity: [300 MB, 30 GB], training.micro_batch: [1, 3]}\n");
  const std::vector<SweepPoint> whole = run(s);
  s.brief = true;
  const std::vector<SweepPoint> brief = run(s);
  ASSERT_EQ(brief.size(), whole.size());
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < brief.size(); ++i) {
    EXPECT_EQ(brief[i].index, i);
    EXPECT_EQ(brief[i].fits, whole[i].fits);
    for (std::size_t k = 0; k < kMetrics; ++k) {
      const auto metric = static_cast<Metric>(k);
      const bool of_memory = metric == Metric::memory || metric == Metric::allocated || metric == Metric::price;
      const bool of_time =
          metric == Metric::step_time || metric == Metric::samples_per_s || metric == Metric::tokens_per_s;
      const bool said = of_memory || (of_time && brief[i].fits);
      EXPECT_EQ(brief[i][metric], said ? whole[i][metric] : 0.0) << info_of(metric).name;
      if (!whole[i].fits) continue;
      EXPECT_GT(whole[i][metric], 0.0) << info_of(metric).name;
    }
    fitting += brief[i].fits;
  }
  EXPECT_EQ(fitting, 2u);
}

// Each number of a point is that of its step.
TEST_F(SweepAxes, PointsHaveTheNumbersOfTheirSteps) {
  const Sweep s = sweep("axes: {training.micro_batch: [3]}\n");
  const SweepPoint point = run(s).front();
  Descriptions descriptions;
  Remembered<HardwareSheet> sheets;
  const Prediction p = predict(scenario_of(s, {0}, descriptions, sheets).scenario, "analytic");
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  EXPECT_EQ(point[Metric::step_time], p.step.time.value());
  EXPECT_EQ(point[Metric::step_low], p.step.low.value());
  EXPECT_EQ(point[Metric::step_high], p.step.high.value());
  EXPECT_NEAR(point[Metric::samples_per_s], 3 / p.step.time.value(), 1e-6);
  EXPECT_NEAR(point[Metric::tokens_per_s], 3 * 128 / p.step.time.value(), 1e-4);
  EXPECT_EQ(point[Metric::memory], static_cast<double>(p.memory.device_used));
  EXPECT_EQ(point[Metric::allocated], static_cast<double>(p.memory.peak_allocated));
  EXPECT_EQ(point[Metric::mfu], p.step.mfu);
  EXPECT_EQ(point[Metric::gpu_active], p.step.kernel_active_fraction);
  EXPECT_EQ(point[Metric::power], p.step.power.value());
  EXPECT_EQ(point[Metric::energy], p.step.energy.energy.value());
  EXPECT_NEAR(point[Metric::energy_per_sample], point[Metric::power] * point[Metric::step_time] / 3, 1e-9);
  EXPECT_EQ(point[Metric::price], gpu.price_per_hour);
  EXPECT_NEAR(point[Metric::price_per_million], gpu.price_per_hour / 3600 * point[Metric::step_time] / 3 * 1e6, 1e-9);
  EXPECT_NEAR(point[Metric::ridge], 67e12 / 4.8e12, 0.2) << "fp32 FLOPs a byte";
}

// Points that cannot run are told with the others, each once; none is told that was not done.
TEST_F(SweepAxes, EachPointIsToldOnce) {
  const Sweep s =
      sweep("axes: {hardware: [nvidia-t4, no-such-gpu], training.micro_batch: {range: [1, 20], step: 1}}\n");
  std::vector<std::uint64_t> told;
  std::size_t failed = 0;
  const std::vector<SweepPoint> points = run_sweep(s, s.points(), {2, nullptr, [&](std::span<const SweepPoint> done) {
                                                                     EXPECT_FALSE(done.empty());
                                                                     for (const SweepPoint& p : done) {
                                                                       told.push_back(p.index);
                                                                       failed += !p.ran();
                                                                     }
                                                                   }});
  ASSERT_EQ(points.size(), 40u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].index, i);
    EXPECT_EQ(points[i].ran(), i < 20);
  }
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, s.points());
  EXPECT_EQ(failed, 20u);
  std::atomic<bool> stop = true;
  EXPECT_TRUE(run_sweep(s, s.points(), {2, &stop, {}}).empty());
}

// A profile says nothing of memory: whoever asks for it hears so, others get the times.
TEST_F(SweepAxes, ARecordingWithoutMemoryAnswersNoQuestionOfMemory) {
  const std::string trace =
      std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/traces/nanogpt-char-flash-bf16.json.gz";
  const auto errors = [&](const std::string& more) {
    std::ofstream(path("recorded.yaml")) << "scenario: {trace: " << trace << ", hardware: nvidia-h200-sxm-141gb}\n"
                                         << "axes: {hardware: [nvidia-h200-sxm-141gb]}\n"
                                         << more;
    return run(load_sweep(path("recorded.yaml"))).front().error;
  };
  EXPECT_EQ(errors(""), "");
  EXPECT_EQ(errors("constraints: {step_time: {below: 1 s}}\n"), "");
  EXPECT_THAT(errors("constraints: {memory: {below: 40 GiB}}\n"),
              HasSubstr("says nothing of memory, which the sweep asks for"));
  EXPECT_THAT(errors("goal: {search: pareto, of: [step_time, allocated]}\n"), HasSubstr("says nothing of memory"));
}

// The descriptions that points read: those that a value names, also behind the first, and none of a point's numbers.
TEST_F(SweepAxes, NameTheFilesThatTheirPointsRead) {
  const Sweep s = sweep(
      "axes: {hardware: [no-such-gpu, nvidia-t4, nvidia-a100-sxm4-80gb], training.micro_batch: [1, 2], recipe: {cases: "
      "{plain: {}, other: {host: default, model.layers: 3}}}}\n");
  const std::vector<std::string> files = files_of_sweep(s);
  for (const char* name : {"nvidia-t4.yaml", "nvidia-a100-sxm4-80gb.yaml", "residuals.json"})
    EXPECT_THAT(files, Contains(EndsWith(name))) << name;
  EXPECT_THAT(files, Not(Contains(EndsWith("nvidia-l4.yaml"))));
}

}  // namespace
}  // namespace ridgeline
