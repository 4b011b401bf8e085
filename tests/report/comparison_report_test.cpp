// Two predictions side by side, row by row and key by key, from tests/support/made_comparison.h.
#include "sim/report/comparison_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/made_comparison.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// 350 W / 160 and 426.66 W / 213.33 a second; 9e12 FLOP in 81 and in 90 ms. What is left of the memory are 4 and 6 MiB.
TEST(ComparisonText, EachRowSaysWhatBothSidesHave) {
  Session session;
  EXPECT_EQ(comparison_text(made_comparison(session)), R"(  A  plain, nvidia-made
  B  flash, nvidia-other

                                 A           B
  step time                 200 ms      150 ms
    attention              60.0 ms     20.0 ms
    matrix products        90.0 ms     81.0 ms
    GPU waits              20.0 ms     18.9 ms
    copies                 15.0 ms     15.1 ms
  samples a second             160       213.3
  MFU                         43 %        57 %
  energy a sample           2.19 J         2 J
  memory in use          12.50 GiB    8.25 GiB
  fits                         yes         yes

  B against A: -50.00 ms (-25.0 %)
      -40.00 ms  attention: no longer writes the score matrix (2.5 GB a step); aten::flash in place
                 of aten::bmm, aten::softmax; 48 kernels fewer
       -9.00 ms  matrix products: 111 TFLOP/s instead of 100 TFLOP/s
       -1.10 ms  GPU waits: 900 kernels to launch instead of 1000
       +0.10 ms  the rest
  memory: -4.25 GiB (-2.00 activations, +2.00 cached unused, -0.01 the rest)
)");
}

TEST(ComparisonText, SmallDifferencesOfMemoryAreOneAndNeedNoBiggerOne) {
  Session session;
  Comparison c = made_comparison(session);
  auto& parts = c.differences[0].parts;
  parts = {{0, 100, 100 + 7 * kMadeMiB}, {1, 100, 100 + 6 * kMadeMiB}};
  c.differences[0].memory = 13 * kMadeMiB;
  EXPECT_THAT(comparison_text(c), HasSubstr("  memory: +0.01 GiB (+0.01 the rest)\n"));
  parts.pop_back();
  c.differences[0].memory = 7 * kMadeMiB;
  EXPECT_THAT(comparison_text(c), HasSubstr("  memory: +0.01 GiB\n"));
}

// 8 MiB are worth a word of their own, a byte less is not; what is left over counts by the same.
TEST(ComparisonText, EightMebibytesAreWorthAWord) {
  Session session;
  Comparison c = made_comparison(session);
  const auto said = [&](std::vector<std::int64_t> differences) {
    auto& parts = c.differences[0].parts;
    parts.clear();
    c.differences[0].memory = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      parts.push_back({i, 100, 100 + differences[i]});
      c.differences[0].memory += differences[i];
    }
    const std::string text = comparison_text(c);
    return text.substr(text.find("  memory: "));
  };
  const std::int64_t eight = 8 * kMadeMiB;
  EXPECT_EQ(said({eight}), "  memory: +0.01 GiB (+0.01 weights)\n");
  EXPECT_EQ(said({-eight}), "  memory: -0.01 GiB (-0.01 weights)\n");
  EXPECT_EQ(said({eight - 1}), "  memory: +0.01 GiB\n");
  EXPECT_EQ(said({eight / 2, eight / 2}), "  memory: +0.01 GiB (+0.01 the rest)\n");
  EXPECT_EQ(said({eight / 2, eight / 2 - 1}), "  memory: +0.01 GiB\n");
  EXPECT_EQ(said({-eight / 2, -eight / 2}), "  memory: -0.01 GiB (-0.01 the rest)\n");
}

TEST(ComparisonText, ARecordingMayNotKnowRatesAndMemory) {
  Session session;
  Comparison c = made_comparison(session);
  c.sides[0].label = "nvidia-made";
  c.sides[1].prediction.memory.source = MemorySource::unknown;
  c.sides[1].prediction.step.samples_per_s = 0, c.sides[1].prediction.step.mfu = 0;
  c.sides[0].fits = false;
  const std::string text = comparison_text(c);
  EXPECT_THAT(text, HasSubstr("  A  nvidia-made\n")) << "the GPU is not said twice";
  EXPECT_THAT(text, HasSubstr("  samples a second             160           -\n"
                              "  MFU                         43 %           -\n"
                              "  energy a sample           2.19 J           -\n"
                              "  memory in use          12.50 GiB     unknown\n"
                              "  fits                          NO           -\n"));
  EXPECT_THAT(text, HasSubstr("  memory: unknown, as a recording says nothing of it\n"));
}

