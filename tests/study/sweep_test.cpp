// Sweeps: what the file says, what is predicted, and that neither threads nor sharing change a bit of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "sim/answer/step_run.h"
#include "sim/report/sweep_report.h"
#include "tests/support/sweep_fixture.h"

namespace ridgeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using SweepTest = SweepFixture;

std::vector<std::string> labels(const SweepAxis& axis) {
  std::vector<std::string> out;
  for (const AxisValue& value : axis.values) out.push_back(value.label);
  return out;
}
TEST_F(SweepTest, ranges_write_out_their_values) {
  const Sweep s = sweep(
      "axes:\n  training.micro_batch: {log: [1, 64], points: 7}\n  training.sequence_length: {range: [32, 128], step: "
      "32}\n  hardware.dram.bandwidth: {range: [1 TB/s, 2 TB/s], points: 3}\n  hardware.sm.count: {times: [0.5, 1]}\n");
  EXPECT_THAT(labels(s.axes[0]), ElementsAre("1", "2", "4", "8", "16", "32", "64"));
  EXPECT_THAT(labels(s.axes[1]), ElementsAre("32", "64", "96", "128"));
  EXPECT_THAT(labels(s.axes[2]), ElementsAre("1 TB/s", "1.5 TB/s", "2 TB/s"));
  EXPECT_THAT(labels(s.axes[3]), ElementsAre("0.5x", "1x"));
  EXPECT_EQ(s.grid_size(), 7u * 4 * 3 * 2);
  // Whole numbers that a logarithmic range would give twice are there once.
  EXPECT_THAT(labels(sweep("axes: {training.micro_batch: {log: [1, 4], points: 9}}\n").axes[0]),
              ElementsAre("1", "2", "3", "4"));
  // A step that does not reach the end stays below it.
  EXPECT_THAT(labels(sweep("axes: {training.micro_batch: {range: [1, 9], step: 3}}\n").axes[0]),
              ElementsAre("1", "4", "7"));
}

TEST_F(SweepTest, a_sample_is_a_subset_that_its_seed_decides) {
  const std::string axes =
      "axes: {training.micro_batch: {range: [1, 30], step: 1}, host.scale: {range: [1.0, 2.0], points: 20}}\n";
  const auto a = sweep(axes + "sample: {points: 50, seed: 3}\n").points();
  EXPECT_EQ(a.size(), 50u);
  EXPECT_EQ(std::set(a.begin(), a.end()).size(), 50u);
  EXPECT_TRUE(std::is_sorted(a.begin(), a.end()));
  EXPECT_LT(a.back(), 600u);
  EXPECT_EQ(a, sweep(axes + "sample: {points: 50, seed: 3}\n").points());
  EXPECT_NE(a, sweep(axes + "sample: {points: 50, seed: 4}\n").points());
  EXPECT_EQ(sweep(axes + "sample: {points: 600}\n").points().size(), 600u);
  EXPECT_EQ(sweep(axes + "sample: {points: 599}\n").points().size(), 599u);
}

TEST_F(SweepTest, every_point_is_what_predict_says_of_it) {
  const Sweep s = sweep(
      "axes:\n  hardware: [nvidia-h200-sxm-141gb, nvidia-t4, nvidia-a100-sxm4-80gb]\n  training.micro_batch: [1, 3]\n"
      "  hardware.dram.bandwidth: {times: [1, 2]}\n  training.attention: [eager, sdpa]\n"
      "  allocator.expandable_segments: [false, true]\n");
  const std::vector<SweepPoint> points = run(s);
  ASSERT_EQ(points.size(), 48u);
  for (const SweepPoint& point : points) {
    const auto at = s.values_of(point.index);
    ScenarioSource source;
    source.text = kScenario.substr(std::string("scenario: ").size());
    source.text_name = "test";
    const std::string hardware = s.axes[0].values[at[0]].label;
    source.overrides = {{"hardware", hardware, ""}};
    if (at[2] == 1) {
      const double bandwidth = load_gpu(hardware).dram.bandwidth.value();
      source.overrides.push_back({"hardware.dram.bandwidth", std::to_string(2 * bandwidth / 1e9) + " GB/s", ""});
    }
    for (const std::size_t axis : {1, 3, 4})
      source.overrides.push_back({s.axes[axis].name, s.axes[axis].values[at[axis]].label, ""});
    const Prediction p = predict(load_scenario(source), "analytic");
    EXPECT_DOUBLE_EQ(point[Metric::step_time], p.step.time.value()) << point.index;
    EXPECT_DOUBLE_EQ(point[Metric::step_high], p.step.high.value());
    EXPECT_DOUBLE_EQ(point[Metric::memory], static_cast<double>(p.memory.device_used));
    EXPECT_DOUBLE_EQ(point[Metric::allocated], static_cast<double>(p.memory.peak_allocated));
    EXPECT_DOUBLE_EQ(point[Metric::energy], p.step.energy.energy.value());
    EXPECT_EQ(point.fits, p.memory.fits);
  }
}

