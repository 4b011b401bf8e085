// What `ridgeline fit` says of the batch that fails.
#include "sim/report/fit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/units/parse.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kOneGiB = std::int64_t{1} << 30;

TEST(FitReport, SaysWhatTheFailingBatchWouldTakeAndHowMuchMoreThatIs) {
  FitResult result;
  result.scenario = "a network";
  result.hardware = "a chip";
  result.capacity = 16 * kOneGiB;
  result.failing_micro_batch = 3;
  result.failing.emplace();
  result.failing->capacity = 16 * kOneGiB;
  result.failing->needed = 21 * kOneGiB;
  MemoryShortage shortage;
  shortage.op = "matmul";
  shortage.requested_bytes = kOneGiB;
  shortage.held[static_cast<std::size_t>(Category::activations)] = 9 * kOneGiB;
  shortage.held[static_cast<std::size_t>(Category::weights)] = 4 * kOneGiB;
  result.failing->out_of_memory = shortage;
  result.monotone = false;
  result.trials = {{3, 1, false, 21 * kOneGiB}};
  const std::string text = fit_text(result, Seconds{1.0});
  EXPECT_THAT(text, HasSubstr("NOT EVEN ONE SEQUENCE"));
  EXPECT_THAT(text, HasSubstr("micro-batch 3 runs out"));
  EXPECT_THAT(text, HasSubstr("it would take 21.00 GiB, " + to_string(Bytes{5.0 * static_cast<double>(kOneGiB)}) +
                              " more than there is; most of it activations"));
  EXPECT_THAT(text, HasSubstr("some smaller batch fails"));
  EXPECT_THAT(text, HasSubstr(" 3 (no)"));
}

FitResult made_fit() {
  FitResult r;
  r.scenario = "a network", r.hardware = "a chip", r.capacity = made_gib(40), r.asked_batch = 12;
  r.largest = FittingBatch{10, 2, made_prediction()};
  r.sure_micro_batch = 9;
  r.keeps_batch = false;
  r.same_batch = FittingBatch{6, 3, made_prediction()};
  r.same_batch->prediction.step.time = made_ms(180), r.same_batch->prediction.memory.device_used = made_gib(9);
  r.failing_micro_batch = 11;
  r.failing = made_memory();
  r.failing->needed = made_gib(44);
  MemoryShortage& oom = r.failing->out_of_memory.emplace();
  oom.op = "bmm", oom.phase = Phase::backward, oom.layer = 5, oom.category = Category::temporaries;
  oom.requested_bytes = 96 * kMadeMiB, oom.missing_bytes = 40 * kMadeMiB;
  oom.held = {7, 6, 5, 14, 3, 2, 1};
  r.trials = {{1, 12, true, made_gib(5)}, {16, 1, false, made_gib(60)}, {10, 2, true, made_gib(12.5)}};
  return r;
}

// 44 of 40 GiB; 14 of what is held are activations.
TEST(FitReport, SaysWhatFitsAndWhatDoesNot) {
  EXPECT_EQ(fit_text(made_fit(), Seconds{0.25}), R"(a network
a chip, 40.00 GiB

  fits          micro-batch 10 x 2 a step: 200 ms a step, 160 samples/s, 12.50 GiB of the device
                with the spread of such predictions to spare: micro-batch 9
                the scenario's batch of 12 is no multiple of it
  same batch    micro-batch 6 x 3 a step: 180 ms a step, 160 samples/s, 9.00 GiB of the device
  limited by    micro-batch 11 runs out in bmm of the backward, block 5, at 96.0 MiB of temporaries
                it would take 44.00 GiB, 4.00 GiB more than there is; most of it activations
  search        3 batches in 250 ms: 1 16 (no) 10
)");
}

TEST(FitReport, WhatFitsWithoutAnEndInReach) {
  FitResult r = made_fit();
  r.failing.reset(), r.same_batch.reset();
  r.asked_batch = 8, r.sure_micro_batch = 0;
  const std::string text = fit_text(r, Seconds{1.0});
  EXPECT_THAT(text, HasSubstr("with the spread of such predictions not even one surely fits\n"));
  EXPECT_THAT(text, HasSubstr("the scenario's batch of 8 is smaller than that\n"));
  EXPECT_THAT(text, HasSubstr("  limited by    nothing in reach: the most tokens of a forward pass fit\n"));
  r.keeps_batch = true, r.sure_micro_batch = 10;
  const std::string sure = fit_text(r, Seconds{1.0});
  EXPECT_EQ(sure.find("spread"), sure.npos);
  EXPECT_EQ(sure.find("the scenario's batch"), sure.npos);
}

