// The library's answers against what the simulator says inside: every number of a step, every column of the tables,
// every text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ridgeline/ridgeline.h"
#include "sim/answer/full_prediction.h"
#include "sim/answer/step_detail.h"
#include "sim/report/answer_report.h"
#include "sim/report/text/names.h"

namespace ridgeline {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kSmall =
    "{title: a small gpt, hardware: nvidia-a100-sxm4-80gb, model: {family: gpt2, layers: 2, heads: 4, hidden: 128, "
    "vocabulary: 1000, max_positions: 64, dropout: 0.1}, training: {micro_batch: 3, sequence_length: 48, precision: "
    "amp-bf16}}";

Question question(std::vector<std::string> set = {}, const std::string& engine = "analytic") {
  Question asked;
  asked.text = kSmall;
  asked.set = std::move(set);
  asked.engine = engine;
  return asked;
}

/// The same step inside.
struct Inside {
  explicit Inside(const std::string& text, std::string_view engine = "analytic",
                  const Beside& beside = {.advice = false})
      : run(session, scenario_in(text), engine), prediction(full_prediction(run, beside)) {}
  static Scenario scenario_in(const std::string& text) {
    ScenarioSource source;
    source.text = text;
    source.text_name = "text of the question";
    return load_scenario(source);
  }
  Session session;
  StepRun run;
  Prediction prediction;
};

TEST(LibraryAnswer, AStepHasEachOfItsNumbers) {
  for (const char* engine : {"analytic", "roofline"}) {
    const Simulator simulator;
    const Answer answer = simulator.predict(question({}, engine));
    const Inside inside(kSmall, engine);
    const StepPrediction& expected = inside.prediction.step;
    const Step& step = answer.step();
    EXPECT_EQ(answer.title(), "a small gpt");
    EXPECT_EQ(answer.hardware(), inside.prediction.hardware);
    EXPECT_EQ(step.time, expected.time);
    EXPECT_EQ(step.low, expected.low);
    EXPECT_EQ(step.high, expected.high);
    EXPECT_EQ(step.gpu_busy, expected.gpu_busy);
    EXPECT_EQ(step.host_time, expected.host_time);
    EXPECT_EQ(step.kernels, expected.kernel_count);
    EXPECT_EQ(step.samples_per_s, expected.samples_per_s);
    EXPECT_EQ(step.tokens_per_s, expected.tokens_per_s);
    EXPECT_EQ(step.mfu, expected.mfu);
    EXPECT_EQ(step.power, expected.power);
    EXPECT_EQ(step.energy, expected.energy.energy);
    EXPECT_EQ(step.validated, expected.validated);
    EXPECT_LT(step.low, step.time);
    EXPECT_GT(step.high, step.time);
    EXPECT_NEAR(step.tokens_per_s, 48 * step.samples_per_s, 1e-6 * step.tokens_per_s);
    EXPECT_NEAR(step.samples_per_s, 3 / step.time.value(), 1e-6 * step.samples_per_s);
    EXPECT_THAT(answer.notes(), ElementsAreArray(inside.prediction.notes));
  }
}

TEST(LibraryAnswer, MemoryIsInBytes) {
  const Simulator simulator;
  const auto memory_of = [&](const std::string& change) { return simulator.predict(question({change})).memory(); };
  const Memory memory = memory_of("training.micro_batch=3");
  const MemoryPrediction& expected = Inside(kSmall).prediction.memory;
  EXPECT_TRUE(memory.known);
  EXPECT_TRUE(memory.fits);
  EXPECT_EQ(memory.peak_allocated, Bytes{static_cast<double>(expected.peak_allocated)});
  EXPECT_EQ(memory.peak_reserved, Bytes{static_cast<double>(expected.peak_reserved)});
  EXPECT_EQ(memory.device_used, Bytes{static_cast<double>(expected.device_used)});
  EXPECT_EQ(memory.capacity, Bytes{static_cast<double>(expected.capacity)});
  EXPECT_LT(memory.peak_allocated, memory.peak_reserved);
  EXPECT_LT(memory.peak_reserved, memory.device_used);
  EXPECT_LT(memory.device_used, memory.capacity);
  EXPECT_EQ(memory_of("hardware.dram.capacity=100 MB").capacity, Bytes{100e6});
  EXPECT_FALSE(memory_of("hardware.dram.capacity=100 MB").fits);
}

TEST(LibraryAnswer, KernelsAreColumns) {
  const Simulator simulator;
  const Answer answer = simulator.predict(question());
  const KernelTable& table = answer.kernels();
  const Inside inside(kSmall);
  const std::vector<KernelGroup>& expected = inside.prediction.kernels;
  ASSERT_GT(expected.size(), 10u);
  const std::size_t rows = expected.size();
  for (const auto* column : {&table.name, &table.shape, &table.op, &table.limiter}) ASSERT_THAT(*column, SizeIs(rows));
  for (const auto* column :
       {&table.time_s, &table.flops, &table.read_bytes, &table.written_bytes, &table.dram_bytes, &table.l2_bytes})
    ASSERT_THAT(*column, SizeIs(rows));
  ASSERT_THAT(table.count, SizeIs(rows));
  std::int64_t launches = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    SCOPED_TRACE(expected[i].name);
    EXPECT_EQ(table.name[i], expected[i].name);
    EXPECT_EQ(table.shape[i], expected[i].shape);
    EXPECT_EQ(table.op[i], expected[i].op);
    EXPECT_EQ(table.limiter[i], std::string(name_of(expected[i].limiter)));
    EXPECT_EQ(table.count[i], expected[i].count);
    EXPECT_EQ(table.time_s[i], expected[i].time.value());
    EXPECT_EQ(table.flops[i], expected[i].flops);
    EXPECT_EQ(table.read_bytes[i], expected[i].read_bytes);
    EXPECT_EQ(table.written_bytes[i], expected[i].written_bytes);
    EXPECT_EQ(table.dram_bytes[i], expected[i].dram_bytes);
    EXPECT_EQ(table.l2_bytes[i], expected[i].l2_bytes);
    launches += table.count[i];
  }
  EXPECT_EQ(launches, answer.step().kernels);
  EXPECT_TRUE(std::is_sorted(table.time_s.rbegin(), table.time_s.rend())) << "longest first";
  EXPECT_EQ(&answer.kernels(), &table) << "made once";
}