TEST_F(SweepTest, memory_of_devices_just_large_enough_and_just_too_small_is_what_predict_says) {
  const Sweep s = sweep("axes: {hardware.dram.capacity: {range: [800 MB, 1600 MB], step: 20 MB}}\n");
  std::size_t fit = 0;
  for (const SweepPoint& point : run(s)) {
    ScenarioSource source;
    source.text = kScenario.substr(std::string("scenario: ").size());
    source.text_name = "test";
    source.overrides = {{"hardware.dram.capacity", s.axes[0].values[point.index].label, ""}};
    const MemoryPrediction memory = predict_memory(load_scenario(source));
    EXPECT_EQ(point.fits, memory.fits) << source.overrides[0].value;
    EXPECT_EQ(point[Metric::memory], static_cast<double>(memory.fits ? memory.device_used : memory.needed));
    fit += memory.fits;
  }
  EXPECT_GT(fit, 0u);
  EXPECT_LT(fit, 41u);
}

TEST_F(SweepTest, the_result_is_the_same_to_the_bit_on_any_number_of_threads_and_in_any_parts) {
  const Sweep s = sweep(
      "axes:\n  training.micro_batch: {range: [1, 6], step: 1}\n  hardware: [nvidia-t4, nvidia-h200-sxm-141gb]\n"
      "  training.precision: [fp32, amp-fp16]\n  host.scale: [1, 2, 4]\n");
  const std::vector<SweepPoint> one = run(s, 1);
  EXPECT_EQ(one, run(s, 2));
  EXPECT_EQ(one, run(s, 7));
  std::vector<SweepPoint> parts;
  const auto indices = s.points();
  for (std::size_t begin = 0; begin < indices.size(); begin += 11) {
    const auto part = std::span(indices).subspan(begin, std::min<std::size_t>(11, indices.size() - begin));
    for (SweepPoint& point : run_sweep(s, part, {2, nullptr, {}})) parts.push_back(std::move(point));
  }
  EXPECT_EQ(one, parts);
}

TEST_F(SweepTest, a_point_that_cannot_run_says_why_and_the_others_go_on) {
  const Sweep s =
      sweep("axes: {training.sequence_length: [128, 4096], hardware: [nvidia-h200-sxm-141gb, nvidia-t4]}\n");
  check_axes(s);
  const std::vector<SweepPoint> points = run(s);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_TRUE(points[0].ran() && points[1].ran());
  EXPECT_THAT(points[2].error, HasSubstr("512"));
  EXPECT_FALSE(is_allowed(points[2], s));
}

