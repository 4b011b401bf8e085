// A timeline parsed back: slices nest, correlation ids join, durations add up to the prediction.
#include "sim/report/timeline/chrome_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/answer/step_run.h"

namespace ridgeline {
namespace {

using nlohmann::json;

struct Written {
  std::shared_ptr<const StepRun> run;
  std::string text;
  json events;
};

Written written(const char* precision, bool graphs = false) {
  ScenarioSource source;
  source.text = std::string(R"({hardware: nvidia-h200-sxm-141gb, model: bert-base, training: {micro_batch: 2,
    sequence_length: 128, precision: )") +
                precision + ", cuda_graphs: " + (graphs ? "true" : "false") + "}}";
  source.text_name = "test";
  static Session session;
  Written out{std::make_shared<const StepRun>(session, load_scenario(source), "analytic"), {}, {}};
  const StepRun& run = *out.run;
  const Scenario& scenario = run.scenario();
  out.text = chrome_trace({.title = scenario.title,
                           .program = run.program(),
                           .times = run.times(),
                           .timeline = run.timeline(),
                           .gpu = scenario.gpu,
                           .host = scenario.host,
                           .cuda_graphs = graphs,
                           .memory = run.memory_run().samples});
  out.events = json::parse(out.text)["traceEvents"];
  return out;
}

std::vector<const json*> of_category(const json& events, const std::set<std::string>& categories) {
  std::vector<const json*> out;
  for (const json& event : events)
    if (event["ph"] == "X" && categories.contains(event["cat"])) out.push_back(&event);
  return out;
}
std::vector<const json*> on_gpu(const json& events) {
  return of_category(events, {"kernel", "gpu_memset", "gpu_memcpy"});
}
std::int64_t nanoseconds(const json& value) { return std::llround(value.get<double>() * 1e3); }

TEST(ChromeTrace, slices_of_a_thread_nest_or_follow_each_other) {
  const Written trace = written("amp-fp16");
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> threads;
  for (const json& event : trace.events) {
    if (event["ph"] != "X") continue;
    const std::int64_t begin = nanoseconds(event["ts"]), duration = nanoseconds(event["dur"]);
    EXPECT_GE(begin, 0);
    EXPECT_GE(duration, 0);
    threads[{event["pid"], event["tid"]}].emplace_back(begin, -duration);
  }
  EXPECT_EQ(threads.size(), 3);
  for (auto& [thread, slices] : threads) {
    std::sort(slices.begin(), slices.end());
    std::vector<std::int64_t> open;
    for (const auto& [begin, minus_duration] : slices) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(begin - minus_duration, open.back());
      }
      open.push_back(begin - minus_duration);
    }
  }
}

TEST(ChromeTrace, kernels_do_not_overlap_and_add_up_to_the_busy_time) {
  const Written trace = written("fp32");
  std::int64_t busy = 0, end = 0;
  const auto kernels = on_gpu(trace.events);
  for (const json* kernel : kernels) {
    EXPECT_GE(nanoseconds((*kernel)["ts"]), end);
    end = nanoseconds((*kernel)["ts"]) + nanoseconds((*kernel)["dur"]);
    busy += nanoseconds((*kernel)["dur"]);
  }
  EXPECT_EQ(static_cast<std::int64_t>(kernels.size()), trace.run->timeline().kernel_count());
  const double rounding = 1e-9 * static_cast<double>(kernels.size());
  EXPECT_NEAR(static_cast<double>(busy) * 1e-9, trace.run->timeline().gpu_busy.value(), rounding);
  // From the end of one step to the end of the next.
  const double first = std::max(0.0, -trace.run->timeline().host_begin.value());
  EXPECT_NEAR(static_cast<double>(end) * 1e-9 - first, trace.run->timeline().step.value(), 2e-9);
}

TEST(ChromeTrace, every_kernel_is_joined_to_one_launch_before_it_by_correlation_and_flow) {
  const Written trace = written("amp-bf16");
  std::map<std::int64_t, const json*> calls;
  for (const json* call : of_category(trace.events, {"cuda_runtime"})) {
    if ((*call)["args"]["correlation"] == 0) continue;
    EXPECT_TRUE(calls.emplace((*call)["args"]["correlation"], call).second);
  }
  std::map<std::int64_t, int> starts, ends;
  for (const json& event : trace.events) {
    if (event["ph"] == "s") ++starts[event["id"]];
    if (event["ph"] == "f") ++ends[event["id"]];
  }
  const auto kernels = on_gpu(trace.events);
  for (const json* kernel : kernels) {
    const std::int64_t id = (*kernel)["args"]["correlation"];
    ASSERT_TRUE(calls.contains(id)) << id;
    EXPECT_LT((*calls[id])["ts"].get<double>(), (*kernel)["ts"].get<double>());
    EXPECT_EQ((*calls[id])["args"]["External id"], (*kernel)["args"]["External id"]);
    EXPECT_EQ(starts[id], 1);
    EXPECT_EQ(ends[id], 1);
  }
  EXPECT_EQ(calls.size(), kernels.size());
}

TEST(ChromeTrace, a_graph_is_one_call_for_all_its_kernels) {
  const Written trace = written("fp32", true);
  EXPECT_EQ(of_category(trace.events, {"cuda_runtime"}).size(), 1);
  const auto kernels = on_gpu(trace.events);
  EXPECT_GT(kernels.size(), 100);
  for (const json* kernel : kernels) EXPECT_EQ((*kernel)["args"]["correlation"], 1);
}

TEST(ChromeTrace, kernels_of_a_graph_lead_to_the_operators_that_it_was_captured_from) {
  const Written trace = written("fp32", true);
  std::set<std::int64_t> operators;
  for (const json* op : of_category(trace.events, {"cpu_op"})) {
    EXPECT_TRUE((*op)["args"].contains("Input Dims")) << (*op)["name"];
    EXPECT_TRUE(operators.insert((*op)["args"]["External id"].get<std::int64_t>()).second);
  }
  std::size_t led = 0;
  const auto kernels = on_gpu(trace.events);
  for (const json* kernel : kernels) led += operators.contains((*kernel)["args"]["External id"].get<std::int64_t>());
  EXPECT_GT(static_cast<double>(led), 0.99 * static_cast<double>(kernels.size()));
}

TEST(ChromeTrace, counters_reach_the_predicted_peak_and_stay_within_the_whole) {
  const Written trace = written("fp32");
  double allocated = 0;
  int utilisations = 0;
  for (const json& event : trace.events) {
    if (event["ph"] != "C") continue;
    if (event["name"] == "memory (MiB)") {
      EXPECT_LE(event["args"]["allocated"].get<double>(), event["args"]["reserved"].get<double>());
      allocated = std::max(allocated, event["args"]["allocated"].get<double>());
    } else {
      ++utilisations;
      for (const auto& [what, value] : event["args"].items()) {
        EXPECT_GE(value.get<double>(), 0.0) << what;
        EXPECT_LE(value.get<double>(), 100.01) << what;
      }
    }
  }
  EXPECT_GT(utilisations, 100);
  EXPECT_GT(allocated, 1250.0);  // 110 million fp32 weights and two states of each
}

TEST(ChromeTrace, the_same_step_is_written_the_same_twice) { EXPECT_EQ(written("fp32").text, written("fp32").text); }

}  // namespace
}  // namespace ridgeline