TEST(LibraryAnswer, TheTimelineIsColumns) {
  const Simulator simulator;
  const Answer answer = simulator.predict(question());
  const TimelineTable& table = answer.timeline();
  const Inside inside(kSmall);
  const StepDetail expected = step_detail(inside.run);
  ASSERT_THAT(table.names, SizeIs(expected.kinds.size()));
  ASSERT_THAT(table.shapes, SizeIs(expected.kinds.size()));
  for (std::size_t i = 0; i < expected.kinds.size(); ++i) {
    EXPECT_EQ(table.names[i], expected.kinds[i].name);
    EXPECT_EQ(table.shapes[i], expected.kinds[i].shape);
  }
  const std::size_t rows = expected.spans.size();
  ASSERT_EQ(static_cast<std::int64_t>(rows), answer.step().kernels);
  for (const auto* column : {&table.kind, &table.phase, &table.layer}) ASSERT_THAT(*column, SizeIs(rows));
  for (const auto* column : {&table.issued_s, &table.start_s, &table.end_s}) ASSERT_THAT(*column, SizeIs(rows));
  for (std::size_t i = 0; i < rows; ++i) {
    const LaunchSpan& span = expected.spans[i];
    EXPECT_EQ(table.kind[i], static_cast<std::int32_t>(span.kind));
    EXPECT_EQ(table.phase[i], static_cast<std::int32_t>(span.phase));
    EXPECT_EQ(table.layer[i], span.layer);
    EXPECT_EQ(table.issued_s[i], span.issued.value());
    EXPECT_EQ(table.start_s[i], span.start.value());
    EXPECT_EQ(table.end_s[i], span.end.value());
    EXPECT_LT(table.start_s[i], table.end_s[i]);
  }
  EXPECT_THAT(table.phase, ::testing::IsSupersetOf({1, 2, 4})) << "forward, backward, optimizer";
  EXPECT_THAT(table.layer, ::testing::IsSupersetOf({-1, 0, 1}));
  EXPECT_EQ(&answer.timeline(), &table);
}

