// Any network with any parallelism: steps measured on two NVIDIA H200s; no constant was fitted on them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/answer/step_run.h"
#include "tests/support/measurement_index.h"
#include "tests/support/prediction_errors.h"

namespace ridgeline {
namespace {

using nlohmann::json;

/// A router that is not trained sends its tokens to few experts, whose groups are unequal: the worst of the busy times.
constexpr double kWayBusyMedian = 0.03, kWayBusyWorst = 0.07, kWayAllocatedWorst = 0.02;
/// The script kept every micro-batch's outputs (schedule.step(return_outputs=True)), which the scenario does not say.
const std::set<std::string> kKeepsOutputs{"pp2-1f1b-qwen2"};

TEST(ParallelWays, MeetMeasuredTimeAndMemory) {
  testing::PredictionErrors busy, allocated;
  for_each_row(testing::measurements().file("h200/parallel/ways.jsonl.gz"), [&](const json& row) {
    ScenarioSource source;
    source.text = row["scenario"].dump();
    source.text_name = row["name"];
    const Prediction p = predict(load_scenario(source), "analytic");
    const json& ranks = row["ranks"];
    const std::size_t compared = row["compared"].get<int>() < 0 ? ranks.size() - 1 : 0;
    busy.add((p.step.gpu_busy - p.parallel->exposed).value(), 1e-3 * ranks[compared]["busy_ms"].get<double>());
    if (kKeepsOutputs.contains(row["name"])) return;
    allocated.add(static_cast<double>(p.parallel->ranks.front().memory.peak_allocated),
                  ranks.front()["allocated"].get<double>());
  });
  ASSERT_EQ(busy.count(), 12u);
  EXPECT_LT(busy.median(), kWayBusyMedian);
  EXPECT_LT(busy.worst(), kWayBusyWorst);
  EXPECT_LT(allocated.worst(), kWayAllocatedWorst);
}

}  // namespace
}  // namespace ridgeline
