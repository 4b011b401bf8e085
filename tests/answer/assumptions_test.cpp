// One line for each default whose alternative changes the step's time, and none for what the scenario said itself.
#include "sim/answer/assumptions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/answer/session.h"

namespace ridgeline::assumptions_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Scenario scenario(const std::string& training, const std::string& more = "") {
  return load_scenario(
      {.file = {},
       .text = fmt::format("hardware: nvidia-h200-sxm-141gb\n"
                           "model: {{family: composed, layers: 2, heads: 8, hidden: 512, vocabulary: 2048, "
                           "positions: rotary, norm: rms, feed_forward_kind: gated, feed_forward: 1024, "
                           "experts: 8, experts_per_token: 2, tie_embeddings: false}}\n"
                           "{}training: {{micro_batch: 4, sequence_length: 1024, precision: amp-bf16, "
                           "optimizer: {{name: adamw, implementation: fused}}{}}}\n",
                           more, training),
       .text_name = "assumed.yaml",
       .overrides = {}});
}
std::vector<std::string> lines(const Scenario& s) {
  Session session;
  return assumptions_of(StepRun(session, s, "analytic"));
}

// Autocast leaves the products of experts in fp32 (docs/networks.md).
TEST(Assumptions, tf32_is_said_where_fp32_matmuls_take_long) {
  EXPECT_THAT(lines(scenario("")), Contains(HasSubstr("--set training.tf32=true")));
  EXPECT_THAT(lines(scenario(", tf32: false")), Not(Contains(HasSubstr("tf32"))));
  EXPECT_THAT(lines(scenario(", tf32: true")), Not(Contains(HasSubstr("tf32"))));
}

TEST(Assumptions, what_the_scenario_says_is_not_assumed) {
  EXPECT_THAT(lines(scenario(", attention: sdpa")), Not(Contains(HasSubstr("attention"))));
  EXPECT_THAT(lines(scenario("", "software: pytorch-2.11\n")), Not(Contains(HasSubstr("software"))));
}

// Eager attention over 10,000,000 tokens launches point-wise kernels by the million, for scores of 1.6 PB.
TEST(Assumptions, scores_that_no_memory_holds_are_not_tried) {
  Scenario long_one = scenario("");
  EXPECT_THAT(lines(long_one), Contains(HasSubstr("attention=eager")));
  long_one.training.micro_batch = 1;
  long_one.training.sequence_length = 10'000'000;
  EXPECT_THAT(lines(long_one), Not(Contains(HasSubstr("attention=eager"))));
}

// The line's percentage is that of two predictions.
TEST(Assumptions, a_line_holds_what_the_flag_gives) {
  Session session;
  const StepRun off(session, scenario(", tf32: false"), "analytic"), on(session, scenario(", tf32: true"), "analytic");
  const double less = 100.0 * (1.0 - ratio(on.timeline().step, off.timeline().step));
  ASSERT_GT(less, 5.0);
  EXPECT_THAT(lines(scenario("")), Contains(HasSubstr(fmt::format("takes {:.0f} % less", less))));
}

}  // namespace
}  // namespace ridgeline::assumptions_test