TEST(LibraryAnswer, MemoryOverTimeIsColumns) {
  const Simulator simulator;
  const Answer answer = simulator.predict(question());
  const MemoryTable& table = answer.memory_over_time();
  const Inside inside(kSmall);
  const StepDetail expected = step_detail(inside.run);
  ASSERT_GT(expected.memory.size(), 100u);
  ASSERT_THAT(table.at_s, SizeIs(expected.memory.size()));
  ASSERT_THAT(table.allocated, SizeIs(expected.memory.size()));
  ASSERT_THAT(table.reserved, SizeIs(expected.memory.size()));
  for (std::size_t i = 0; i < expected.memory.size(); ++i) {
    EXPECT_EQ(table.at_s[i], expected.memory[i].at.value());
    EXPECT_EQ(table.allocated[i], expected.memory[i].allocated);
    EXPECT_EQ(table.reserved[i], expected.memory[i].reserved);
  }
  const auto most = std::max_element(table.allocated.begin(), table.allocated.end());
  EXPECT_EQ(Bytes{static_cast<double>(*most)}, answer.memory().peak_allocated);
}

TEST(LibraryAnswer, TextsAreThoseOfTheProgram) {
  const Simulator simulator;
  const Answer answer = simulator.predict(question());
  const Inside inside(kSmall);
  EXPECT_EQ(answer.text(), answer_text(inside.run, inside.prediction, Notes::folded, {}));
  nlohmann::ordered_json said = nlohmann::ordered_json::parse(answer.json());
  EXPECT_THAT(said["tool"], StartsWith(std::string("ridgeline ") + version() + ", revision "));
  EXPECT_EQ(said, answer_json(inside.run, inside.prediction, {}, said["tool"]));
  EXPECT_EQ(answer.json(), said.dump(2));
  EXPECT_EQ(answer.chrome_trace(), answer_timeline(inside.run));
  EXPECT_EQ(answer.memory_snapshot(), answer_memory_snapshot(inside.run));
  std::string page;
  try {
    page = answer.html();
  } catch (const Mistake& mistake) {
    EXPECT_THAT(mistake.what(), HasSubstr("npm"));
    return;
  }
  EXPECT_THAT(page, HasSubstr("a small gpt on " + inside.run.scenario().gpu.title));
  EXPECT_THAT(page, HasSubstr(std::string("ridgeline ") + version()));
}

// Advice and sensitivity take other runs: they are there where they were asked for.
TEST(LibraryAnswer, AdviceAndSensitivityAreAskedFor) {
  const Simulator simulator;
  for (const bool advice : {false, true})
    for (const bool sensitivity : {false, true}) {
      Question asked = question({}, "roofline");
      asked.advice = advice;
      asked.sensitivity = sensitivity;
      const Answer answer = simulator.predict(asked);
      const Inside inside(kSmall, "roofline", {.advice = advice, .sensitivity = sensitivity});
      const auto said = nlohmann::ordered_json::parse(answer.json());
      EXPECT_EQ(said, answer_json(inside.run, inside.prediction, {}, said["tool"]));
      const Inside plain(kSmall, "roofline");
      EXPECT_EQ(said == answer_json(plain.run, plain.prediction, {}, said["tool"]), !advice && !sensitivity);
    }
}

// Copies are one answer, and an answer outlives whoever gave it.
TEST(LibraryAnswer, OutlivesItsSimulator) {
  auto simulator = std::make_unique<Simulator>();
  Answer first = simulator->predict(question());
  Answer other = simulator->predict(question({"training.micro_batch=1"}));
  const Answer copy = first;
  EXPECT_EQ(&copy.step(), &first.step());
  simulator.reset();
  EXPECT_EQ(&copy.timeline(), &first.timeline());
  const Step* of_first = &first.step();
  const Answer moved = std::move(first);
  EXPECT_EQ(&moved.step(), of_first);
  other = copy;
  EXPECT_EQ(&other.step(), of_first);
  Answer last = moved;
  last = std::move(other);
  EXPECT_EQ(&last.step(), of_first);
  EXPECT_EQ(last.title(), "a small gpt");
}

}  // namespace
}  // namespace ridgeline
