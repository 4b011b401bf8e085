// One kernel case as text and as JSON: all its launches, and the range of their sum.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/report/json/kernel_json.h"
#include "sim/report/text/kernel_text.h"
#include "sim/report/text/notes.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;

KernelPrediction made_kernel() {
  KernelPrediction p;
  p.time = microseconds(40);
  p.longest = 1;
  p.flops = 3e9, p.dram_read_bytes = 700, p.dram_write_bytes = 30, p.l2_hit_rate = 0.2;
  p.launches.resize(2), p.times.resize(2);
  p.launches[0].name = "memset", p.launches[0].grid = {2, 1, 1}, p.launches[0].threads_per_block = 64;
  p.launches[1].name = "gemm", p.launches[1].grid = {7, 3, 2}, p.launches[1].threads_per_block = 256;
  p.times[0].time = microseconds(4), p.times[0].limiter = Limiter::latency;
  p.times[1].time = microseconds(36), p.times[1].limiter = Limiter::shared_memory;
  p.times[1].occupancy = 0.375, p.times[1].waves = 1.25;
  return p;
}

// 40 us, from 90 to 125 %.
TEST(KernelReport, TextHasARowALaunch) {
  EXPECT_EQ(kernel_text("a case", made_kernel(), Range{.low = 0.9, .high = 1.25, .validated = true}, ""), R"(a case
  40.0 us (36.0 us to 50.0 us)
    4.00 us  memset                                                   2 blocks of   64  latency
    36.0 us  gemm                                                    42 blocks of  256  shared memory
)");
  Range unknown{.low = 0.9, .high = 1.25};
  unknown.validated = false;
  EXPECT_NE(kernel_text("a case", made_kernel(), unknown, "no row").find("(36.0 us to 50.0 us, estimated: no row)"),
            std::string::npos);
}

TEST(KernelReport, JsonIsOfTheLongestLaunchAndOfAll) {
  const json out = json(kernel_json(made_kernel(), Range{.low = 0.9, .high = 1.25, .validated = true}, "", nullptr));
  EXPECT_NEAR(out["time_us"].get<double>(), 40, 1e-9);
  EXPECT_NEAR(out["low_us"].get<double>(), 36, 1e-9);
  EXPECT_NEAR(out["high_us"].get<double>(), 50, 1e-9);
  EXPECT_EQ(out["limiter"], "shared_memory");
  EXPECT_EQ(out["flops"], 3e9);
  EXPECT_EQ(out["occupancy"], 0.375);
  EXPECT_EQ(out["waves"], 1.25);
  EXPECT_FALSE(out.contains("validated") || out.contains("approximated") || out.contains("sensitivity"));
  ASSERT_EQ(out["kernels"].size(), 2U);
  EXPECT_EQ(out["kernels"][0]["name"], "memset");
  EXPECT_NEAR(out["kernels"][0]["time_us"].get<double>(), 4, 1e-9);
  EXPECT_EQ(out["kernels"][0]["limiter"], "latency");
  KernelPrediction guessed = made_kernel();
  guessed.approximated = true;
  Range unknown;
  unknown.validated = false;
  EXPECT_EQ(json(kernel_json(guessed, unknown, ""))["approximated"], true);
  EXPECT_EQ(json(kernel_json(guessed, unknown, "no row", nullptr))["validated"], false);
  EXPECT_EQ(json(kernel_json(guessed, unknown, "no row", nullptr))["estimated"], "no row");
  guessed.times.clear();
  EXPECT_FALSE(json(kernel_json(guessed, unknown, "")).contains("limiter")) << "nothing is launched";
}

// Of 180 ms of kernels: 9 are 5 %, 3.6 + 1.8 are 3 %, and 0.05 are under a thousandth.
TEST(NotesText, OperationsWithoutARuleAreToldByName) {
  Prediction p = made_prediction();
  p.approximated = {{"aten::a", "a of 1", 4, made_ms(3.6)},
                    {"aten::b", "b of 1", 7, made_ms(9)},
                    {"aten::a", "a of 2", 5, made_ms(1.8)},
                    {"aten::c", "c of 1", 1, made_ms(0.05)}};
  p.notes = {"a of 1", "something else", "b of 1", "a of 2", "c of 1"};
  EXPECT_EQ(notes_text(p, nullptr, Notes::folded), R"(
  note: 7 x aten::b without a rule on this GPU, costed by bytes: 5.0 % of the GPU time
  note: 9 x aten::a in 2 shapes without a rule on this GPU, costed by bytes: 3.0 % of the GPU time
  note: 1 x aten::c without a rule on this GPU, costed by bytes: under 0.1 % of the GPU time
  note: something else
)");
  EXPECT_EQ(notes_text(p, nullptr, Notes::all), R"(
  note: a of 1
  note: something else
  note: b of 1
  note: a of 2
  note: c of 1
)");
}

TEST(NotesText, EightLinesAtMostAndEachOnce) {
  Prediction p = made_prediction();
  for (int i = 0; i < 10; ++i) p.notes.push_back("note " + std::to_string(i));
  p.notes.push_back("note 3");
  const std::string told = notes_text(p, nullptr, Notes::folded);
  EXPECT_NE(told.find("  note: note 6\n  note: 3 more: --notes prints all\n"), std::string::npos) << told;
  p.notes.resize(8);
  EXPECT_EQ(notes_text(p, nullptr, Notes::folded).find("more"), std::string::npos);
  EXPECT_EQ(notes_text(made_prediction(), nullptr, Notes::folded), "");
}

// What is carried over has no rule: 27 of 180 ms.
TEST(NotesText, DefectsOfARecordingComeFirst) {
  Prediction p = made_prediction();
  p.notes = {"a note"};
  ReplayResult replay;
  replay.defects.add("kernels carried over", 3), replay.defects.add("events without a duration", 2);
  ReplayedOp known, unknown;
  known.predicted = made_ms(100), unknown.predicted = made_ms(27), unknown.understood = false;
  replay.ops = {known, unknown};
  EXPECT_EQ(notes_text(p, &replay, Notes::folded), R"(
  note: 2 x events without a duration
  note: 3 x kernels carried over: with all that has no rule 15.0 % of the GPU time
  note: a note
)");
  EXPECT_EQ(notes_text(p, &replay, Notes::all), R"(
  note: 2 x events without a duration
  note: 3 x kernels carried over
  note: a note
)");
}

}  // namespace
}  // namespace ridgeline
