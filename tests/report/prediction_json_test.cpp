// The JSON of a prediction, key by key, from tests/support/made_prediction.h.
#include "sim/report/json/prediction_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/timing/kernel_profile.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;

// Numbers that the value has as they are; those that are reckoned (GiB, MHz) to their last bit in base units.
json told(const Prediction& p) { return json(prediction_json(p)); }
constexpr double kGiBytes = 1073741824.0;

/// Equal but for the last bits of numbers.
void expect_told(const json& got, const json& expected, const std::string& path = "") {
  if (expected.is_number_float() && got.is_number()) {
    EXPECT_NEAR(got.get<double>(), expected.get<double>(), 1e-12 * std::abs(expected.get<double>())) << path;
    return;
  }
  if (!expected.is_object() || !got.is_object()) {
    EXPECT_EQ(got, expected) << path;
    return;
  }
  for (const auto& [key, value] : expected.items()) {
    ASSERT_TRUE(got.contains(key)) << path << "." << key;
    expect_told(got[key], value, path + "." + key);
  }
  for (const auto& [key, value] : got.items()) EXPECT_TRUE(expected.contains(key)) << path << "." << key << " besides";
}

// What a simulation saw of a kernel stands with it; of the others nothing does.
TEST(PredictionJson, ProfilesStandWithTheirKernels) {
  Prediction p = made_prediction();
  p.kernels.push_back(made_norms());
  for (const std::size_t seen : {std::size_t{0}, std::size_t{2}}) {
    auto profile = std::make_shared<KernelProfile>();
    profile->waves = 1.5 + static_cast<double>(seen), profile->tail_share = 0.125;
    p.kernels[seen].profile = profile;
  }
  const json kernels = told(p)["kernels"];
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0]["profile"]["waves_per_sm"], 1.5);
  EXPECT_EQ(kernels[0]["profile"]["tail_share"], 0.125);
  EXPECT_FALSE(kernels[1].contains("profile"));
  EXPECT_EQ(kernels[2]["profile"]["waves_per_sm"], 3.5);
}

TEST(PredictionJson, TheStepIsInSecondsAndBaseUnits) {
  const json out = told(made_prediction());
  EXPECT_EQ(out["scenario"], "a made step");
  EXPECT_EQ(out["hardware"], "nvidia-made");
  EXPECT_EQ(out["engine"], "analytic");
  expect_told(out["step"], {{"time_s", 0.2},
                            {"low_s", 0.19},
                            {"high_s", 0.215},
                            {"host_time_s", 0.12},
                            {"gpu_busy_s", 0.18},
                            {"kernel_count", 1000},
                            {"samples_per_s", 160.0},
                            {"tokens_per_s", 81920.0},
                            {"mfu", 0.43},
                            {"sm_utilization", 0.77},
                            {"kernel_active_fraction", 0.91},
                            {"validated", true},
                            {"clock_mhz", 1410.0},
                            {"power_w", 350.0},
                            {"energy_j", 70.0},
                            {"energy_low_j", 60.0},
                            {"energy_high_j", 80.0}});
  expect_told(out["utilization"], {{"kernel_active", 0.9}, {"sm", 0.8}, {"tensor", 0.55}, {"dram", 0.35}});
  expect_told(out["exposed_latency"], {{"math_s", 0.09},
                                       {"memory_s", 0.07},
                                       {"overlapped_s", 0.03},
                                       {"in_kernels_s", 0.05},
                                       {"gaps_s", 0.008},
                                       {"communication_s", 0.0},
                                       {"host_exposed_s", 0.012},
                                       {"host_hidden_s", 0.108}});
}

TEST(PredictionJson, AHostThatNobodyMeasuredTellsTheOnesSeen) {
  Prediction p = made_prediction();
  json host{{"name", "a host"},   {"scale", 1.5},  {"known", true},       {"time_s", 0.12},
            {"exposed_s", 0.012}, {"share", 0.06}, {"tipping_scale", 2.4}};
  expect_told(told(p)["host"], host);
  p.step.host.known = false, p.step.host.least_seen = 0.7, p.step.host.most_seen = 2.1;
  host["known"] = false;
  host["scales_seen"] = {0.7, 2.1};
  expect_told(told(p)["host"], host);
}

