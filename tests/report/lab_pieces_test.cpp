// Larger pieces of the lab against the run that they are of.
#include "sim/report/page/lab_pieces.h"
#include "sim/answer/kernel_caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/json/launch_json.h"

namespace ridgeline {
namespace {

using nlohmann::json;

Scenario lab_scenario() {
  ScenarioSource source;
  source.text =
      "{hardware: nvidia-t4, model: {family: gpt2, layers: 2, heads: 4, hidden: 256, vocabulary: 4000, max_positions: "
      "512, dropout: 0.1}, training: {micro_batch: 2, sequence_length: 128, precision: fp32, attention: eager}}";
  source.text_name = "test";
  return load_scenario(source);
}

struct LabPieces : ::testing::Test {
  Session session;
  StepRun run{session, lab_scenario(), "analytic"};
};

double page_time(Seconds t) { return std::round(t.value() * 1e9) / 1e3; }

TEST_F(LabPieces, MomentsAreToldWithTheKernelThatFollowsThem) {
  const json moments = json(blocks_json(run))["moments"];
  EXPECT_EQ(moments["cut_before"], 0);
  const json &first = moments["first"], &at = moments["at_us"];
  ASSERT_EQ(first.size(), at.size());
  ASSERT_GT(first.size(), 10U);
  EXPECT_EQ(first[0], 0) << "what was there before the step";
  EXPECT_EQ(at[0], page_time(run.timeline().kernels[0].start));
  for (std::size_t i = 1; i < first.size(); ++i) {
    EXPECT_LT(first[i - 1], first[i]);
    EXPECT_LT(at[i - 1], at[i]) << "each begins with another kernel";
  }
  EXPECT_LT(first.back(), moments["count"]);
}

TEST_F(LabPieces, BlocksLieInSegmentsAndMakersHaveNames) {
  const json out = json(blocks_json(run));
  const json &blocks = out["blocks"], &segments = out["segments"];
  std::int64_t lowest = std::int64_t{1} << 60, there = 0;
  for (std::size_t i = 0; i < blocks["address"].size(); ++i) {
    lowest = std::min(lowest, blocks["address"][i].get<std::int64_t>());
    EXPECT_LE(blocks["requested"][i], blocks["bytes"][i]);
    EXPECT_LT(blocks["maker"][i].get<std::size_t>(), out["makers"]["op"].size());
    // At the peak: there from a moment at or before it on, and gone after it or never.
    const std::int64_t peak = out["peak"]["moment"];
    const json& to = blocks["to"][i];
    if (blocks["from"][i] <= peak && (to.is_null() || to > peak)) there += blocks["bytes"][i].get<std::int64_t>();
  }
  EXPECT_EQ(there, out["peak"]["allocated_bytes"]);
  EXPECT_EQ(std::min(lowest, segments["address"][0].get<std::int64_t>()), 0) << "places count from the lowest";
  EXPECT_EQ(out["peak"]["allocated_bytes"], run.memory().peak_allocated);
  for (const json& pool : segments["pool"]) EXPECT_TRUE(pool == "small" || pool == "large");
  EXPECT_FALSE(out.contains("failure"));
}

// A device with 16 MiB less than the step takes.
TEST(LabFailure, SaysWhatWasAskedForAndWhatThereWas) {
  Session session;
  const StepRun small(session, lab_scenario(), "analytic");
  Scenario tiny = small.scenario();
  tiny.gpu.dram.capacity = Bytes{static_cast<double>(small.memory().device_used) - 16.0 * kMiB};
  const StepRun failing(session, tiny, "analytic");
  const json out = json(blocks_json(failing));
  ASSERT_TRUE(out.contains("failure"));
  const json& failure = out["failure"];
  const MemoryPrediction& memory = failing.memory();
  ASSERT_TRUE(memory.out_of_memory.has_value());
  EXPECT_EQ(failure["op"], memory.out_of_memory->op);
  EXPECT_EQ(failure["requested_bytes"], memory.out_of_memory->requested_bytes);
  EXPECT_EQ(failure["missing_bytes"], memory.out_of_memory->missing_bytes);
  EXPECT_EQ(failure["capacity_bytes"].get<double>(), std::floor(tiny.gpu.dram.capacity.value()));
  EXPECT_LE(failure["largest_free_bytes"], failure["free_bytes"]);
  EXPECT_EQ(failure["free_bytes"].get<std::int64_t>(),
            failure["reserved_bytes"].get<std::int64_t>() - failure["allocated_bytes"].get<std::int64_t>());
  EXPECT_EQ(failure["device_free_bytes"].get<std::int64_t>() + failure["missing_bytes"].get<std::int64_t>(),
            failure["segment_bytes"].get<std::int64_t>());
  EXPECT_EQ(failure["capacity_bytes"].get<std::int64_t>() - failure["reserved_bytes"].get<std::int64_t>() -
                failure["context_bytes"].get<std::int64_t>(),
            failure["device_free_bytes"].get<std::int64_t>());
  EXPECT_FALSE(out["moments"].contains("first")) << "no times of a step that does not end";
}

TEST_F(LabPieces, EnergyOfClassesAndIdlingAddsUp) {
  const json power = json(power_json(run));
  double sum = 0;
  for (const auto& [name, joules] : power["energy_by_class_j"].items()) sum += joules.get<double>();
  EXPECT_NEAR(power["energy_j"].get<double>(), sum, 1e-9 * sum);
  EXPECT_NEAR(sum, run.step().energy.energy.value(), 1e-3 * sum);
  EXPECT_GT(power["energy_by_class_j"]["idle"].get<double>(), 0.0);
  EXPECT_EQ(power["limit_w"], run.scenario().gpu.power.limit.value());
  EXPECT_EQ(power["power_w"].size(), run.times().size());
  EXPECT_EQ(power["clock_mhz"].size(), run.times().size());
  // The average lies between idling and the limit, and so does each kernel, to a tenth of a watt.
  for (const json& watts : power["power_w"]) {
    EXPECT_GE(watts.get<double>(), power["idle_w"].get<double>() - 0.1);
    EXPECT_NEAR(watts.get<double>() * 10, std::round(watts.get<double>() * 10), 1e-6);
  }
  EXPECT_LT(power["average_w"], power["limit_w"]);
  EXPECT_GT(power["average_w"], power["idle_w"]);
}

// Of all launches of a kind: what kernels loaded, asked the L2 and the DRAM for.
TEST_F(LabPieces, LevelsAreThoseOfAllLaunches) {
  const StepDetail detail = step_detail(run, false);
  const json caches = json(caches_json(run, detail));
  std::vector<double> operands(detail.kinds.size()), loaded = operands, l2 = operands, read = operands,
                                                     written = operands;
  for (std::size_t i = 0; i < detail.spans.size(); ++i) {
    const std::size_t kind = detail.spans[i].kind;
    const KernelLaunch& launch = detail.kinds[kind].launch;
    operands[kind] += launch.read_bytes() + launch.written_bytes();
    loaded[kind] += loaded_bytes(launch);
    l2[kind] += run.times()[i].l2_bytes;
    read[kind] += run.times()[i].dram_read_bytes;
    written[kind] += run.times()[i].dram_write_bytes;
  }
  const std::pair<const char*, const std::vector<double>*> columns[] = {{"operand_bytes", &operands},
                                                                        {"loaded_bytes", &loaded},
                                                                        {"l2_bytes", &l2},
                                                                        {"dram_read_bytes", &read},
                                                                        {"dram_write_bytes", &written}};
  for (const auto& [key, sums] : columns) {
    ASSERT_EQ(caches[key].size(), sums->size());
    for (std::size_t i = 0; i < sums->size(); ++i)
      EXPECT_NEAR(caches[key][i].get<double>(), (*sums)[i], 0.51 + 1e-9 * (*sums)[i]) << key;
  }
}

TEST_F(LabPieces, AKernelsOperandsHaveSharesOfHits) {
  const StepDetail detail = step_detail(run, false);
  const json caches = json(kernel_caches_json(run, detail, 2));
  EXPECT_EQ(caches["l2_capacity_bytes"], run.scenario().gpu.l2.capacity.value());
  ASSERT_FALSE(caches["operands"].empty());
  for (const json& operand : caches["operands"]) {
    const double loaded = operand["loaded_bytes"], l2 = operand["l2_bytes"], dram = operand["dram_bytes"];
    EXPECT_NEAR(operand["l1_hit_share"].get<double>(), loaded > 0 ? 1.0 - l2 / loaded : 0.0, 1e-12);
    EXPECT_NEAR(operand["l2_hit_share"].get<double>(), l2 > dram ? 1.0 - dram / l2 : 0.0, 1e-12);
    EXPECT_GT(operand["bytes"].get<double>(), 0.0);
  }
}

// Weights were there before the step; what the step makes has an operation that made it.
TEST_F(LabPieces, WhatAKernelEvictsWasMadeBySetUpOrByAnOperation) {
  std::size_t lasting = 0, made = 0;
  for (std::size_t launch = 0; launch < run.times().size(); launch += 3)
    for (const KernelCaches::Evicted& gone : kernel_caches(run, launch).evicted) {
      EXPECT_LE(gone.gone, gone.bytes);
      const bool lasts = gone.category == Category::weights;
      if (lasts || gone.category == Category::activations) {
        EXPECT_EQ(gone.op == "set-up", lasts) << launch << gone.op;
      }
      lasting += lasts ? 1 : 0;
      made += gone.category == Category::activations ? 1 : 0;
    }
  EXPECT_GT(lasting, 10U);
  EXPECT_GT(made, 10U);
}

}  // namespace
}  // namespace ridgeline
