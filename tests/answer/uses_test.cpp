// Networks in use and parts of blocks as measured on an NVIDIA H200 (PyTorch 2.11, Transformers 5.17): generations with
// batches, beams and static caches, steps of which parts run again, and DPO.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/answer/step_run.h"
#include "tests/support/measurement_index.h"

namespace ridgeline::measured_uses {
namespace {

using nlohmann::json;

// Percent.
constexpr double kBusyWorst = 8, kBusyMedian = 7, kAllocatedWorst = 1;
/// Two rows that measurements/DEVIATIONS.md lists: beams of GPT-2, and the smallest Llama with a static cache.
constexpr double kBeamsOfGpt2 = 16, kSmallStatic = 11;

json llama(int layers, int hidden, int feed_forward) {
  return {{"family", "llama"},    {"layers", layers}, {"heads", 16},
          {"key_value_heads", 4}, {"hidden", hidden}, {"feed_forward", feed_forward},
          {"vocabulary", 32000}};
}

/// A config.json of GPT-2 Medium's size: the GELU of its class is eight kernels.
std::string gpt2_medium() {
  const std::string path = ::testing::TempDir() + "ridgeline_gpt2_medium.json";
  std::ofstream(path) << json{{"model_type", "gpt2"},
                              {"architectures", json::array({"GPT2LMHeadModel"})},
                              {"n_embd", 1024},
                              {"n_layer", 24},
                              {"n_head", 16},
                              {"vocab_size", 50257},
                              {"n_positions", 1024},
                              {"activation_function", "gelu_new"},
                              {"resid_pdrop", 0.0},
                              {"attn_pdrop", 0.0},
                              {"embd_pdrop", 0.0},
                              {"n_inner", nullptr},
                              {"tie_word_embeddings", true}};
  return path;
}

json network_of(const std::string& kind) {
  if (kind == "llama") return llama(16, 2048, 5632);
  if (kind == "small") return llama(8, 1024, 2816);
  if (kind == "qwen") return "qwen2.5-0.5b";
  if (kind == "bert")
    return {{"family", "bert"},     {"layers", 12},         {"heads", 12},
            {"hidden", 768},        {"feed_forward", 3072}, {"vocabulary", 30522},
            {"max_positions", 512}, {"dropout", 0.1},       {"head", "sequence-classification"}};
  return gpt2_medium();
}

Prediction predicted(const json& scenario) {
  ScenarioSource source;
  source.text = scenario.dump();
  source.text_name = "measured";
  return predict(load_scenario(source), "analytic");
}

double percent(double prediction, const json& measured) { return 100.0 * (prediction / measured.get<double>() - 1.0); }

TEST(MeasuredUses, GenerationsAreAsBusyAndTakeAsMuchMemory) {
  std::vector<double> busy;
  for_each_row(testing::measurements().file("h200/inference/generation_second.jsonl.gz"), [&](const json& row) {
    if (row["kind"].get<std::string>().starts_with("small-")) return;
    SCOPED_TRACE(row["name"].get<std::string>());
    const Prediction p = predicted({{"hardware", "nvidia-h200-sxm-141gb"},
                                    {"model", network_of(row["kind"])},
                                    {"inference",
                                     {{"sequences", row["B"]},
                                      {"prompt_length", row["P"]},
                                      {"new_tokens", row["N"]},
                                      {"beams", row["beams"]},
                                      {"cache", row["cache"]},
                                      {"compile", row["compiled"]},
                                      {"precision", "bf16"}}}});
    busy.push_back(std::abs(percent(p.step.gpu_busy.value() * 1e3, row["profiled"]["busy_ms"])));
    const bool of_gpt2 = row["kind"] == "gpt2" && row["beams"] > 1;
    const bool small_static = row["kind"] == "small" && !row["compiled"];
    EXPECT_LT(busy.back(), of_gpt2 ? kBeamsOfGpt2 : small_static ? kSmallStatic : kBusyWorst);
    EXPECT_LT(std::abs(percent(static_cast<double>(p.memory.peak_allocated), row["peak"]["allocated"])),
              kAllocatedWorst);
  });
  ASSERT_GE(busy.size(), 13u);
  std::sort(busy.begin(), busy.end());
  EXPECT_LT(busy[busy.size() / 2], kBusyMedian);
}

// An earlier network's tensors were still allocated in some of these runs: memory is compared where it says so.
TEST(MeasuredUses, StepsWithPartsThatRunAgainAndPairsAreAsBusy) {
  int rows = 0;
  for_each_row(testing::measurements().file("h200/inference/parts.jsonl.gz"), [&](const json& row) {
    SCOPED_TRACE(row["name"].get<std::string>());
    json training{{"optimizer", {{"name", "adamw"}, {"implementation", "fused"}}}, {"sequence_length", row["L"]}};
    const bool pairs = row.contains("pairs");
    training["precision"] = !pairs && row["dtype"] == "None" ? "fp32" : "amp-bf16";
    if (pairs) {
      training["micro_batch"] = row["pairs"];
      training["gradient_clipping"] = 1.0;
      training["preference"] = "dpo";
    } else {
      training["micro_batch"] = row["B"];
      training["attention"] = row["attn"];
      if (!row["which"].empty()) training["activation_checkpointing"] = row["which"];
      if (row["cpu"].is_boolean() && row["cpu"]) training["activation_offload"] = "pinned";
    }
    const Prediction p =
        predicted({{"hardware", "nvidia-h200-sxm-141gb"}, {"model", network_of(row["kind"])}, {"training", training}});
    EXPECT_LT(std::abs(percent(p.step.gpu_busy.value() * 1e3, row["busy_ms"])), kBusyWorst);
    if (pairs) {
      EXPECT_LT(std::abs(percent(static_cast<double>(p.memory.peak_allocated), row["peak_allocated"])),
                kAllocatedWorst);
    }
    ++rows;
  });
  EXPECT_GE(rows, 16);
}

// Memory allocated before a step held an earlier network's tensors, so that what parts save is compared, not the
// peak.
TEST(MeasuredUses, PartsThatRunAgainSaveWhatTheyDidSave) {
  constexpr double kSaved = 4;  // percent
  std::map<std::string, double> measured, expected;
  for_each_row(testing::measurements().file("h200/inference/parts.jsonl.gz"), [&](const json& row) {
    if (row["kind"] != "small" || row.contains("pairs") || row["B"] != 4) return;
    const std::string which = row["which"].dump();
    json training{{"optimizer", {{"name", "adamw"}, {"implementation", "fused"}}},
                  {"sequence_length", row["L"]},
                  {"micro_batch", row["B"]},
                  {"precision", "amp-bf16"}};
    if (!row["which"].empty()) training["activation_checkpointing"] = row["which"];
    measured[which] = row["peak_allocated"].get<double>() - row["at_start"].get<double>();
    expected[which] = static_cast<double>(
        predicted({{"hardware", "nvidia-h200-sxm-141gb"}, {"model", network_of("small")}, {"training", training}})
            .memory.peak_allocated);
  });
  ASSERT_EQ(measured.count("[]"), 1u);
  ASSERT_GE(measured.size(), 4u);
  for (const auto& [which, bytes] : measured) {
    if (which == "[]") continue;
    SCOPED_TRACE(which);
    const double saved = measured["[]"] - bytes;
    EXPECT_NEAR(expected["[]"] - expected[which], saved, kSaved / 100.0 * saved);
  }
}

}  // namespace
}  // namespace ridgeline::measured_uses
