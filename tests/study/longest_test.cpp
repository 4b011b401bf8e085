// The longest sequences that fit are the last that do, and a server's cache is what its memory leaves.
#include "sim/study/longest.h"

#include <gtest/gtest.h>

#include "sim/units/user_error.h"

namespace ridgeline::longest_sequences {
namespace {

Scenario asked_to_stretch(const std::string& text) {
  ScenarioSource source;
  source.text = text;
  source.text_name = "test";
  return load_scenario(source);
}

std::int64_t needed_at(Session& session, Scenario scenario, std::int64_t length) {
  scenario.training.sequence_length = length;
  return StepRun(session, scenario, "analytic").memory().needed;
}

constexpr const char* kStretched[] = {
    "hardware: nvidia-rtx-3090\nmodel: llama-3.2-1b\ntraining: {micro_batch: 1, sequence_length: 64, precision: "
    "bf16}\n",
    "hardware: nvidia-rtx-3090\nmodel: qwen2.5-7b\ninference: {sequences: 4, prompt_length: 64, new_tokens: 32}\n",
};

TEST(Longest, TheNextLengthDoesNotFit) {
  for (const char* text : kStretched) {
    SCOPED_TRACE(text);
    Session session;
    const Scenario scenario = asked_to_stretch(text);
    const LongestFit fit = fit_length(session, scenario);
    ASSERT_GT(fit.tokens, 0);
    EXPECT_EQ(fit.tokens % kLengthStep, 0);
    EXPECT_LE(needed_at(session, scenario, fit.tokens), fit.capacity);
    ASSERT_EQ(fit.failing, fit.tokens + kLengthStep);
    EXPECT_GT(needed_at(session, scenario, fit.failing), fit.capacity);
  }
}

TEST(Longest, EndsAtTheTableOfPositions) {
  Session session;
  const LongestFit fit = fit_length(
      session, asked_to_stretch(
                   "hardware: nvidia-h200-sxm-141gb\nmodel: gpt2\ntraining: {micro_batch: 1, sequence_length: 64}\n"));
  EXPECT_EQ(fit.tokens, 1024);
  EXPECT_EQ(fit.failing, 0);
}

TEST(Longest, OfOneLengthIsRefused) {
  Session session;
  EXPECT_THROW(
      fit_length(session,
                 asked_to_stretch("hardware: nvidia-h200-sxm-141gb\nmodel: vit-base\ntraining: {micro_batch: 1}\n")),
      UserError);
}

// 32 layers x 8 heads of 128 numbers, keys and values, two bytes each.
TEST(ServerCache, ATokenOfLlama3Takes128KiB) {
  Session session;
  const Scenario scenario =
      asked_to_stretch("hardware: nvidia-a100-sxm4-80gb\nmodel: llama-3-8b\ninference: {prompt_length: 64}\n");
  EXPECT_EQ(bytes_of_cached_token(scenario), 131072);
  const ServerCache cache = server_cache(session, scenario, {.context = 4096});
  EXPECT_EQ(cache.tokens, cache.blocks * 16);
  EXPECT_LE(cache.context + cache.weights + cache.rest_of_peak + cache.tokens * cache.bytes_of_token, cache.given);
  EXPECT_GT(cache.context + cache.weights + cache.rest_of_peak + (cache.tokens + 16) * cache.bytes_of_token,
            cache.given);
  const ServerCache less = server_cache(session, scenario, {.utilization = 0.5, .context = 4096});
  const double given = 0.4 * static_cast<double>(cache.capacity),
               lost = static_cast<double>(cache.tokens - less.tokens);
  EXPECT_NEAR(lost * 131072.0, given, 32.0 * 131072.0) << "what the server may not use is missing in its cache";
}

TEST(ServerCache, WeightsThatDoNotFitLeaveNoCache) {
  Session session;
  const ServerCache cache = server_cache(
      session, asked_to_stretch("hardware: nvidia-rtx-3090\nmodel: llama-3-70b\ninference: {prompt_length: 64}\n"), {});
  EXPECT_EQ(cache.tokens, 0);
}

}  // namespace
}  // namespace ridgeline::longest_sequences
