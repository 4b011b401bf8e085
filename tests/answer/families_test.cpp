// Networks of Transformers measured on an H100 (measurements/networks/families.jsonl.gz): new families and fresh
// configurations of old ones, linear layers in 8 bits, and losses in chunks. Rows that say `heldout` were predicted
// once, when all was done; the others were in view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer/step_run.h"
#include "tests/support/measured_networks.h"
#include "tests/support/measurement_index.h"

namespace ridgeline {
namespace {

using FamilyRow = nlohmann::json;

// Percent.
struct FamilyBars {
  double busy_median = 5, busy_worst = 12, allocated_median = 1, allocated_worst = 4, reserved_median = 2,
         reserved_worst = 8;
};

/// Wider ones, listed in measurements/DEVIATIONS.md: what bf16 networks reserve.
struct FamilyDeviation {
  const char* name;
  double busy, allocated, reserved;  ///< 0: within its bar
};
constexpr FamilyDeviation kDeviations[] = {
    {"modernbert_h", 0, 0, 10}, {"roberta_prelayernorm_m", 0, 0, 13}, {"xglm_t", 0, 0, 11}};

void expect_family(double error, double bar, double wider, const std::string& name, const char* what) {
  EXPECT_LE(error, wider > 0 ? wider : bar) << name << ": " << what;
  if (wider > 0) {
    EXPECT_GT(error, bar) << name << " meets its bar now: take it out of measurements/DEVIATIONS.md";
  }
}

Scenario scenario_of_family(const FamilyRow& row) {
  return ridgeline::testing::scenario_of_measured_network(row, "nvidia-h100-sxm5-80gb");
}

struct FamilyErrors {
  std::vector<double> busy, allocated, reserved;
};

/// Absolute errors in percent of rows that are held out or not.
FamilyErrors family_errors(const char* file, bool held_out, const FamilyBars& bars) {
  FamilyErrors errors;
  for_each_row(ridgeline::testing::measurements().file(file), [&](const FamilyRow& row) {
    if (row.value("heldout", false) != held_out) return;
    if (ridgeline::testing::adds_in_16_bits(row)) return;
    const Prediction prediction = predict(scenario_of_family(row), "analytic");
    const auto off = [](double predicted, const FamilyRow& measured) {
      return 100.0 * std::abs(predicted / measured.get<double>() - 1.0);
    };
    const std::string name = row["name"];
    const auto* listed = std::find_if(std::begin(kDeviations), std::end(kDeviations),
                                      [&](const FamilyDeviation& one) { return name == one.name; });
    const FamilyDeviation wider = listed == std::end(kDeviations) ? FamilyDeviation{"", 0, 0, 0} : *listed;
    if (row.contains("gpu_busy_ms")) {
      errors.busy.push_back(off(prediction.step.gpu_busy.value() * 1e3, row["gpu_busy_ms"]));
      expect_family(errors.busy.back(), bars.busy_worst, wider.busy, name, "busy");
    }
    errors.allocated.push_back(off(static_cast<double>(prediction.memory.peak_allocated), row["peak"]["allocated"]));
    errors.reserved.push_back(off(static_cast<double>(prediction.memory.peak_reserved), row["peak"]["reserved"]));
    expect_family(errors.allocated.back(), bars.allocated_worst, wider.allocated, name, "allocated");
    expect_family(errors.reserved.back(), bars.reserved_worst, wider.reserved, name, "reserved");
  });
  return errors;
}

double middle(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void expect_medians(const FamilyErrors& errors, const FamilyBars& bars) {
  EXPECT_LE(middle(errors.busy), bars.busy_median);
  EXPECT_LE(middle(errors.allocated), bars.allocated_median);
  EXPECT_LE(middle(errors.reserved), bars.reserved_median);
}

TEST(Families, HeldOutOnesTakeTheTimeAndMemoryTheyTook) {
  const FamilyErrors errors = family_errors("networks/families.jsonl.gz", true, {});
  EXPECT_EQ(errors.busy.size(), 36u);
  expect_medians(errors, {});
}

TEST(Families, OnesInViewTakeTheTimeAndMemoryTheyTook) {
  const FamilyErrors errors = family_errors("networks/families.jsonl.gz", false, {});
  EXPECT_EQ(errors.busy.size(), 22u);
  expect_medians(errors, {});
}

// Twenty types of networks that no row above has; nothing was changed after they were predicted.
TEST(Families, FurtherTypesTakeTheTimeAndMemoryTheyTook) {
  const FamilyErrors errors = family_errors("networks/families_second.jsonl.gz", true, {});
  EXPECT_EQ(errors.busy.size(), 20u);
  expect_medians(errors, {});
}

// Eleven types more and fresh ones of four, predicted before they were measured. What five of them missed was found in
// traces of their steps and mended, so that they have been in view since; no constant is fitted on any.
TEST(Families, TypesAddedLastTakeTheTimeAndMemoryTheyTook) {
  const FamilyErrors errors = family_errors("networks/families_third.jsonl.gz", true, {});
  EXPECT_EQ(errors.busy.size(), 17u);
  expect_medians(errors, {});
}

// Variants of older types and a new one, predicted before they were measured. What SmolLM3, untied, missed (allocated
// 8.8 %: its table said tied whatever a configuration says) and BLOOM's kernels was mended after.
TEST(Families, FreshVariantsTakeTheTimeAndMemoryTheyTook) {
  const FamilyErrors errors = family_errors("networks/families_fourth.jsonl.gz", true, {});
  EXPECT_EQ(errors.busy.size(), 18u);
  expect_medians(errors, {});
}

TEST(Families, LinearLayersInEightBitsAndLossesInChunks) {
  for (const bool held_out : {false, true}) {
    const FamilyErrors errors = family_errors("networks/low_precision.jsonl.gz", held_out, {});
    EXPECT_EQ(errors.busy.size(), held_out ? 6u : 4u);
    expect_medians(errors, {});
  }
}

// Steps of networks.jsonl.gz in processes of their own on an H100: what Qwen2, Bloom and a gated T5 reserve.
TEST(Families, MemoryMeasuredAgain) {
  FamilyBars bars;
  bars.reserved_worst = 2;
  EXPECT_EQ(family_errors("networks/memory_again.jsonl.gz", false, bars).reserved.size(), 5u);
}

std::string refusal_of_training(const std::string& training, const std::string& hardware = "nvidia-h100-sxm5-80gb",
                                const std::string& model = "gpt2") {
  ScenarioSource source;
  source.text = "{hardware: " + hardware + ", model: " + model + ", training: {micro_batch: 2, sequence_length: 128, " +
                training + "}}";
  source.text_name = "s.yaml";
  try {
    load_scenario(source);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no mistake was found";
}

TEST(Families, EightBitsAndChunksAreRefusedWhereTheyAreNotModelled) {
  using ::testing::HasSubstr;
  EXPECT_EQ(refusal_of_training("precision: bf16, fp8: rowwise"), "no mistake was found");
  EXPECT_THAT(refusal_of_training("precision: fp32, fp8: rowwise"), HasSubstr("amp-bf16"));
  EXPECT_THAT(refusal_of_training("precision: bf16, fp8: rowise"), HasSubstr("rowwise"));
  EXPECT_THAT(refusal_of_training("precision: bf16, fp8: tensorwise", "nvidia-a100-sxm4-80gb"), HasSubstr("Hopper"));
  EXPECT_THAT(refusal_of_training("precision: bf16, fp8: tensorwise, compile: true"), HasSubstr("torch.compile"));
  EXPECT_EQ(refusal_of_training("precision: bf16, loss_code: chunked"), "no mistake was found");
  EXPECT_THAT(refusal_of_training("precision: bf16, loss_code: chunked", "nvidia-h100-sxm5-80gb", "bert-base"),
              HasSubstr("expected whole"));
}

// A loss in chunks multiplies hidden states by the table and nothing else: whatever changes scores goes with a whole.
TEST(Families, AScaledHeadHasNoLossInChunks) {
  const auto refusal = [](const std::string& head) {
    ScenarioSource source;
    source.text =
        "{hardware: nvidia-h100-sxm5-80gb, model: {family: composed, layers: 2, heads: 4, hidden: 64, feed_forward: "
        "128, vocabulary: 1000, positions: rotary, norm: rms" +
        head + "}, training: {micro_batch: 2, sequence_length: 128, precision: bf16, loss_code: chunked}}";
    source.text_name = "s.yaml";
    try {
      load_scenario(source);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("no mistake was found");
  };
  EXPECT_EQ(refusal(""), "no mistake was found");
  for (const char* head : {", logit_scale: true", ", logit_cap: 30", ", head_bias: true"})
    EXPECT_THAT(refusal(head), ::testing::HasSubstr("expected whole")) << head;
}

}  // namespace
}  // namespace ridgeline