TEST(FitReport, WhereNothingFitsWhatWouldMakeItFit) {
  FitResult r = made_fit();
  r.largest.reset();
  EXPECT_THAT(fit_text(r, Seconds{1.0}), HasSubstr("\n  would fit     with none of the changes tried\n"));
  r.would_fit = {"training.micro_batch=1", "training.precision=bf16"};
  EXPECT_THAT(fit_text(r, Seconds{1.0}),
              HasSubstr("\n  would fit     with --set training.micro_batch=1 --set training.precision=bf16\n"));
}

// A line of 100 columns: 27 of the heading and of each trial six; what does not fit goes on below the label.
TEST(FitReport, TrialsThatFillALineGoOnBelow) {
  const auto search_of = [](std::size_t count) {
    FitResult r = made_fit();
    r.trials.assign(count, {12345, 1, true, 1});
    const std::string text = fit_text(r, Seconds{0.25});
    return text.substr(text.find("  search"));
  };
  const auto trials = [](std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += " 12345";
    return out;
  };
  const std::string head12 = "  search        12 batches in 250 ms:";
  ASSERT_EQ(head12.size(), 37u);
  EXPECT_EQ(search_of(10), "  search        10 batches in 250 ms:" + trials(10) + "\n") << "97 columns";
  EXPECT_EQ(search_of(12), head12 + trials(10) + "\n" + std::string(15, ' ') + trials(2) + "\n");
  FitResult r = made_fit();
  r.trials.assign(10, {12345, 1, true, 1});
  r.trials.push_back({12, 1, true, 1});
  const std::string full = fit_text(r, Seconds{0.25});
  EXPECT_TRUE(full.ends_with("11 batches in 250 ms:" + trials(10) + " 12\n")) << "100 columns";
  r.trials.back().micro_batch = 123;
  EXPECT_TRUE(fit_text(r, Seconds{0.25}).ends_with(trials(10) + "\n" + std::string(15, ' ') + " 123\n"));
}

// A batch that fails for another reason than memory has no shortage to tell.
TEST(FitReport, WithoutAShortageThereIsNoLimit) {
  FitResult r = made_fit();
  r.failing->out_of_memory.reset();
  EXPECT_FALSE(fit_json(r, Seconds{1.0}).contains("limit"));
  EXPECT_THAT(fit_text(r, Seconds{1.0}), HasSubstr("  limited by    nothing in reach"));
}

TEST(FitReport, JsonHasTheBatchesTheLimitAndTheTrials) {
  using nlohmann::json;
  const json out = json(fit_json(made_fit(), Seconds{0.25}));
  EXPECT_EQ(out["capacity_bytes"], made_gib(40));
  EXPECT_EQ(out["fits"], true);
  EXPECT_EQ(out["asked_batch"], 12);
  EXPECT_EQ(out["micro_batch"], 10);
  EXPECT_EQ(out["gradient_accumulation"], 2);
  EXPECT_EQ(out["batch"], 20);
  EXPECT_EQ(out["step"]["kernel_count"], 1000);
  EXPECT_EQ(out["memory"]["device_used_bytes"], made_gib(12.5));
  EXPECT_EQ(out["sure_micro_batch"], 9);
  EXPECT_EQ(out["keeps_batch"], false);
  EXPECT_EQ(out["same_batch"]["batch"], 18);
  EXPECT_EQ(out["limit"], (json{{"micro_batch", 11},
                                {"op", "bmm"},
                                {"phase", "backward"},
                                {"layer", 5},
                                {"category", "temporaries"},
                                {"largest_category", "activations"},
                                {"requested_bytes", 96 * kMadeMiB},
                                {"missing_bytes", 40 * kMadeMiB},
                                {"needed_bytes", made_gib(44)},
                                {"short_bytes", made_gib(4)},
                                {"held",
                                 {{"weights", 7},
                                  {"gradients", 6},
                                  {"optimizer_state", 5},
                                  {"activations", 14},
                                  {"temporaries", 3},
                                  {"workspaces", 2},
                                  {"inputs", 1}}}}));
  EXPECT_EQ(out["monotone"], true);
  EXPECT_EQ(out["search_s"], 0.25);
  ASSERT_EQ(out["trials"].size(), 3U);
  EXPECT_EQ(out["trials"][1],
            (json{{"micro_batch", 16}, {"gradient_accumulation", 1}, {"fits", false}, {"needed_bytes", made_gib(60)}}));
  FitResult none = made_fit();
  none.largest.reset(), none.failing->needed = made_gib(30);
  none.would_fit = {"a=1"};
  const json nothing = json(fit_json(none, Seconds{1.0}));
  EXPECT_EQ(nothing["fits"], false);
  EXPECT_EQ(nothing["micro_batch"], 0);
  EXPECT_EQ(nothing["would_fit"], json({"a=1"}));
  EXPECT_EQ(nothing["limit"]["short_bytes"], 0) << "enough bytes, but not in one piece";
}

}  // namespace
}  // namespace ridgeline
