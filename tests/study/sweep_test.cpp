// Sweeps: what the file says, what is predicted, and that neither threads nor sharing change a bit of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>

#include "sim/answer/step_run.h"
#include "sim/study/points_file.h"
#include "sim/study/run_sweep.h"
#include "sim/study/sqlite.h"
#include "sim/study/sweep_scenario.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kScenario =
    "scenario: {hardware: nvidia-h200-sxm-141gb, model: {family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: "
    "4000, max_positions: 512, dropout: 0.1}, training: {micro_batch: 2, sequence_length: 128, precision: fp32, "
    "attention: eager}}\n";

class SweepTest : public testing::Test {
 protected:
  std::filesystem::path folder_ = temporary_path(testing::UnitTest::GetInstance()->current_test_info()->name());
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Sweep sweep(const std::string& text) {
    std::ofstream(path("sweep.yaml")) << kScenario << text;
    return load_sweep(path("sweep.yaml"));
  }
  std::string mistake(const std::string& text) {
    try {
      const Sweep s = sweep(text);
      check_axes(s);
      return "no mistake";
    } catch (const UserError& error) {
      return error.what();
    }
  }
};

std::vector<std::string> labels(const SweepAxis& axis) {
  std::vector<std::string> out;
  for (const AxisValue& value : axis.values) out.push_back(value.label);
  return out;
}
std::vector<SweepPoint> run(const Sweep& sweep, int threads = 2) {
  return run_sweep(sweep, sweep.points(), {threads, nullptr, {}});
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

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string refusal(const std::string& path, const Sweep& sweep) {
  try {
    (void)PointsFile(path, sweep);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_F(SweepTest, a_points_file_holds_the_points_to_the_bit_and_takes_more) {
  const Sweep s =
      sweep("axes: {training.micro_batch: {range: [1, 9], step: 1}, training.sequence_length: [128, 4096]}\n");
  std::vector<SweepPoint> all = run(s);
  all[1].metrics = {};
  all[1].metrics[0] = std::numeric_limits<double>::infinity();
  all[1].metrics[1] = 5e-324;
  all[1].metrics[2] = -1.0 / 3.0;
  all[3].error = "a \"quoted\" mistake\nof two lines \xc3\xa9";
  for (std::size_t done = 0; done <= all.size(); done += 5) {
    const std::span<const SweepPoint> first = std::span(all).first(done);
    std::filesystem::remove(path("points"));
    { PointsFile(path("points"), s).append(first); }
    PointsFile again(path("points"), s);
    EXPECT_EQ(again.known(), std::vector<SweepPoint>(first.begin(), first.end()));
    again.append(std::span(all).subspan(done));
    again.flush();
    again.append(std::span(all).first(1));  // twice is once
  }
  EXPECT_EQ(PointsFile(path("points"), s).known(), all);
}

TEST_F(SweepTest, a_killed_process_loses_at_most_what_it_had_not_flushed) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 40], step: 1}}\n");
  const std::vector<SweepPoint> all = run(s);
  const pid_t child = fork();
  if (child == 0) {
    PointsFile file(path("points"), s);
    file.append(std::span(all).first(17));
    file.flush();
    file.append(std::span(all).subspan(17, 10));  // its transaction never ends
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  PointsFile file(path("points"), s);
  EXPECT_EQ(file.known(), std::vector<SweepPoint>(all.begin(), all.begin() + 17));
  file.append(std::span(all).subspan(17));
  file.flush();
}

