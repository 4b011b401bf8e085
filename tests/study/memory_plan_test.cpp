// Blocks that are kept, run again or sent to the host under a budget: the choice is one of all choices, within the
// budget where any is, and no slower than the best of them by more than the search may miss.
#include "sim/study/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "sim/report/memory_plan_report.h"
#include "sim/units/user_error.h"

namespace ridgeline::memory_plans {
namespace {

Scenario asked_to_plan(const std::string& text) {
  ScenarioSource source;
  source.text = text;
  source.text_name = "test";
  return load_scenario(source);
}

std::string small_text(int layers) {
  return "hardware: nvidia-h200-sxm-141gb\nmodel: {family: llama, layers: " + std::to_string(layers) +
         ", heads: 8, key_value_heads: 8, hidden: 1024, feed_forward: 2816, vocabulary: 4000}\n"
         "training: {micro_batch: 8, sequence_length: 1024, precision: bf16}\n";
}
Scenario small_network(int layers = 3) { return asked_to_plan(small_text(layers)); }

/// Every choice of one of `options` for each block, the fastest within the budget.
Seconds best_of_all(Session& session, const Scenario& scenario, const std::vector<std::uint8_t>& options,
                    std::int64_t budget) {
  const auto blocks = static_cast<std::size_t>(scenario.model.layers);
  std::size_t count = 1;
  for (std::size_t i = 0; i < blocks; ++i) count *= options.size();
  Seconds best{std::numeric_limits<double>::infinity()};
  for (std::size_t number = 0; number < count; ++number) {
    std::vector<TreatedBlocks> treated;
    for (std::size_t i = 0, rest = number; i < blocks; ++i, rest /= options.size()) {
      const auto block = static_cast<std::int64_t>(i);
      treated.push_back({block, block, options[rest % options.size()]});
    }
    const StepRun run(session, with_treated_blocks(scenario, treated), "analytic");
    if (run.memory().needed <= budget) best = std::min(best, run.timeline().step);
  }
  return best;
}

TEST(MemoryPlan, IsAsFastAsTheBestOfAllChoices) {
  Session session;
  const Scenario scenario = small_network();
  const MemoryPlan kept = plan_memory(session, scenario, std::int64_t{1} << 40, "analytic");
  ASSERT_TRUE(kept.treated.empty());
  const MemoryPlan least = plan_memory(session, scenario, 1, "analytic");
  ASSERT_LT(least.needed, kept.needed);
  const std::vector<std::uint8_t> options{0, static_cast<std::uint8_t>(BlockPart::attention),
                                          static_cast<std::uint8_t>(BlockPart::block),
                                          static_cast<std::uint8_t>(BlockPart::activation)};
  for (const double part : {0.15, 0.4, 0.7, 0.9}) {
    SCOPED_TRACE(part);
    const auto budget =
        least.needed + static_cast<std::int64_t>(part * static_cast<double>(kept.needed - least.needed));
    const MemoryPlan plan = plan_memory(session, scenario, budget, "analytic");
    ASSERT_TRUE(plan.fits);
    EXPECT_LE(plan.needed, budget);
    constexpr double kMissed = 1.01;
    EXPECT_LE(plan.time, kMissed * best_of_all(session, scenario, options, budget));
  }
}

TEST(MemoryPlan, SaysWhatItsKeysGive) {
  Session session;
  const Scenario scenario = small_network();
  const MemoryPlan kept = plan_memory(session, scenario, std::int64_t{1} << 40, "analytic");
  const MemoryPlan plan = plan_memory(session, scenario, kept.needed * 9 / 10, "analytic");
  ASSERT_FALSE(plan.treated.empty());
  ScenarioSource source;
  source.text = small_text(3);
  source.text_name = "test";
  for (const std::string& key : memory_plan_keys(plan)) source.overrides.push_back(config::parse_override(key));
  const StepRun run(session, load_scenario(source), "analytic");
  EXPECT_EQ(run.memory().needed, plan.needed);
  EXPECT_EQ(run.timeline().step, plan.time);
}

TEST(MemoryPlan, MoreMemoryIsNeverSlower) {
  Session session;
  const Scenario scenario = small_network(6);
  const std::int64_t all = plan_memory(session, scenario, std::int64_t{1} << 40, "analytic").needed;
  Seconds before{std::numeric_limits<double>::infinity()};
  for (const double part : {0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
    const MemoryPlan plan =
        plan_memory(session, scenario, static_cast<std::int64_t>(part * static_cast<double>(all)), "analytic");
    if (!plan.fits) continue;
    constexpr double kMissed = 1.005;
    EXPECT_LE(plan.time, kMissed * before) << part;
    before = plan.time;
  }
}

TEST(MemoryPlan, SaysThatABudgetIsTooSmall) {
  Session session;
  const MemoryPlan plan = plan_memory(session, small_network(), 1 << 20, "analytic");
  EXPECT_FALSE(plan.fits);
  EXPECT_LT(plan.needed, plan.needed_before) << "the choice that needs least";
}

TEST(MemoryPlan, IsOfTraining) {
  Session session;
  EXPECT_THROW(
      plan_memory(session,
                  asked_to_plan("hardware: nvidia-h200-sxm-141gb\nmodel: gpt2\ninference: {prompt_length: 64}\n"),
                  1 << 30, "analytic"),
      UserError);
}

}  // namespace
}  // namespace ridgeline::memory_plans