TEST(PredictionJson, TimeIsDividedByClassPhaseAndLimiter) {
  const json out = told(made_prediction());
  expect_told(out["time_by_class"], {{"tensor_contraction", 0.11},
                                     {"normalization", 0.0005},
                                     {"elementwise", 0.0345},
                                     {"optimizer", 0.02},
                                     {"copy", 0.015},
                                     {"communication", 0.0},
                                     {"idle", 0.02}});
  expect_told(out["time_by_phase"], {{"setup", 0.0},
                                     {"forward", 0.055},
                                     {"backward", 0.1},
                                     {"clipping", 0.0045},
                                     {"optimizer", 0.0199},
                                     {"other", 0.0006}});
  expect_told(out["limited_by"], {{"compute", 0.08},
                                  {"dram", 0.06},
                                  {"l2", 0.014},
                                  {"shared_memory", 0.003},
                                  {"latency", 0.018},
                                  {"launch", 0.022},
                                  {"power", 0.002},
                                  {"link", 0.001}});
}

TEST(PredictionJson, MemoryIsInBytes) {
  Prediction p = made_prediction();
  json memory{{"peak_allocated_bytes", 10 * kMadeGiB},
              {"peak_reserved_bytes", 11 * kMadeGiB},
              {"context_bytes", 1.5 * kGiBytes},
              {"device_used_bytes", 12.5 * kGiBytes},
              {"capacity_bytes", 40 * kMadeGiB},
              {"fits", true},
              {"verdict", "fits"},
              {"needed_bytes", 12.75 * kGiBytes},
              {"needed_low_bytes", 12 * kMadeGiB},
              {"needed_high_bytes", 13 * kMadeGiB},
              {"breakdown",
               {{"weights", 2 * kMadeGiB},
                {"gradients", 1.5 * kGiBytes},
                {"optimizer_state", 3 * kMadeGiB},
                {"activations", 2.75 * kGiBytes},
                {"temporaries", 0.5 * kGiBytes},
                {"workspaces", 0.25 * kGiBytes},
                {"inputs", 4 * kMadeMiB},
                {"cached_unused", kMadeGiB}}},
              {"peak", {{"op", "addmm"}, {"phase", "backward"}, {"layer", 3}}}};
  expect_told(told(p)["memory"], memory);

  p.memory.runs = p.memory.fits = false;
  MemoryShortage& oom = p.memory.out_of_memory.emplace();
  oom.op = "bmm", oom.phase = Phase::forward, oom.layer = 7, oom.category = Category::activations;
  oom.requested_bytes = 96, oom.missing_bytes = 40;
  p.memory.would_fit = {"training.micro_batch=4"};
  memory["fits"] = false, memory["verdict"] = "does not fit";
  memory["out_of_memory"] = {{"op", "bmm"},
                             {"phase", "forward"},
                             {"layer", 7},
                             {"category", "activations"},
                             {"requested_bytes", 96},
                             {"missing_bytes", 40},
                             {"needed_bytes", 12.75 * kGiBytes},
                             {"would_fit", {"training.micro_batch=4"}}};
  expect_told(told(p)["memory"], memory);
}

TEST(PredictionJson, PeaksAsRecordedStandApart) {
  Prediction p = made_prediction();
  EXPECT_FALSE(told(p).contains("memory_as_recorded"));
  p.memory.source = MemorySource::as_recorded;
  EXPECT_TRUE(told(p)["memory"].is_null());
  expect_told(told(p)["memory_as_recorded"], {{"peak_allocated_bytes", 10 * kMadeGiB},
                                              {"peak_reserved_bytes", 11 * kMadeGiB},
                                              {"context_bytes", 1.5 * kGiBytes},
                                              {"device_used_bytes", 12.5 * kGiBytes},
                                              {"capacity_bytes", 40 * kMadeGiB},
                                              {"fits", true},
                                              {"verdict", "fits"}});
  p.memory.source = MemorySource::unknown;
  EXPECT_TRUE(told(p)["memory"].is_null());
  EXPECT_FALSE(told(p).contains("memory_as_recorded"));
}