TEST_F(SweepTest, two_processes_never_write_one_points_file) {
  const Sweep s = sweep("axes: {training.micro_batch: [1, 2]}\n");
  const std::vector<SweepPoint> all = run(s);
  PointsFile held(path("held"), s);
  held.append(std::span(all).first(1));
  EXPECT_THAT(refusal(path("held"), s), HasSubstr("another sweep is writing"));
  const pid_t child = fork();
  if (child == 0) std::_Exit(refusal(path("held"), s).find("another sweep is writing") != std::string::npos ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  held.append(std::span(all).subspan(1));
  held.flush();
}

TEST_F(SweepTest, a_points_file_of_something_else_is_refused_and_left_alone) {
  const Sweep s = sweep("axes: {training.micro_batch: [1, 2]}\n");
  { PointsFile(path("points"), s).append(run(s)); }
  const Sweep other = sweep("axes: {training.micro_batch: [1, 3]}\n");
  EXPECT_THAT(refusal(path("points"), other), HasSubstr("another sweep"));
  EXPECT_EQ(PointsFile(path("points"), s).known().size(), 2u);
  for (const char* text : {"x", "Dear reader,\nthis is no such file\n", "{\"ridgeline_sweep\":1}\n{\"point\":0}\n"}) {
    std::ofstream(path("letter"), std::ios::trunc) << text;
    EXPECT_THAT(refusal(path("letter"), s), HasSubstr("not a points file"));
    EXPECT_EQ(bytes_of(path("letter")), text);
  }
  {
    sqlite::Connection foreign(path("foreign"));
    foreign.run("CREATE TABLE diary (day TEXT)");
  }
  const std::string before = bytes_of(path("foreign"));
  EXPECT_THAT(refusal(path("foreign"), s), HasSubstr("not a points file"));
  EXPECT_EQ(bytes_of(path("foreign")), before);
  EXPECT_THROW(PointsFile(path("no/such/folder"), s), UserError);
  std::ofstream(path("empty"));
  EXPECT_TRUE(PointsFile(path("empty"), s).known().empty());
}

TEST_F(SweepTest, points_of_two_states_of_a_file_are_never_mixed) {
  const std::filesystem::path shipped = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "hw/nvidia-t4.yaml";
  const std::string hardware = path("mine.yaml");
  std::filesystem::copy_file(shipped, hardware);
  const Sweep s = sweep("axes: {hardware: [nvidia-h200-sxm-141gb, " + hardware + "], training.micro_batch: [1, 2]}\n");
  const std::vector<SweepPoint> all = run(s);
  PointsFile file(path("points"), s);
  file.append(std::span(all).first(2));
  file.flush();
  std::ofstream(hardware, std::ios::app) << "# the same numbers, but who knows\n";
  std::filesystem::last_write_time(hardware, std::filesystem::last_write_time(hardware) + std::chrono::seconds(2));
  file.append(std::span(all).subspan(2));
  try {
    file.flush();
    FAIL() << "points of a changed file were written";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("mine.yaml was changed while the sweep ran"));
  }
}

TEST_F(SweepTest, an_edited_hardware_file_is_named_when_a_sweep_goes_on) {
  const std::string hardware = path("mine.yaml");
  std::filesystem::copy_file(std::filesystem::path(RIDGELINE_SOURCE_DIR) / "hw/nvidia-t4.yaml", hardware);
  const Sweep s = sweep("axes: {hardware: [nvidia-h200-sxm-141gb, " + hardware + "]}\n");
  { PointsFile(path("points"), s).append(run(s)); }
  EXPECT_EQ(refusal(path("points"), s), "");
  const std::string before = bytes_of(hardware);
  std::ofstream(hardware, std::ios::app) << "# edited\n";
  EXPECT_THAT(refusal(path("points"), s), HasSubstr("mine.yaml has changed since its points were predicted"));
  std::ofstream(hardware, std::ios::trunc) << before;
  EXPECT_EQ(refusal(path("points"), s), "");
  EXPECT_EQ(PointsFile(path("points"), s).known().size(), 2u);
}

TEST_F(SweepTest, corrupted_points_files_are_refused_or_as_good_as_whole) {
  const Sweep s = sweep("axes: {training.micro_batch: {range: [1, 60], step: 1}}\n");
  const std::vector<SweepPoint> all = run(s);
  { PointsFile(path("whole"), s).append(all); }
  const std::string whole = bytes_of(path("whole"));
  std::mt19937_64 random(11);
  int refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    std::string bytes = whole;
    const auto place = [&] { return static_cast<std::size_t>(random() % bytes.size()); };
    switch (trial % 5) {
      case 0: bytes[place()] ^= static_cast<char>(1u << random() % 8); break;
      case 1: bytes.resize(place()); break;
      case 2: bytes.replace(place(), 1, std::string(random() % 64, static_cast<char>(random()))); break;
      case 3: std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(place() / 2), random() % 4096, '\0'); break;
      default: bytes[random() % 100] ^= static_cast<char>(1u << random() % 8); break;
    }
    std::ofstream(path("bad"), std::ios::binary | std::ios::trunc) << bytes;
    std::vector<SweepPoint> known;
    try {
      known = PointsFile(path("bad"), s).known();
    } catch (const UserError&) {
      ++refused;
    }
    for (const SweepPoint& point : known) EXPECT_EQ(point, all[point.index]);
    for (const char* left : {"bad-journal", "bad-wal", "bad-shm"}) std::filesystem::remove(path(left));
  }
  EXPECT_GT(refused, 100);
}

TEST_F(SweepTest, a_points_file_slows_no_sweep_down) {
  const Sweep s =
      sweep("axes: {training.micro_batch: {range: [1, 100], step: 1}, host.scale: {range: [1, 2], points: 100}}\n");
  std::vector<SweepPoint> points(s.grid_size());
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i].index = i, points[i].metrics[0] = 1.0 / static_cast<double>(i + 1);
  const auto begin = std::chrono::steady_clock::now();
  {
    PointsFile file(path("points"), s);
    for (std::size_t i = 0; i < points.size(); i += 5) file.append(std::span(points).subspan(i, 5));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));  // 5,000 points/s under any load
  EXPECT_EQ(PointsFile(path("points"), s).known(), points);
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

}  // namespace
}  // namespace ridgeline
