// What lies between the kernels of a CUDA graph, as it was measured on an NVIDIA H200.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/study/validation/measured_files.h"
#include "sim/study/validation/measured_ops.h"

namespace ridgeline {
namespace {

constexpr double kSpread = 0.15;  // that of launch.graph_gap in hw/nvidia-h200-sxm-141gb.yaml

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

constexpr double kShortPeriod = 30.0;  // us; the clock of long ones moves by more

TEST(GraphGap, is_what_graphs_of_short_kernels_take_beyond_their_kernels) {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  std::vector<double> between;
  for_each_row(index.file("h200/graphs.jsonl"), [&](const nlohmann::json& row) {
    if (row["period_us"] > kShortPeriod) return;
    const double kernels = row["kernels_per_op"];
    between.push_back((row["period_us"].get<double>() - row["kernels_us"].get<double>()) / kernels);
  });
  ASSERT_GE(between.size(), 20u);
  const double gap = in_microseconds(load_gpu("nvidia-h200-sxm-141gb").launch.graph_gap);
  EXPECT_NEAR(gap, median(between), kSpread * gap);
}

TEST(GraphLaunch, is_what_graphs_of_six_ops_take_beyond_a_tenth_of_graphs_of_sixty) {
  const MeasurementIndex index(RIDGELINE_SOURCE_DIR "/measurements");
  std::vector<double> launches;
  for_each_row(index.file("h200/graphs.jsonl"), [&](const nlohmann::json& row) {
    if (row["period_us"] > kShortPeriod) return;
    launches.push_back(6.0 * (row["period_six_us"].get<double>() - row["period_us"].get<double>()));
  });
  ASSERT_GE(launches.size(), 20u);
  EXPECT_NEAR(in_microseconds(kGraphLaunch), median(launches), 0.05);  // as it is rounded
}

}  // namespace
}  // namespace ridgeline