TEST_F(SweepTest, goals_find_the_best_of_what_is_allowed) {
  const std::string axes =
      "axes: {hardware: [nvidia-t4, nvidia-rtx-3090, nvidia-a100-sxm4-80gb, nvidia-h200-sxm-141gb], "
      "training.micro_batch: [1, 4, 16]}\n";
  const Sweep fastest = sweep(axes + "goal: fastest\n");
  const std::vector<SweepPoint> points = run(fastest);
  const auto best = best_points(points, fastest);
  for (const SweepPoint& point : points)
    EXPECT_LE(point[Metric::tokens_per_s], points[best.front()][Metric::tokens_per_s]);

  const Sweep tight =
      sweep(axes + "goal: fastest\nconstraints: {power: {below: 200 W}, samples_per_s: {above: 100}}\n");
  for (const std::size_t i : best_points(points, tight)) {
    EXPECT_LE(points[i][Metric::power], 200.0);
    EXPECT_GE(points[i][Metric::samples_per_s], 100.0);
  }

  const double rate = points[best.front()][Metric::samples_per_s];
  const Sweep cheapest = sweep(axes + "goal: {search: cheapest, samples_per_s: " + std::to_string(rate * 0.3) + "}\n");
  const auto found = best_points(points, cheapest);
  ASSERT_FALSE(found.empty());
  for (const SweepPoint& point : points)
    if (point[Metric::samples_per_s] >= rate * 0.3) {
      EXPECT_GE(point[Metric::price], points[found.front()][Metric::price]);
    }
  EXPECT_TRUE(
      best_points(points, sweep(axes + "goal: {search: cheapest, samples_per_s: " + std::to_string(rate * 2) + "}\n"))
          .empty());
}

TEST_F(SweepTest, a_pareto_front_is_what_nothing_beats) {
  const Sweep s = sweep(
      "axes: {hardware: [nvidia-t4, nvidia-rtx-3090, nvidia-a100-sxm4-80gb, nvidia-h200-sxm-141gb], "
      "training.micro_batch: [1, 4, 16]}\ngoal: {search: pareto, of: [samples_per_s, memory, price]}\n");
  const std::vector<SweepPoint> points = run(s);
  const auto front = best_points(points, s);
  const auto beats = [](const SweepPoint& a, const SweepPoint& b) {
    const bool no_worse = a[Metric::samples_per_s] >= b[Metric::samples_per_s] &&
                          a[Metric::memory] <= b[Metric::memory] && a[Metric::price] <= b[Metric::price];
    return no_worse && (a[Metric::samples_per_s] > b[Metric::samples_per_s] || a[Metric::memory] < b[Metric::memory] ||
                        a[Metric::price] < b[Metric::price]);
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool beaten =
        std::any_of(points.begin(), points.end(), [&](const auto& other) { return beats(other, points[i]); });
    EXPECT_EQ(std::find(front.begin(), front.end(), i) == front.end(), beaten) << i;
  }
}

TEST_F(SweepTest, each_value_of_an_axis_has_its_best_point) {
  const std::string axes = "axes: {training.micro_batch: [1, 4], hardware: [nvidia-t4, nvidia-h200-sxm-141gb]}\n";
  const Sweep fastest = sweep(axes + "goal: fastest\n");
  const std::vector<SweepPoint> points = run(fastest);
  EXPECT_THAT(ranked_by(fastest), ElementsAre(Metric::tokens_per_s, Metric::step_time));
  const auto each = best_of_each(points, fastest);
  ASSERT_TRUE(each);
  EXPECT_EQ(fastest.axes[each->axis].name, "hardware");
  ASSERT_EQ(each->points.size(), 2u);
  for (std::size_t value = 0; value < 2; ++value) {
    ASSERT_TRUE(each->points[value]);
    for (const SweepPoint& point : points)
      if (fastest.values_of(point.index)[each->axis] == value) {
        EXPECT_LE(point[Metric::tokens_per_s], points[*each->points[value]][Metric::tokens_per_s]);
      }
  }
  // The table names the quantity that it is in the order of, and has its column.
  const std::string text = sweep_text(fastest, points, 10);
  EXPECT_THAT(text, HasSubstr("by * tokens a second"));
  EXPECT_THAT(text, HasSubstr("*tokens/s"));
  EXPECT_THAT(text, HasSubstr("best of each hardware:"));
  EXPECT_FALSE(best_of_each(points, sweep(axes + "goal: pareto\n")));
  const Sweep small = sweep(axes + "constraints: {memory: {below: 1 MiB}}\ngoal: fastest\n");
  EXPECT_THAT(sweep_text(small, points, 10), HasSubstr("none\n"));
}

