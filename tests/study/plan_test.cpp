// A plan's search against predicting everything: the same answers to the bit, bounds that are bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>
#include <tuple>

#include "sim/study/plan/plan_base.h"
#include "sim/study/plan/plan_question.h"
#include "sim/study/plan/plan_search.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;

PlanRequest request(const std::string& text, std::vector<std::int64_t> gpus) {
  PlanRequest result;
  result.source.text = text;
  result.source.text_name = "question";
  result.gpus = std::move(gpus);
  return result;
}

PlanSearch searched(const PlanRequest& asked, bool exhaustive, int threads = 2, std::vector<SweepPoint> known = {},
                    std::vector<SweepPoint>* predicted = nullptr) {
  Session session;
  const PlanQuestion question = plan_question(asked, session, threads);
  Ranks alone;
  PlanSearchOptions options{.threads = threads};
  options.exhaustive = exhaustive;
  options.known = std::move(known);
  options.on_points = [&](std::span<const SweepPoint> points) {
    if (predicted != nullptr) predicted->insert(predicted->end(), points.begin(), points.end());
  };
  return search_plan(question, session, alone, options);
}

void expect_equal(const PlanSearch& a, const PlanSearch& b) {
  EXPECT_EQ(a.best, b.best);
  EXPECT_EQ(a.front, b.front);
  for (const auto* list : {&a.best, &a.front})
    for (const std::size_t i : *list) {
      EXPECT_EQ(a.entries[i].time, b.entries[i].time) << i;
      EXPECT_EQ(a.entries[i].memory, b.entries[i].memory) << i;
    }
}

constexpr const char* kTinyGpt =
    "{{hardware: {}, model: {{family: gpt2, layers: {}, heads: 4, hidden: 256, vocabulary: 4000, max_positions: 256}}, "
    "training: {{micro_batch: {}, sequence_length: 128, precision: {}, optimizer: {{name: {}}}}}}}";
constexpr const char* kTinyLlama =
    "{{hardware: {}, model: {{family: llama, code: plain, layers: {}, heads: 8, hidden: 512, feed_forward: 1024, "
    "vocabulary: 8000}}, training: {{micro_batch: {}, sequence_length: 256, precision: {}}}}}";

constexpr const char* kTinyExperts =
    "{hardware: nvidia-h100-sxm5-80gb, model: {family: composed, layers: 2, heads: 4, hidden: 256, feed_forward: 512, "
    "vocabulary: 4000, positions: rotary, norm: rms, feed_forward_kind: gated, activation: silu, qkv_bias: false, "
    "output_bias: false, feed_forward_bias: false, experts: 4}, "
    "training: {micro_batch: 8, sequence_length: 128, precision: bf16}}";

class PlanOfSmallSpaces : public ::testing::TestWithParam<PlanRequest> {};

TEST_P(PlanOfSmallSpaces, is_that_of_predicting_everything_and_bounds_are_bounds) {
  const PlanSearch all = searched(GetParam(), true), quick = searched(GetParam(), false);
  ASSERT_FALSE(all.best.empty());
  expect_equal(quick, all);
  EXPECT_LE(quick.predictions, all.predictions);
  std::size_t checked = 0, no_room = 0;
  for (const PlanEntry& entry : all.entries) {
    if (entry.fate == PlanFate::predicted || entry.fate == PlanFate::no_room) {
      EXPECT_LE(entry.candidate.least_memory, entry.memory)
          << split_words(entry.candidate) << "; " << step_words(entry.candidate);
      ++checked;
    }
    no_room += entry.fate == PlanFate::no_room;
    if (entry.fate != PlanFate::predicted) continue;
    EXPECT_LE(entry.candidate.least_time, entry.time)
        << split_words(entry.candidate) << "; " << step_words(entry.candidate);
  }
  EXPECT_GT(checked, 10u);
  if (!GetParam().source.overrides.empty() && GetParam().source.overrides.front().key == "hardware.dram.capacity") {
    EXPECT_GT(no_room, 0u);
  }
}

