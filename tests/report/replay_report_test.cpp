// A replayed recording as text and JSON, from a result made by hand.
#include "sim/report/replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "sim/trace/profiler/operator_stacks.h"
#include "tests/support/made_prediction.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ReplayedOp made_op(const char* name, std::int64_t count, double predicted, double measured, std::size_t time_class) {
  ReplayedOp op;
  op.name = name, op.count = count, op.predicted = made_ms(predicted), op.measured = made_ms(measured);
  op.predicted_by_class[time_class] = op.predicted, op.measured_by_class[time_class] = op.measured;
  return op;
}

ReplayResult made_replay() {
  ReplayResult r;
  r.format = trace::Format::pytorch_profiler;
  r.info.title = "a recording";
  r.prediction = made_prediction();
  r.measured.gpu = "NVIDIA X", r.measured.which_step = "ProfilerStep#3 of 5";
  r.measured.busy = 0.15, r.measured.kernel_sum = 0.16, r.measured.span = 0.19, r.measured.step = 0.25;
  r.measured.kernels = 990, r.measured.peak_allocated = 111, r.measured.peak_reserved = 222;
  r.has_measured_kernels = true;
  r.ops = {made_op("aten::addmm", 96, 90, 100, 0), made_op("aten::native_layer_norm", 48, 16, 8, 1),
           made_op("aten::tiny", 7, 22, 2, 2), made_op("custom::op", 10, 6, 6, 4)};
  r.ops[3].understood = false;
  r.measured_by_class = {made_ms(100), made_ms(8), made_ms(0.3), Seconds{}, made_ms(6), Seconds{}};
  r.coverage = {200, 190, made_ms(150), made_ms(144)};
  return r;
}

std::string on_one_line(const std::string& text) { return std::regex_replace(text, std::regex("\n +"), " "); }

// Of what has a rule: 90 + 16 + 22 predicted, 100 + 8 + 2 measured. A class under half a percent of 114.3 ms, or one
// without anything understood, says nothing about an error.
TEST(ReplayText, SaysWhatWasPredictedBesideWhatWasMeasured) {
  EXPECT_EQ(replay_text("f.json", made_replay(), Notes::folded), R"(f.json: PyTorch profiler trace recorded on NVIDIA X
  a recording
  step: ProfilerStep#3 of 5

  step on nvidia-made   200 ms  (190 ms to 215 ms)
  GPU busy      180 ms; measured 150 ms
  host          120 ms
  kernels       1000; measured 990
  recorded step 250 ms, slowed by the profiler
  memory        10.00 GiB allocated, 11.00 GiB reserved, 12.50 GiB in nvidia-smi here; fits (40.00
                GiB)
  understood    190 of 200 operations (95.0 %), 96.0 % of the GPU time
  of that       128 ms; measured 110 ms (+16.4 %)

   predicted   measured            count  operation
     90.0 ms     100 ms   -10.0 %     96  aten::addmm
     16.0 ms    8.00 ms  +100.0 %     48  aten::native_layer_norm
     22.0 ms    2.00 ms       x11      7  aten::tiny
     6.00 ms    6.00 ms   carried     10  custom::op
  carried: no rule or no shapes; the recorded time or the bytes stand for it

     90.0 ms     100 ms   -10.0 %         tensor contraction
     16.0 ms    8.00 ms  +100.0 %         normalization
     22.0 ms     300 us       x11         elementwise
     6.00 ms    6.00 ms                   copy
)");
}

TEST(ReplayText, ARecordingWithoutKernelsHasPredictionsAlone) {
  ReplayResult r = made_replay();
  r.has_measured_kernels = false;
  r.measured.gpu.clear(), r.measured.step = 0;
  r.measured_by_class = {};
  for (ReplayedOp& op : r.ops) op.measured = {}, op.measured_by_class = {};
  const std::string text = replay_text("f.json", r, Notes::folded);
  EXPECT_THAT(text, StartsWith("f.json: PyTorch profiler trace\n"));
  EXPECT_THAT(text, Not(HasSubstr("measured")));
  EXPECT_THAT(text, Not(HasSubstr("slowed by the profiler")));
  EXPECT_THAT(text, HasSubstr("\n   predicted  count  operation\n     90.0 ms     96  aten::addmm\n"));
  EXPECT_THAT(text,
              HasSubstr("     6.00 ms     10  custom::op (no rule)\n\n      110 ms         tensor contraction\n"));
}

// 26 operations: 24 have a row, the last two add up.
TEST(ReplayText, OperationsBeyondTheTwentyFourthAreOneRow) {
  ReplayResult r = made_replay();
  r.ops.clear();
  for (int i = 0; i < 26; ++i) r.ops.push_back(made_op(("aten::op" + std::to_string(i)).c_str(), 10 + i, 5, 4, 0));
  const std::string text = replay_text("f.json", r, Notes::folded);
  EXPECT_THAT(text, HasSubstr("33  aten::op23\n     10.0 ms    8.00 ms   +25.0 %     69  all others\n"));
  EXPECT_THAT(text, Not(HasSubstr("aten::op24")));
}

TEST(ReplayText, ConditionsOfTheRecordingAreSaidWhereTheyMatter) {
  ReplayResult r = made_replay();
  r.compared = {0.2, 0.9, microseconds(1), made_ms(90), made_ms(100)};
  EXPECT_THAT(on_one_line(replay_text("f", r, Notes::folded)),
              HasSubstr(" 20.0 % of it ran beside kernels of other streams; the GPU was recorded at about 90 % of its "
                        "clock, as its longer kernels tell that wait for it; the recording adds 1.00 us to each kernel "
                        "(lower quartile of the short ones in half of the calls); under this, of the calls alone that "
                        "did not say so -10.0 %"));
  r.compared = {0.04, 1.0, microseconds(0.1), made_ms(90), made_ms(100)};
  EXPECT_THAT(replay_text("f", r, Notes::folded), Not(HasSubstr("under this")));
}

