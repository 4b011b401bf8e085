// Points of a sweep share their work: the numbers of each are those of a prediction that shares nothing, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/answer/session.h"
#include "sim/study/sweep/run_sweep.h"

namespace ridgeline {
namespace {

/// Axes of all kinds of keys, a few of them at a time.
const std::vector<SweepAxis>& possible_axes() {
  const auto axis = [](const std::string& key, const std::vector<std::string>& values) {
    SweepAxis result{key, {}};
    for (const std::string& value : values) result.values.push_back({value, {{key, value, "test"}}});
    return result;
  };
  static const std::vector<SweepAxis> kAxes{
      axis("hardware", {"nvidia-v100-sxm2-16gb", "nvidia-a100-sxm4-80gb", "nvidia-h100-sxm5-80gb"}),
      axis("hardware.dram.bandwidth", {"1.1 TB/s", "2.3 TB/s", "3.9 TB/s"}),
      axis("hardware.clock.tensor", {"1.3 GHz", "1.6 GHz"}),
      axis("hardware.clock.sustained", {"1.2 GHz", "1.7 GHz"}),
      axis("hardware.sm.count", {"60", "97", "132"}),
      axis("hardware.sm.max_warps", {"32", "64"}),
      axis("hardware.l2.capacity", {"5 MiB", "64 MiB"}),
      axis("hardware.l2.read_bandwidth", {"3 TB/s", "6 TB/s"}),
      axis("hardware.power.limit", {"150 W", "700 W"}),
      axis("hardware.power.averaging", {"0 s", "1 ms"}),
      axis("hardware.launch.gap", {"0.5 us", "3 us"}),
      axis("hardware.dram.capacity", {"3 GiB", "80 GiB"}),
      axis("host", {"default", "fast"}),
      axis("host.scale", {"0.7", "1.9"}),
      axis("training.micro_batch", {"1", "2", "5"}),
      axis("training.gradient_accumulation", {"1", "3"}),
      axis("training.sequence_length", {"64", "96"}),
      axis("training.precision", {"fp32", "amp-fp16"}),
      axis("training.attention", {"eager", "sdpa"}),
      axis("training.optimizer.name", {"adamw", "sgd"}),
      axis("model.layers", {"1", "3"}),
      axis("allocator.expandable_segments", {"true", "false"})};
  return kAxes;
}

class SweepSharing : public ::testing::TestWithParam<unsigned> {};

TEST_P(SweepSharing, random_axes_give_the_points_that_each_has_alone) {
  std::mt19937 random(GetParam());
  Sweep sweep = load_sweep(RIDGELINE_SOURCE_DIR "/scenarios/sweeps/sampled-chips.yaml");
  sweep.scenario.find("model")->scalar = "gpt2";
  std::vector<SweepAxis> axes = possible_axes();
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(4);
  sweep.axes = axes;
  if (std::none_of(axes.begin(), axes.end(), [](const SweepAxis& axis) { return axis.name == "model.layers"; }))
    sweep.axes.push_back(possible_axes()[20]);
  sweep.sample_points = 24;
  sweep.seed = GetParam();
  const std::vector<std::uint64_t> points = sweep.points();
  const std::vector<SweepPoint> shared = run_sweep(sweep, points, {.threads = 2, .on_points = {}});
  ASSERT_EQ(shared.size(), points.size());
  std::size_t ran = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<SweepPoint> alone = run_sweep(sweep, std::span(&points[i], 1), {.threads = 1, .on_points = {}});
    EXPECT_EQ(shared[i], alone.at(0)) << "point " << points[i] << " of seed " << GetParam();
    ran += shared[i].ran();
  }
  EXPECT_GT(2 * ran, points.size()) << "most points should run";
}

INSTANTIATE_TEST_SUITE_P(Seeds, SweepSharing, ::testing::Range(0U, 12U));

}  // namespace
}  // namespace ridgeline