std::vector<PlanRequest> small_spaces() {
  std::vector<PlanRequest> spaces{
      request(fmt::format(kTinyGpt, "nvidia-h200-sxm-141gb", 4, 8, "amp-bf16", "adamw"), {4}),
      request(fmt::format(kTinyLlama, "nvidia-a100-sxm4-80gb", 4, 8, "bf16", "adamw"), {4}),
      request(fmt::format(kTinyGpt, "nvidia-rtx-3090", 3, 12, "fp32", "adam"), {2}),
      request(fmt::format(kTinyLlama, "nvidia-h100-sxm5-80gb", 2, 4, "amp-bf16", "sgd"), {2, 4})};
  // Little memory: some do not fit, and the least of them decides.
  spaces.push_back(request(fmt::format(kTinyLlama, "nvidia-a100-sxm4-80gb", 4, 8, "fp32", "adamw"), {4}));
  spaces.back().source.overrides = {{"hardware.dram.capacity", "2.0 GB", ""}};
  spaces.push_back(request(fmt::format(kTinyGpt, "nvidia-a100-sxm4-80gb", 4, 8, "amp-fp16", "adamw"), {4}));
  spaces.back().source.overrides = {{"training.parallel.framework", "megatron", ""}};
  spaces.push_back(request(fmt::format(kTinyLlama, "nvidia-h100-sxm5-80gb", 4, 8, "bf16", "adamw"), {4}));
  spaces.back().source.overrides = {{"training.parallel.context", "2", ""}};
  spaces.push_back(request(kTinyExperts, {4}));
  return spaces;
}

INSTANTIATE_TEST_SUITE_P(Spaces, PlanOfSmallSpaces, ::testing::ValuesIn(small_spaces()));

const PlanRequest& tiny() {
  static const PlanRequest result =
      request(fmt::format(kTinyLlama, "nvidia-h200-sxm-141gb", 2, 4, "bf16", "adamw"), {2});
  return result;
}

TEST(Plan, is_the_same_on_any_number_of_threads_and_after_an_interruption) {
  std::vector<SweepPoint> points;
  const PlanSearch one = searched(tiny(), false, 1, {}, &points);
  expect_equal(searched(tiny(), false, 3), one);
  std::sort(points.begin(), points.end(), [](const SweepPoint& a, const SweepPoint& b) { return a.index < b.index; });
  std::vector<SweepPoint> half, again;
  for (std::size_t i = 0; i < points.size(); i += 2) half.push_back(points[i]);
  expect_equal(searched(tiny(), false, 2, half, &again), one);
  EXPECT_EQ(again.size(), points.size() - half.size());
}

TEST(Plan, keeps_the_batch_and_the_number_of_gpus) {
  const PlanSearch found = searched(tiny(), false);
  std::set<std::string> strategies, schedules;
  for (const PlanEntry& entry : found.entries) {
    const PlanCandidate& c = entry.candidate;
    strategies.insert(c.strategy);
    schedules.insert(c.schedule);
    EXPECT_EQ(c.data * c.tensor * c.pipeline * c.context, 2);
    if (entry.fate != PlanFate::refused) {
      EXPECT_EQ(c.data * c.micro_batch * c.accumulation, 4);
    }
  }
  for (const char* name : {"ddp", "zero1", "zero2", "fsdp"}) EXPECT_TRUE(strategies.contains(name)) << name;
  for (const char* name : {"gpipe", "1f1b", "zb1p"}) EXPECT_TRUE(schedules.contains(name)) << name;
}

// PyTorch's DTensor, which is meant where nothing is said, splits none of these.
TEST(Plan, splits_layers_by_hand_where_dtensor_does_not) {
  for (const std::string& text :
       {fmt::format(kTinyGpt, "nvidia-h200-sxm-141gb", 2, 8, "bf16", "adamw"),
        std::string("{hardware: nvidia-h100-sxm5-80gb, model: {family: composed, layers: 2, heads: 4, hidden: 256, "
                    "vocabulary: 4000, positions: rotary}, training: {micro_batch: 8, sequence_length: 128, precision: "
                    "bf16}}")}) {
    std::set<std::int64_t> tried;
    for (const PlanEntry& entry : searched(request(text, {4}), false).entries)
      if (entry.fate != PlanFate::refused && entry.candidate.tensor_style == "by-hand")
        tried.insert(entry.candidate.tensor);
    EXPECT_EQ(tried, (std::set<std::int64_t>{2, 4})) << text;
  }
}