TEST(ReplayText, WhatIsDoubtfulComesFirst) {
  ReplayResult r = made_replay();
  r.coverage.understood_gpu_time = made_ms(60);
  EXPECT_THAT(replay_text("f", r, Notes::folded), StartsWith("UNDER HALF UNDERSTOOD: 40.0 % of the GPU time"));
  r = made_replay();
  r.undescribed_gpu = "'MI300X', which is no NVIDIA GPU";
  EXPECT_THAT(replay_text("f", r, Notes::folded),
              StartsWith("RECORDED ON ANOTHER KIND OF GPU: 'MI300X', which is no NVIDIA GPU; 96.0 % of its GPU time"));
  r = made_replay();
  r.defects.add(std::string(trace::kLaunchesWithoutKernel), 3000);
  EXPECT_THAT(replay_text("f", r, Notes::folded),
              StartsWith("MOST KERNELS ARE NOT IN THE TRACE: of 3990 launches 3000 left none"));
  r.defects.counts.begin()->second = 990;
  EXPECT_THAT(replay_text("f", r, Notes::folded), StartsWith("f: "));
}

TEST(ReplayText, MemoryAndCommunicationOfARecording) {
  ReplayResult r = made_replay();
  r.prediction.parallel = made_parallel();
  r.prediction.memory.source = MemorySource::as_recorded;
  const std::string text = replay_text("f", r, Notes::folded);
  EXPECT_THAT(text, HasSubstr("  communication 40.0 ms of 4 GPUs: 6.00 ms exposed, 34.0 ms hidden\n"
                              "                the last all_reduce keeps the GPU waiting\n"));
  EXPECT_THAT(on_one_line(text), HasSubstr("11.00 GiB reserved as recorded, so 12.50 GiB in nvidia-smi here"));
  r.prediction.memory.source = MemorySource::unknown;
  EXPECT_THAT(replay_text("f", r, Notes::folded), HasSubstr("  memory        unknown: the recording says nothing"));
}

TEST(ReplayJson, HasTheRecordingBesideThePrediction) {
  ReplayResult r = made_replay();
  r.compared = {0.2, 0.9, Seconds{1e-6}, Seconds{0.09}, Seconds{0.1}};
  r.defects.add("events without a duration", 12);
  const json out = json(replay_json("f.json", r));
  EXPECT_EQ(out["scenario"], "a recording");
  EXPECT_EQ(out["hardware"], "nvidia-made");
  EXPECT_NEAR(out["understood"].get<double>(), 0.96, 1e-12);
  EXPECT_EQ(out["trace"], (json{{"file", "f.json"},
                                {"format", "PyTorch profiler trace"},
                                {"recorded_on", "NVIDIA X"},
                                {"step", "ProfilerStep#3 of 5"}}));
  const json& measured = out["measured"];
  EXPECT_EQ(measured["gpu_busy_s"], 0.15);
  EXPECT_EQ(measured["kernel_time_s"], 0.16);
  EXPECT_EQ(measured["kernel_count"], 990);
  EXPECT_EQ(measured["span_s"], 0.19);
  EXPECT_EQ(measured["step_s"], 0.25);
  EXPECT_EQ(measured["peak_allocated_bytes"], 111);
  EXPECT_EQ(measured["peak_reserved_bytes"], 222);
  EXPECT_EQ(measured["time_by_class"]["tensor_contraction"], made_ms(100).value());
  EXPECT_EQ(measured["time_by_class"]["copy"], made_ms(6).value());
  const json& part = out["understood_part"];
  EXPECT_NEAR(part["predicted_s"].get<double>(), 0.128, 1e-12);
  EXPECT_NEAR(part["measured_s"].get<double>(), 0.11, 1e-12);
  EXPECT_EQ(part["beside_share"], 0.2);
  EXPECT_EQ(part["clock_share"], 0.9);
  EXPECT_EQ(part["added_per_kernel_s"], 1e-6);
  EXPECT_EQ(part["alone"], (json{{"predicted_s", 0.09}, {"measured_s", 0.1}}));
  EXPECT_EQ(out["coverage"]["calls"], 200);
  EXPECT_EQ(out["coverage"]["understood_calls"], 190);
  EXPECT_EQ(out["coverage"]["ops"], 0.95);
  EXPECT_EQ(out["coverage"]["unknown"], json({"custom::op"}));
  ASSERT_EQ(out["ops"].size(), 4U);
  EXPECT_EQ(out["ops"][3], (json{{"name", "custom::op"},
                                 {"count", 10},
                                 {"understood", false},
                                 {"predicted_s", made_ms(6).value()},
                                 {"measured_s", made_ms(6).value()}}));
  EXPECT_EQ(out["defects"], (json{{"events without a duration", 12}}));
}

TEST(ReplayJson, WithoutKernelsNothingIsMeasured) {
  ReplayResult r = made_replay();
  r.has_measured_kernels = false;
  r.info.title.clear();
  const json out = json(replay_json("f.json", r));
  EXPECT_EQ(out["scenario"], "f.json");
  EXPECT_TRUE(out["measured"].is_null());
  EXPECT_TRUE(out["understood_part"]["measured_s"].is_null());
  EXPECT_TRUE(out["ops"][0]["measured_s"].is_null());
}

}  // namespace
}  // namespace ridgeline