// A quarter of what the L2 is asked for is found there; 45 of 90 ms are those of full SMs.
TEST(PredictionJson, AKernelGroupTellsItsSums) {
  const json out = told(made_prediction())["kernels"];
  ASSERT_EQ(out.size(), 2U);
  expect_told(out[0], {{"name", "gemm_128x64"},
                       {"shape", "4096x1024x1024"},
                       {"count", 96},
                       {"time_s", 0.09},
                       {"limiter", "compute"},
                       {"op", "aten::addmm"},
                       {"class", "matrix_products"},
                       {"flops", 5e12},
                       {"read_bytes", 7e9},
                       {"written_bytes", 3e9},
                       {"dram_bytes", 6e9},
                       {"l2_hit_rate", 0.25},
                       {"occupancy", 0.5},
                       {"tensor_cores", true}});
  expect_told(out[1], {{"name", "layer_norm"},
                       {"shape", "8x512x1024"},
                       {"count", 48},
                       {"time_s", 0.016},
                       {"limiter", "shared_memory"},
                       {"op", "aten::native_layer_norm"},
                       {"class", "normalization"},
                       {"flops", 1e9},
                       {"read_bytes", 2e9},
                       {"written_bytes", 1e9},
                       {"dram_bytes", 2.5e9},
                       {"l2_hit_rate", 0.75},
                       {"occupancy", 0.25},
                       {"tensor_cores", false}});
}

TEST(PredictionJson, AGroupThatTakesNoTimeHasNoShares) {
  Prediction p = made_prediction();
  p.kernels = {KernelGroup{}};
  const json out = told(p)["kernels"][0];
  EXPECT_EQ(out["l2_hit_rate"], 0.0);
  EXPECT_EQ(out["occupancy"], 0.0);
}

TEST(PredictionJson, AdviceNotesAndGeneration) {
  Prediction p = made_prediction();
  EXPECT_FALSE(told(p).contains("generation"));
  p.advice = {{"training.precision=bf16", made_ms(30), -5, "half the bytes"}};
  p.notes = {"one", "another"};
  p.generation = Generation{made_ms(31), made_ms(7), 12345};
  const json out = told(p);
  ASSERT_EQ(out["advice"].size(), 1U);
  expect_told(out["advice"][0], {{"change", "training.precision=bf16"},
                                 {"time_saved_s", 0.03},
                                 {"memory_saved_bytes", -5},
                                 {"why", "half the bytes"}});
  EXPECT_EQ(out["notes"], json({"one", "another"}));
  expect_told(out["generation"], {{"first_token_s", 0.031}, {"per_token_s", 0.007}, {"cache_bytes", 12345}});
}

TEST(PredictionJson, SeveralGpusTellWhatTheyExchangeAndEachClassOfRanks) {
  Prediction p = made_prediction();
  EXPECT_FALSE(told(p).contains("parallel"));
  p.parallel = made_parallel();
  p.parallel->board = 1.03;
  const json out = told(p)["parallel"];
  const json top{
      {"gpus", 4},          {"exposed_communication_s", 0.006}, {"hidden_communication_s", 0.034}, {"bubble_s", 0.009},
      {"efficiency", 0.83}, {"limit", p.parallel->limit},       {"slowest_board_energy", 1.03}};
  json rest = out;
  rest.erase("communication"), rest.erase("ranks");
  expect_told(rest, top);
  ASSERT_EQ(out["communication"].size(), 2U);
  expect_told(out["communication"][0], {{"kind", "all_reduce"},
                                        {"group", "data"},
                                        {"count", 145},
                                        {"bytes", 6'230'000'000},
                                        {"time_s", 0.036},
                                        {"exposed_s", 0.006}});
  expect_told(out["communication"][1], {{"kind", "send_recv"},
                                        {"group", "pipeline"},
                                        {"count", 8},
                                        {"bytes", 42'000'000},
                                        {"time_s", 0.004},
                                        {"exposed_s", 0.0}});
  ASSERT_EQ(out["ranks"].size(), 2U);
  expect_told(out["ranks"][1], {{"class", "stage 1"},
                                {"ranks", 1},
                                {"step_s", 0.2},
                                {"memory",
                                 {{"peak_allocated_bytes", 20 * kMadeGiB},
                                  {"peak_reserved_bytes", 21 * kMadeGiB},
                                  {"communicator_bytes", kMadeGiB / 2},
                                  {"device_used_bytes", 39 * kMadeGiB},
                                  {"fits", false}}},
                                {"busy_s", 0.18},
                                {"bubble_s", 0.007}});
  p.parallel->ranks.pop_back();
  EXPECT_FALSE(told(p)["parallel"]["ranks"][0].contains("busy_s")) << "said of the stages of a pipeline";
}

}  // namespace
}  // namespace ridgeline