TEST(ComparisonText, PeaksAsRecordedAreOfOnePiece) {
  Session session;
  Comparison c = made_comparison(session);
  c.sides[1].prediction.memory.source = MemorySource::as_recorded;
  EXPECT_THAT(comparison_text(c), HasSubstr("  memory: -4.25 GiB\n"));
}

TEST(ComparisonText, SeveralBoardsDrawTheirPowerTogether) {
  Session session;
  Scenario four;
  four.training.parallel.data = 4;
  Comparison c = made_comparison(session);
  c.sides[1].run = made_side(session, "", four).run;
  EXPECT_THAT(comparison_text(c), HasSubstr("  energy a sample           2.19 J         8 J\n"));
}

TEST(ComparisonJson, HasBothPredictionsAndWhatTellsThemApart) {
  Session session;
  const json out = json(comparison_json(made_comparison(session)));
  ASSERT_EQ(out["scenarios"].size(), 2U);
  EXPECT_EQ(out["scenarios"][0]["label"], "plain");
  EXPECT_EQ(out["scenarios"][0]["hardware"], "nvidia-made");
  EXPECT_EQ(out["scenarios"][1]["label"], "flash");
  EXPECT_EQ(out["scenarios"][1]["step"]["kernel_count"], 900);
  EXPECT_FALSE(out["scenarios"][0].contains("advice"));
  ASSERT_EQ(out["differences"].size(), 1U);
  const json& d = out["differences"][0];
  EXPECT_EQ(d["label"], "flash");
  EXPECT_EQ(d["against"], "plain");
  EXPECT_EQ(d["time_s"], -0.05);
  EXPECT_EQ(d["memory_bytes"], made_gib(-4.25));
  ASSERT_EQ(d["classes"].size(), 4U);
  const json& attention = d["classes"][0];
  EXPECT_EQ(attention["class"], "attention");
  EXPECT_EQ(attention["before_s"], 0.06);
  EXPECT_EQ(attention["after_s"], 0.02);
  EXPECT_NEAR(attention["difference_s"].get<double>(), -0.04, 1e-15);
  EXPECT_NEAR(attention["from_work_s"].get<double>(), -0.031, 1e-15);
  EXPECT_NEAR(attention["from_rate_s"].get<double>(), -0.009, 1e-15);
  EXPECT_EQ(attention["kernels_before"], 72);
  EXPECT_EQ(attention["kernels_after"], 24);
  EXPECT_THAT(attention["reason"].get<std::string>(), HasSubstr("no longer writes the score matrix"));
  EXPECT_EQ(d["classes"][2]["class"], "idle");
  EXPECT_EQ(d["classes"][2]["before_s"], 0.02);
  EXPECT_EQ(d["memory"], (json{{{"part", "activations"},
                                {"before_bytes", made_gib(2.75)},
                                {"after_bytes", made_gib(0.75)},
                                {"difference_bytes", made_gib(-2)}},
                               {{"part", "cached_unused"},
                                {"before_bytes", made_gib(1)},
                                {"after_bytes", made_gib(3)},
                                {"difference_bytes", made_gib(2)}},
                               {{"part", "context"},
                                {"before_bytes", made_gib(1.5)},
                                {"after_bytes", made_gib(1.5) - 4 * kMadeMiB},
                                {"difference_bytes", -4 * kMadeMiB}},
                               {{"part", "weights"},
                                {"before_bytes", made_gib(2)},
                                {"after_bytes", made_gib(2) - 6 * kMadeMiB},
                                {"difference_bytes", -6 * kMadeMiB}}}));
}

TEST(ComparisonJson, MemoryThatARecordingDoesNotTellIsNull) {
  Session session;
  Comparison c = made_comparison(session);
  c.sides[0].prediction.memory.source = MemorySource::unknown;
  EXPECT_TRUE(json(comparison_json(c))["differences"][0]["memory_bytes"].is_null());
}

}  // namespace
}  // namespace ridgeline