TEST_F(SweepTest, mistakes_are_told_with_their_place) {
  EXPECT_THAT(mistake("axes: {training.micro_bach: [1, 2]}\n"), HasSubstr("micro_batch"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: [0, -2]}\n"), HasSubstr("sweep.yaml:2:"));
  EXPECT_THAT(mistake("axes: {hardware.dram.bandwith: [1 TB/s]}\n"), HasSubstr("bandwidth"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: {rang: [1, 2]}}\n"), HasSubstr("range, log, times, cases"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: {range: [2, 1], step: 1}}\n"), HasSubstr("larger"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: {range: [1, 2], step: 0}}\n"), HasSubstr("positive"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: {log: [0, 2], points: 2}}\n"), HasSubstr("positive"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: {times: [1, 2]}}\n"), HasSubstr("hardware."));
  EXPECT_THAT(mistake("axes: {hardware.dram.kind: {times: [1, 2]}}\n"), HasSubstr("does not say"));
  EXPECT_THAT(mistake("axes: {hardware.dram.bandwidth: {range: [1 TB/s, 2 GB], points: 2}}\n"), HasSubstr("unit"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: []}\n"), HasSubstr("no values"));
  EXPECT_THAT(mistake("axes: {}\n"), HasSubstr("axes"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: [1]}\ngoal: fastes\n"), HasSubstr("fastest"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: [1]}\ngoal: cheapest\n"), HasSubstr("samples_per_s"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: [1]}\nconstraints: {memry: {below: 1 GB}}\n"), HasSubstr("memory"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: [1]}\nengine: analytical\n"), HasSubstr("analytic"));
  EXPECT_THAT(mistake("axes: {training.micro_batch: {range: [1, 60000], step: 1}, host.scale: {range: [1.0, 2.0], "
                      "points: 1000}}\n"),
              HasSubstr("sample"));
}

// What a list names is its label: a scalar as it is read, anything else as it would stand in a file.
TEST_F(SweepTest, values_of_a_list_are_labelled_as_they_are_written) {
  const Sweep s = sweep("axes: {title: [plain, 'a: b', {name: sgd, lr: [1, 2]}]}\n");
  EXPECT_THAT(labels(s.axes[0]), ElementsAre("plain", "a: b", "{name: sgd, lr: [1, 2]}"));
  EXPECT_EQ(s.axes[0].values[0].overrides[0].value, "plain");
  EXPECT_EQ(s.axes[0].values[1].overrides[0].value, "'a: b'");
  EXPECT_EQ(s.axes[0].values[1].overrides[0].key, "title");
}

// Four boards draw four times the power and cost four times the rent.
TEST_F(SweepTest, energy_of_a_sample_and_rent_are_those_of_all_boards) {
  const Sweep s = sweep("axes: {cluster: [h200-x4], training.parallel.data: [1, 4], hardware.price_per_hour: [2.5]}\n");
  const std::vector<SweepPoint> points = run(s);
  ASSERT_EQ(points.size(), 2U);
  ASSERT_TRUE(points[1].ran()) << points[1].error;
  for (const auto& [at, boards] : {std::pair<std::size_t, double>{0, 1}, {1, 4}}) {
    const SweepPoint& point = points[at];
    EXPECT_DOUBLE_EQ(point[Metric::price], 2.5 * boards);
    EXPECT_DOUBLE_EQ(point[Metric::price_per_million], 2.5 * boards / 3600 / point[Metric::samples_per_s] * 1e6);
    EXPECT_DOUBLE_EQ(point[Metric::energy_per_sample], boards * point[Metric::power] / point[Metric::samples_per_s]);
    EXPECT_NEAR(point[Metric::energy], point[Metric::power] * point[Metric::step_time], 1e-9 * point[Metric::energy]);
    EXPECT_NEAR(point[Metric::samples_per_s] * point[Metric::step_time], 2 * boards, 1e-9);
  }
}

}  // namespace
}  // namespace ridgeline
