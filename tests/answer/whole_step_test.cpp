// Pictures and traces show the whole step: every micro-batch and every rank, busy as long as the prediction says.
#include "sim/answer/whole_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/answer/step_detail.h"
#include "sim/report/answer_report.h"
#include "sim/report/page/page_data.h"
#include "sim/scenario/scenario.h"

namespace ridgeline {
namespace {

using nlohmann::json;

Scenario described(const std::string& name, const std::vector<config::Override>& changes) {
  ScenarioSource source;
  source.file = std::string(RIDGELINE_SOURCE_DIR) + "/scenarios/" + name;
  source.overrides = changes;
  return load_scenario(source);
}

double union_of(std::vector<std::pair<double, double>> spans) {
  std::sort(spans.begin(), spans.end());
  double total = 0.0, end = -1e300;
  for (const auto& [from, to] : spans) total += std::max(0.0, to - std::max(from, end)), end = std::max(end, to);
  return total;
}

/// Seconds from begin to end of what runs on a GPU; of one of its streams where it is given.
std::vector<std::pair<double, double>> kernels_of(const json& trace, int process = 0, int stream = -1) {
  std::vector<std::pair<double, double>> spans;
  for (const json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X" || event.at("pid") != process) continue;
    if (stream >= 0 && event.at("tid") != stream) continue;
    const std::string category = event.at("cat");
    if (category != "kernel" && category != "gpu_memset" && category != "gpu_memcpy") continue;
    const double at = event.at("ts").get<double>();
    spans.emplace_back(1e-6 * at, 1e-6 * (at + event.at("dur").get<double>()));
  }
  return spans;
}

/// The kernels of a page, with the copies that it draws.
std::vector<std::pair<double, double>> kernels_of_page(const StepDetail& detail, const Gpu& gpu) {
  const json spans = json(page_pieces(detail, gpu, {})).at("spans");
  std::vector<std::pair<double, double>> all;
  const auto add = [&](std::size_t i, double shift) {
    const double at = spans["start_us"][i].get<double>() + shift;
    all.emplace_back(1e-6 * at, 1e-6 * (at + spans["duration_us"][i].get<double>()));
  };
  for (std::size_t i = 0; i < spans["start_us"].size(); ++i) add(i, 0.0);
  for (std::size_t c = 0; c < spans["copies"]["begin"].size(); ++c)
    for (std::size_t i = spans["copies"]["begin"][c]; i < spans["copies"]["end"][c]; ++i)
      add(i, spans["copies"]["shift_us"][c].get<double>());
  return all;
}

void expect_whole(const std::string& name, const std::vector<config::Override>& changes) {
  constexpr double kNear = 1e-3;
  Session session;
  const StepRun run(session, described(name, changes), "analytic");
  const double busy = run.timeline().gpu_busy.value();
  const auto kernels = static_cast<std::size_t>(run.timeline().kernel_count());
  std::string what = name;
  for (const config::Override& change : changes) what += " " + change.key + "=" + change.value;
  const auto traced = kernels_of(json::parse(answer_timeline(run)));
  EXPECT_EQ(traced.size(), kernels) << what;
  EXPECT_NEAR(union_of(traced), busy, kNear * busy) << what;
  const StepDetail detail = step_detail(run, false);
  const auto drawn = kernels_of_page(detail, run.scenario().gpu);
  EXPECT_EQ(drawn.size(), kernels) << what;
  EXPECT_NEAR(union_of(drawn), busy, kNear * busy) << what;
  EXPECT_EQ(every_span(detail).size(), kernels) << what;
}

TEST(WholeStep, ShowsEveryMicroBatch) {
  for (const char* accumulation : {"8", "9", "33", "64"}) {
    const std::vector<config::Override> changes = {{"model.layers", "2", ""},
                                                   {"training.gradient_accumulation", accumulation, ""}};
    expect_whole("bert-large-fp32-accumulation.yaml", changes);
    expect_whole("several-gpus/gpt2-ddp-4-h200.yaml", changes);
  }
}

// Beyond 256 rounds a pipeline is not played: those that were stand for them.
TEST(WholeStep, ShowsEveryMicroBatchOfAPipeline) {
  for (const char* stages : {"2", "4"})
    for (const char* accumulation : {"8", "40", "300"})
      expect_whole("several-gpus/gpt2-xl-pipeline-4-h200.yaml", {{"model.layers", "4", ""},
                                                                 {"training.parallel.pipeline", stages, ""},
                                                                 {"training.gradient_accumulation", accumulation, ""}});
}

TEST(WholeStep, ShowsEveryRankOfAPipeline) {
  Session session;
  const StepRun run(session, described("several-gpus/gpt2-xl-pipeline-4-h200.yaml", {{"model.layers", "8", ""}}),
                    "analytic");
  const json trace = json::parse(answer_timeline(run));
  const PipelineTimeline& all = run.pipeline()->timeline();
  constexpr int kFirst = 100, kDefault = 7;
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
    if (rank == all.shown_rank) continue;
    const double busy = all.ranks[rank].busy.value();
    EXPECT_NEAR(union_of(kernels_of(trace, kFirst + static_cast<int>(rank), kDefault)), busy, 1e-3 * busy) << rank;
  }
}

// The written-out step is that which is held, to rounding.
TEST(WholeStep, TakesAsLongAsTheStepThatIsHeld) {
  Session session;
  const StepRun run(session,
                    described("bert-large-fp32-accumulation.yaml",
                              {{"model.layers", "2", ""}, {"training.gradient_accumulation", "24", ""}}),
                    "analytic");
  const std::optional<WholeStep> whole = whole_step(run);
  ASSERT_TRUE(whole);
  EXPECT_NEAR(whole->timeline.step.value(), run.timeline().step.value(), 1e-9);
  EXPECT_EQ(whole->step.program.repeat_of_steady_step().times, 1);
  EXPECT_GT(whole->memory.size(), run.memory_run().samples.size());
}

// Activations of each of 24 micro-batches rise and fall.
TEST(WholeStep, ShowsTheMemoryOfEveryMicroBatch) {
  Session session;
  const StepRun run(session,
                    described("bert-large-fp32-accumulation.yaml",
                              {{"model.layers", "2", ""}, {"training.gradient_accumulation", "24", ""}}),
                    "analytic");
  const auto activations = static_cast<std::size_t>(Category::activations);
  std::int64_t most = 0;
  const StepDetail detail = step_detail(run);
  for (const MemoryPoint& point : detail.memory) most = std::max(most, point.bytes[activations]);
  int rises = 0;
  bool high = false;
  for (const MemoryPoint& point : detail.memory) {
    if (!high && point.bytes[activations] > most * 9 / 10) high = true, ++rises;
    if (high && point.bytes[activations] < most / 2) high = false;
  }
  EXPECT_EQ(rises, 24);
}

TEST(WholeStep, IsWrittenOnceWhereThatIsAsked) {
  Session session;
  const StepRun run(session,
                    described("bert-large-fp32-accumulation.yaml",
                              {{"model.layers", "2", ""}, {"training.gradient_accumulation", "24", ""}}),
                    "analytic");
  const std::string once = answer_timeline(run, Unrolled::no);
  EXPECT_EQ(kernels_of(json::parse(once)).size(), run.times().size());
  EXPECT_NE(once.find("further micro-batches as this one"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline
