// Our own timelines read as PyTorch's traces are: replayed on the same GPU they are understood and predict the same;
// and their names are those that PyTorch's profiler recorded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/answer/replay.h"
#include "sim/report/answer_report.h"
#include "sim/report/timeline/chrome_trace.h"
#include "sim/trace/json_pieces.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;

struct Question {
  std::string model, precision, optimizer, more;
  double tolerance = 0.01;  ///< of the GPU's busy time
  int micro_batch = 4;      ///< of 512 tokens; from 3072 tokens on the gradient of an embedding is sorted
};

void PrintTo(const Question& q, std::ostream* out) {
  *out << q.model << " " << q.precision << " " << q.optimizer << q.more;
}

class TimelineReplay : public testing::TestWithParam<Question> {
 protected:
  std::filesystem::path file_ = temporary_path("timeline.json");
  void TearDown() override { std::filesystem::remove(file_); }

  Scenario scenario() const {
    const Question& q = GetParam();
    ScenarioSource source;
    source.text = "{hardware: nvidia-h200-sxm-141gb, model: " + q.model +
                  ", training: {micro_batch: " + std::to_string(q.micro_batch) +
                  ", sequence_length: 512, precision: " + q.precision +
                  ", optimizer: {name: adamw, implementation: " + q.optimizer + "}" + q.more + "}}";
    source.text_name = "test";
    return load_scenario(source);
  }
  void write(const Scenario& scenario) const {
    Session session;
    const StepRun run(session, scenario, "analytic");
    std::ofstream(file_) << chrome_trace({.title = scenario.title,
                                          .program = run.program(),
                                          .times = run.times(),
                                          .timeline = run.timeline(),
                                          .gpu = scenario.gpu,
                                          .host = scenario.host,
                                          .cuda_graphs = scenario.cuda_graphs,
                                          .memory = {},
                                          .optimizer = "AdamW",
                                          .cuda = scenario.software.cuda});
  }
  /// Leaves of operations what PyTorch's profiler records: their names and arguments.
  void forget_operations() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    std::string trace = text.str();
    for (std::size_t at = 0; (at = trace.find("\"Op\":", at)) != trace.npos; at += 5) trace.replace(at, 5, "\"No\":");
    std::ofstream(file_) << trace;
  }
};

TEST_P(TimelineReplay, IsTheStepThatItIsOf) {
  const Scenario ours = scenario();
  write(ours);
  ScenarioSource source;
  source.file = file_.string();
  const ReplayResult replay = predict_replay(load_scenario(source), "analytic");
  const Prediction prediction = predict(ours, "analytic");
  const double step = prediction.step.time.value();
  EXPECT_EQ(replay.prediction.hardware, ours.gpu.name) << "where none is asked for, that of the timeline";
  EXPECT_NEAR(replay.prediction.step.time.value(), step, 1e-3 * step);
  EXPECT_NEAR(replay.measured.step, step, 1e-3 * step);
}

TEST_P(TimelineReplay, OnTheSameGpuItIsUnderstoodAndTakesAsLong) {
  const Scenario ours = scenario();
  write(ours);
  forget_operations();  // as PyTorch's traces, which name calls alone
  ScenarioSource source;
  source.file = file_.string();
  source.overrides = {{"hardware", "nvidia-h200-sxm-141gb", ""}};
  const Scenario recorded = load_scenario(source);
  const ReplayResult replay = predict_replay(recorded, "analytic");
  const Prediction prediction = predict(ours, "analytic");
  const double busy = prediction.step.gpu_busy.value();
  EXPECT_NEAR(replay.measured.busy, busy, 1e-3 * busy);
  EXPECT_NEAR(replay.prediction.step.gpu_busy.value(), busy, GetParam().tolerance * busy);
  EXPECT_EQ(replay.measured.kernels, prediction.step.kernel_count);
  if (GetParam().more.find("compile") == std::string::npos) {
    EXPECT_GE(replay.coverage.of_calls(), 0.99);
    EXPECT_GE(replay.coverage.of_gpu_time(), 0.99);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, TimelineReplay,
    testing::Values(Question{"gpt2", "fp32", "foreach", ""}, Question{"gpt2", "amp-bf16", "fused", ""},
                    Question{"gpt2", "amp-bf16", "foreach", "", 0.01, 16},
                    Question{"gpt2", "amp-bf16", "foreach", ", attention: flash"},
                    Question{"bert-large", "fp32", "foreach", ""}, Question{"bert-large", "amp-bf16", "fused", ""},
                    Question{"llama-7b", "bf16", "fused", ""},
                    // Kernels of torch.compile are carried over, and what they leave in the L2 is not known.
                    Question{"gpt2", "amp-bf16", "fused", ", attention: flash, compile: true", 0.03},
                    Question{"gpt2", "amp-bf16", "foreach", "", 0.02, 1},  // waits for its host
                    Question{"gpt2", "amp-bf16", "fused", ", cuda_graphs: true", 0.02}));

class ClusterReplay : public TimelineReplay {
 protected:
  static Prediction replayed(const std::string& file, const std::string& cluster, const std::string& rate = "") {
    ScenarioSource source;
    source.file = file;
    source.overrides = {{"cluster", cluster, ""}};
    if (!rate.empty()) source.overrides.push_back({"cluster.links.rate", rate, ""});
    return predict_replay(load_scenario(source), "analytic").prediction;
  }
};

// Buckets of gradients exchanged beside the backward pass, in a recording that knows nothing but kernels and calls.
TEST_P(ClusterReplay, ExchangesWhatWasRecordedOverTheClustersLinks) {
  ScenarioSource source;
  source.text =
      "{cluster: h200-x4, model: gpt2, training: {micro_batch: 8, sequence_length: 512, precision: amp-bf16, "
      "optimizer: {name: adamw, implementation: fused}, parallel: {data: 4}}}";
  source.text_name = "test";
  const Scenario ours = load_scenario(source);
  write(ours);
  const Prediction asked = predict(ours, "analytic"), same = replayed(file_.string(), "h200-x4"),
                   slow = replayed(file_.string(), "h200-x4", "1 GB/s");
  ASSERT_TRUE(same.parallel.has_value());
  EXPECT_EQ(same.parallel->gpus, 4);
  const auto all_reduces = [](const Prediction& p) {
    std::int64_t bytes = 0;
    for (const CommunicationUse& use : p.parallel->communication)
      if (use.kind == CollectiveKind::all_reduce) bytes += use.bytes;
    return bytes;
  };
  EXPECT_EQ(all_reduces(same), all_reduces(asked));
  EXPECT_GT(same.parallel->efficiency, slow.parallel->efficiency);
  EXPECT_LE(same.parallel->efficiency, 1.0);
  EXPECT_NEAR(same.step.time.value(), asked.step.time.value(), 0.05 * asked.step.time.value());
  EXPECT_GT(slow.step.time.value(), 1.2 * same.step.time.value());
  ScenarioSource small;
  small.file = file_.string();
  small.overrides = {{"cluster", "h200-x2", ""}};
  EXPECT_THROW(predict_replay(load_scenario(small), "analytic"), UserError);
}

INSTANTIATE_TEST_SUITE_P(Ddp, ClusterReplay, testing::Values(Question{"gpt2", "amp-bf16", "fused", ""}));

/// Steps of several GPUs, whose streams wait for each other.
class TimelineOfSeveral : public testing::TestWithParam<const char*> {};

TEST_P(TimelineOfSeveral, IsTheStepThatItIsOf) {
  ScenarioSource source;
  source.text = GetParam();
  source.text_name = "test";
  Session session;
  const StepRun run(session, load_scenario(source), "analytic");
  const std::string file = temporary_path("several.json");
  std::ofstream(file) << answer_timeline(run);
  ScenarioSource recorded;
  recorded.file = file;
  recorded.overrides = {{"cluster", "hgx-h200", ""}};
  const ReplayResult replay = predict_replay(load_scenario(recorded), "analytic");
  const double step = run.prediction().step.time.value();
  EXPECT_NEAR(replay.prediction.step.time.value(), step, 1e-3 * step);
}

#define RIDGELINE_TEST_LLAMA                                                                                         \
  "{cluster: hgx-h200, model: {family: llama, code: plain, layers: 4, heads: 16, key_value_heads: 8, hidden: 1024, " \
  "feed_forward: 2816, vocabulary: 32000}, training: {micro_batch: 2, sequence_length: 2048, precision: "
INSTANTIATE_TEST_SUITE_P(Ways, TimelineOfSeveral,
                         testing::Values(RIDGELINE_TEST_LLAMA "amp-bf16, parallel: {data: 8, strategy: ddp}}}",
                                         RIDGELINE_TEST_LLAMA "amp-bf16, parallel: {data: 8, strategy: zero1}}}",
                                         RIDGELINE_TEST_LLAMA
                                         "fp32, parallel: {data: 8, strategy: fsdp, parameter_type: bf16}}}",
                                         RIDGELINE_TEST_LLAMA "bf16, parallel: {tensor: 8}}}",
                                         RIDGELINE_TEST_LLAMA "bf16, parallel: {context: 8}}}"));

std::set<std::string> names_of(const std::string& file) {
  const std::string path = std::string(RIDGELINE_SOURCE_DIR) + "/measurements/h200/" + file;
  trace::JsonPieces pieces(path);
  trace::JsonPiece piece;
  std::set<std::string> names;
  while (pieces.next(piece)) {
    if (piece.key != "traceEvents") continue;
    const json event = json::parse(piece.text, nullptr, false);
    if (event.is_object() && event.value("ph", "") == "X")
      names.insert(event.value("cat", "") + " " + event.value("name", ""));
  }
  return names;
}

class TimelineOfOtherSoftware : public TimelineReplay {};

TEST_P(TimelineOfOtherSoftware, IsReplayedWithTheReleaseWhoseToolkitItNames) {
  write(scenario());
  ScenarioSource source;
  source.file = file_.string();
  source.overrides = {{"hardware", "nvidia-h200-sxm-141gb", ""}};
  EXPECT_EQ(load_scenario(source).software.cuda, 12.1);
}

INSTANTIATE_TEST_SUITE_P(Releases, TimelineOfOtherSoftware,
                         testing::Values(Question{"gpt2", "amp-bf16", "fused",
                                                  "}, software: pytorch-2.1, allocator: {expandable_segments: false"}));

class TimelineNames : public TimelineReplay {};

// The rest are the names of matrix products, whose tiles cuBLAS chooses, and of kernels that were not recorded.
TEST_P(TimelineNames, AreThoseThatPyTorchRecorded) {
  std::set<std::string> recorded;
  for (const char* file :
       {"traces/gpt2-b16-bf16-flash.json.gz", "traces/gpt2-b16-bf16.json.gz", "traces/gpt2-b16-fp32-flash.json.gz",
        "traces/bert-large-b4-fp32.json.gz", "traces/bert-large-b4-bf16amp-sdpa-trace.json.gz",
        "traces/bert-large-b4-fp16amp.json.gz", "traces/resnet50-b32-fp32.json.gz",
        "foreign/distilbert-b32-bf16-shapes.json.gz", "more/traces/llama-b4-bf16amp-sdpa.json.gz"})
    recorded.merge(names_of(file));
  write(scenario());
  const json written = json::parse(std::ifstream(file_));
  std::set<std::string> operators, kernels;
  for (const json& event : written["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::string cat = event["cat"], name = event["name"];
    if (cat == "cpu_op" || cat == "cuda_runtime") operators.insert(cat + " " + name);
    if (cat == "kernel" && name.find("gemm") == name.npos && name.find("nvjet") == name.npos)
      kernels.insert(cat + " " + name);
  }
  const auto known = [&](const std::set<std::string>& names) {
    std::size_t count = 0;
    std::string others;
    for (const std::string& name : names) {
      if (recorded.contains(name)) ++count;
      else others += "\n  " + name;
    }
    RecordProperty("unknown", others);
    return std::pair{static_cast<double>(count) / static_cast<double>(names.size()), others};
  };
  const auto [of_operators, other_operators] = known(operators);
  const auto [of_kernels, other_kernels] = known(kernels);
  EXPECT_GE(of_operators, 0.95) << other_operators;
  EXPECT_GE(of_kernels, 0.8) << other_kernels;
}

INSTANTIATE_TEST_SUITE_P(Models, TimelineNames,
                         testing::Values(Question{"gpt2", "amp-bf16", "foreach", ""},
                                         Question{"gpt2", "amp-bf16", "fused", ", attention: sdpa"},
                                         Question{"bert-large", "fp32", "foreach", ""}));

}  // namespace
}  // namespace ridgeline