TEST(Plan, keeps_what_the_command_line_says) {
  PlanRequest asked = tiny();
  asked.source.overrides = {{"training.parallel.tensor", "2", ""}, {"training.activation_checkpointing", "block", ""}};
  for (const PlanEntry& entry : searched(asked, false).entries) {
    if (entry.fate == PlanFate::refused) continue;
    EXPECT_EQ(entry.candidate.tensor, 2);
    EXPECT_EQ(entry.candidate.recompute, "block");
  }
}

TEST(Plan, of_a_model_that_is_too_large_names_the_way_that_needs_least) {
  PlanRequest asked = tiny();
  asked.source.overrides = {{"hardware.dram.capacity", "1.0 GB", ""}};
  const PlanSearch quick = searched(asked, false), all = searched(asked, true);
  ASSERT_TRUE(quick.best.empty());
  ASSERT_TRUE(quick.nearest && all.nearest);
  EXPECT_EQ(quick.entries[*quick.nearest].memory, all.entries[*all.nearest].memory);
}

std::string mistake_of(const PlanRequest& asked) {
  try {
    Descriptions descriptions;
    (void)plan_base(asked, descriptions);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Plan, mistakes_are_told_with_what_would_do) {
  const std::string good = fmt::format(kTinyGpt, "nvidia-h200-sxm-141gb", 2, 8, "bf16", "adamw");
  EXPECT_EQ(mistake_of(request(good, {8})), "none");
  EXPECT_THAT(mistake_of(request(good, {0})), HasSubstr("--gpus 0: expected 1 to"));
  EXPECT_THAT(mistake_of(request(good, {})), HasSubstr("on how many GPUs"));
  EXPECT_THAT(mistake_of(request(good, {12})), HasSubstr("hgx-h200 has 8 a node; 8 or 16?"));
  EXPECT_THAT(mistake_of(request(fmt::format(kTinyGpt, "nvidia-rtx-3090", 2, 8, "bf16", "adamw"), {8})),
              HasSubstr("no NICs"));
  EXPECT_THAT(mistake_of(request(fmt::format(kTinyGpt, "nvidia-l4", 2, 8, "bf16", "adamw"), {2})),
              HasSubstr("no machine of hw/clusters has the GPU nvidia-l4"));
  EXPECT_THAT(mistake_of(request("{model: gpt2, hardware: nvidia-t4, training: {sequence_length: 128}}", {2})),
              HasSubstr("how many sequences does a step have? --batch N"));
  EXPECT_THAT(mistake_of(request("{model: gpt2, training: {micro_batch: 2, sequence_length: 128}}", {2})),
              HasSubstr("on which GPUs?"));
  EXPECT_THAT(mistake_of(request("{model: gpt2, hardware: nvidia-t4, inference: {prompt_length: 8}}", {2})),
              HasSubstr("plan is about training"));
}

TEST(Plan, shows_no_way_twice) {
  for (const PlanRequest& asked : {request(fmt::format(kTinyGpt, "nvidia-h200-sxm-141gb", 4, 8, "bf16", "adamw"), {4}),
                                   request(fmt::format(kTinyLlama, "nvidia-a100-sxm4-80gb", 4, 8, "bf16"), {2})}) {
    const PlanSearch found = searched(asked, true);
    std::set<std::tuple<double, std::int64_t, std::string, std::string>> seen;
    for (const std::size_t i : found.best) {
      const PlanEntry& entry = found.entries[i];
      PlanCandidate c = entry.candidate;
      c.strategy.clear();  // another name for what is predicted alike is no other way
      EXPECT_TRUE(seen.emplace(entry.time.value(), entry.memory, split_words(c), step_words(c)).second)
          << split_words(entry.candidate) << "; " << step_words(entry.candidate);
    }
  }
}

}  // namespace
}  // namespace ridgeline
