// Time and memory by part of the network: nothing is lost, nothing counted twice, and recomputation belongs to the part
// that is run again.
#include "sim/answer/module_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sim/answer/full_prediction.h"
#include "sim/report/text/module_text.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"

namespace ridgeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Scenario scenario_of(const std::string& model, const std::string& training) {
  ScenarioSource source;
  source.text = "{hardware: nvidia-h200-sxm-141gb, model: " + model +
                ", training: {micro_batch: 2, sequence_length: 128, " + training + "}}";
  source.text_name = "test";
  return load_scenario(source);
}

constexpr const char* kGpt2 =
    "{family: gpt2, layers: 3, heads: 4, hidden: 256, vocabulary: 1000, max_positions: 512, dropout: 0.1}";

class ModuleUse : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(ModuleUse, EveryKernelAndByteBelongsToOneModuleOrToNone) {
  const auto& [model, training] = GetParam();
  Session session;
  const StepRun run(session, scenario_of(model, training), "analytic");
  const Prediction p = full_prediction(run, {.advice = false, .memory_of_modules = true});
  const ModuleUses& uses = p.modules;
  ASSERT_FALSE(uses.empty());
  EXPECT_EQ(uses[0].kernels, p.step.kernel_count);
  for (std::size_t phase = 0; phase < kPhases; ++phase)
    EXPECT_NEAR(uses[0].time_by_phase[phase].value(), p.time_by_phase[phase].value(), 1e-12);
  EXPECT_EQ(uses[0].bytes_at_peak, p.memory.peak_allocated);
  // What the network's own passes launch is inside it, but for the script's few operations on the loss.
  const auto own = [&](std::size_t parent) {
    ridgeline::ModuleUse sum;
    for (std::size_t i = 1; i < uses.size(); ++i) {
      if (uses[i].parent != parent) continue;
      sum.kernels += uses[i].kernels;
      sum.bytes_at_peak += uses[i].bytes_at_peak;
      for (std::size_t phase = 0; phase < kPhases; ++phase) sum.time_by_phase[phase] += uses[i].time_by_phase[phase];
    }
    return sum;
  };
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const auto index = static_cast<std::size_t>(phase);
    EXPECT_GT(own(0).time_by_phase[index].value(), 0.95 * uses[0].time_by_phase[index].value());
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const ridgeline::ModuleUse inside = own(i);
    EXPECT_LE(inside.kernels, uses[i].kernels) << path_of(uses, i);
    EXPECT_LE(inside.bytes_at_peak, uses[i].bytes_at_peak) << path_of(uses, i);
    EXPECT_LE(inside.time().value(), uses[i].time().value() * (1 + 1e-9)) << path_of(uses, i);
  }
}

// A module inside itself would be a block that is run again under the one whose gradient asked for it.
TEST_P(ModuleUse, NamesAreThoseOfTheNetwork) {
  const auto& [model, training] = GetParam();
  Session session;
  const StepRun run(session, scenario_of(model, training), "analytic");
  const ModuleUses uses = modules_of(run.trace());
  std::set<std::string> paths;
  for (std::size_t i = 1; i < uses.size(); ++i) {
    EXPECT_LT(uses[i].parent, i);
    const std::string path = path_of(uses, i);
    EXPECT_TRUE(paths.insert(path).second) << path << " is there twice";
    EXPECT_EQ(path.find("layers"), path.rfind("layers")) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Some, ModuleUse,
    ::testing::Combine(::testing::Values(kGpt2, "bert-base",
                                         "{family: llama, layers: 2, heads: 4, key_value_heads: 2, hidden: 256, "
                                         "feed_forward: 512, vocabulary: 1000, max_positions: 512}"),
                       ::testing::Values("precision: fp32", "precision: amp-bf16, activation_checkpointing: block",
                                         "precision: amp-bf16, gradient_accumulation: 6, gradient_clipping: 1.0",
                                         "precision: amp-bf16, compile: true")));

TEST(ModuleUseOfBlocks, EqualBlocksCostTheSame) {
  Session session;
  const StepRun run(session, scenario_of(kGpt2, "precision: fp32"), "analytic");
  const ModuleUses& uses = run.prediction().modules;
  std::vector<const ridgeline::ModuleUse*> blocks;
  for (std::size_t i = 1; i < uses.size(); ++i)
    if (path_of(uses, i).starts_with("layers.") && path_of(uses, i).size() == 8) blocks.push_back(&uses[i]);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1]->kernels, blocks[2]->kernels);
  EXPECT_NEAR(blocks[1]->time().value() / blocks[2]->time().value(), 1.0, 0.02);  // the L2 holds what came before
}

TEST(ModuleUseReports, NumberedModulesAreOneRowInTextAndEachInJson) {
  Session session;
  const StepRun run(session, scenario_of(kGpt2, "precision: fp32"), "analytic");
  const ModuleUses& uses = run.prediction().modules;
  EXPECT_THAT(module_line(uses), HasSubstr("layers "));
  EXPECT_THAT(module_table(uses, 1, false), Not(HasSubstr("all 3")));
  EXPECT_THAT(module_table(uses, 3, false), HasSubstr("all 3"));
  EXPECT_THAT(module_table(uses, 3, true), HasSubstr("at the peak"));
  EXPECT_THAT(module_json(uses, 3, false).dump(), HasSubstr("layers.2.attention"));
  EXPECT_THAT(module_json(uses, 2, false).dump(), Not(HasSubstr("layers.2.attention")));
  EXPECT_THAT(module_table({}, 2, true), HasSubstr("names no modules"));
}

TEST(ModuleUseInFiles, AnOpTraceKeepsItsModules) {
  Session session;
  const StepRun run(session, scenario_of(kGpt2, "precision: amp-bf16"), "analytic");
  const OpTrace& trace = run.trace();
  const OpTrace again = trace::parse_op_trace(trace::op_trace_lines({}, trace), "text").trace;
  ASSERT_EQ(again.modules.size(), trace.modules.size());
  for (std::size_t i = 0; i < trace.modules.size(); ++i) {
    EXPECT_EQ(again.modules[i].name, trace.modules[i].name);
    EXPECT_EQ(again.modules[i].parent, trace.modules[i].parent);
  }
  ASSERT_EQ(again.calls.size(), trace.calls.size());
  for (std::size_t i = 0; i < trace.calls.size(); ++i) EXPECT_EQ(again.calls[i].module, trace.calls[i].module) << i;
  EXPECT_THROW((void)trace::parse_op_trace("{\"ridgeline\":\"op-trace\",\"version\":1,\"parameters\":0}\n"
                                           "{\"record\":\"module\",\"name\":\"a\",\"inside\":1}\n",
                                           "text"),
               std::exception);
}

// What has an encoder has both parts by name; what has one stack has neither.
TEST(ModuleUseOfStacks, EncoderAndDecoderAreNamedWhereThereAreBoth) {
  const auto names = [](const std::string& model) {
    Session session;
    const StepRun run(session, scenario_of(model, "precision: bf16, optimizer: {name: adamw}"), "analytic");
    std::set<std::string> all;
    for (const ModuleName& module : run.trace().modules) all.insert(module.name);
    return all;
  };
  EXPECT_FALSE(names("{family: composed, layers: 2, heads: 4, hidden: 64, feed_forward: 96, vocabulary: 100}")
                   .contains("decoder"));
  const auto both = names("t5-large");
  EXPECT_TRUE(both.contains("decoder") && both.contains("encoder"));
}

}  // namespace
}  // namespace ridgeline
