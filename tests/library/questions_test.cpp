// What the library is asked: files, texts and changes, several at once, sweeps, plans, kernels, recorded memory; and
// what it throws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridgeline/ridgeline.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/report/comparison_report.h"
#include "sim/report/fit_report.h"
#include "sim/report/history_report.h"
#include "sim/report/kernel_lines.h"
#include "sim/report/plan_report.h"
#include "sim/report/sweep_report.h"
#include "sim/study/plan/plan_question.h"
#include "sim/study/plan/plan_search.h"
#include "sim/study/sweep/run_sweep.h"
#include "sim/workload/load_model.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::string kSource = RIDGELINE_SOURCE_DIR;

constexpr const char* kTiny =
    "{hardware: nvidia-a100-sxm4-80gb, model: {family: gpt2, layers: 2, heads: 4, hidden: 128, vocabulary: 1000, "
    "max_positions: 64}, training: {micro_batch: 3, sequence_length: 48, precision: bf16}}";

Question tiny(std::vector<std::string> set = {}, const std::string& engine = "roofline") {
  Question asked;
  asked.text = kTiny;
  asked.set = std::move(set);
  asked.engine = engine;
  return asked;
}
Question of_file(const std::string& file, std::vector<std::string> set = {}) {
  Question asked;
  asked.file = file;
  asked.set = std::move(set);
  asked.engine = "roofline";
  return asked;
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path) << text;
  return path;
}

template <class Ask>
Mistake mistake_of(const Ask& ask) {
  try {
    ask();
  } catch (const Mistake& mistake) {
    return mistake;
  }
  return {"no mistake", "", 0, 0, ""};
}

TEST(LibraryQuestion, AFileATextAndChangesAreOneStep) {
  const Simulator simulator;
  const std::string file = written("tiny.yaml", kTiny);
  const double time = simulator.predict(tiny()).step().time.value();
  EXPECT_EQ(simulator.predict(of_file(file)).step().time.value(), time);
  EXPECT_EQ(simulator.predict(of_file(file, {"training.micro_batch=6"})).step().time,
            simulator.predict(tiny({"training.micro_batch=1", "training.micro_batch=6"})).step().time);
  EXPECT_GT(simulator.predict(tiny({"training.micro_batch=6"})).step().gpu_busy,
            simulator.predict(tiny()).step().gpu_busy);
  Question changes;
  changes.set = {"hardware=nvidia-a100-sxm4-80gb", "model=gpt2", "training.micro_batch=2",
                 "training.sequence_length=64"};
  EXPECT_GT(simulator.predict(changes).step().kernels, 100) << "all of it in changes";
  Question both = of_file(file);
  both.text = kTiny;
  EXPECT_THAT(mistake_of([&] { simulator.predict(both); }).what(),
              HasSubstr("a question has a file or a text, not both"));
}

TEST(LibraryQuestion, ARecordingStandsForItself) {
  const Simulator simulator;
  const std::string file = kSource + "/measurements/h200/traces/nanogpt-char-flash-bf16.json.gz";
  const Answer answer = simulator.predict(of_file(file, {"hardware=nvidia-h200-sxm-141gb"}));
  EXPECT_GT(answer.step().kernels, 100);
  EXPECT_FALSE(answer.memory().known) << "a profile says nothing of memory";
  EXPECT_TRUE(answer.memory_over_time().at_s.empty());
}

TEST(LibraryQuestion, AMistakeHasItsPlace) {
  const Simulator simulator;
  const std::string file =
      written("mistaken.yaml", "hardware: nvidia-t4\nmodel: bert-base\ntraining:\n  micro_bach: 3\n");
  const Mistake in_file = mistake_of([&] { simulator.predict(of_file(file)); });
  EXPECT_EQ(in_file.file(), file);
  EXPECT_EQ(in_file.line(), 4);
  EXPECT_EQ(in_file.column(), 3);
  EXPECT_EQ(in_file.key(), "training.micro_bach");
  EXPECT_THAT(in_file.what(), HasSubstr(file + ":4:3"));
  Question wrong;
  wrong.text = "{hardware: nvidia-t4,\n model: bert-base, trainin: {micro_batch: 2}}";
  const Mistake in_text = mistake_of([&] { simulator.predict(wrong); });
  EXPECT_EQ(in_text.file(), "text of the question");
  EXPECT_EQ(in_text.line(), 2);
  EXPECT_EQ(in_text.key(), "trainin");
  const Mistake changed = mistake_of([&] { simulator.predict(tiny({"hardware.dram.bandwith=4 TB/s"})); });
  EXPECT_EQ(changed.file(), "--set hardware.dram.bandwith=4 TB/s");
  EXPECT_EQ(changed.line(), 0);
  EXPECT_EQ(changed.column(), 0);
  EXPECT_EQ(changed.key(), "dram.bandwith");
  const Mistake nowhere = mistake_of([&] { simulator.predict(tiny({}, "by guess")); });
  EXPECT_EQ(nowhere.file() + nowhere.key(), "");
  EXPECT_EQ(nowhere.line() + nowhere.column(), 0);
  EXPECT_THAT(nowhere.what(), HasSubstr("by guess"));
  EXPECT_NE(std::string(mistake_of([&] { simulator.predict(tiny({"nothing"})); }).what()), "no mistake");
}

TEST(LibraryQuestion, WhoIsToldToStopThrowsThat) {
  const Simulator simulator;
  std::stop_source stop;
  EXPECT_GT(simulator.predict(tiny(), stop.get_token()).step().kernels, 0);
  stop.request_stop();
  try {
    simulator.predict(tiny(), stop.get_token());
    ADD_FAILURE() << "it did not stop";
  } catch (const Stopped& stopped) {
    EXPECT_STREQ(stopped.what(), "stopped");
  }
}

// Whatever is called, and whatever part of an answer is made: nobody gets half of it.
TEST(LibraryQuestion, EveryCallOfAStoppedThreadThrows) {
  const Simulator simulator;
  const Answer answer = simulator.predict(tiny());
  const std::string sweep = temporary_path("stopped.yaml");
  std::ofstream(sweep) << "scenario: " << kTiny << "\naxes: {training.micro_batch: [1, 2, 3]}\n";
  std::stop_source stop;
  stop.request_stop();
  {
    const UntilStopped until(stop.get_token());
    const std::vector<Question> two{tiny(), tiny()};
    EXPECT_THROW((void)simulator.predict(tiny({"training.micro_batch=5"})), Stopped);
    EXPECT_THROW((void)simulator.compare(two, {}), Stopped);
    EXPECT_THROW((void)simulator.fit(tiny()), Stopped);
    EXPECT_THROW((void)simulator.sweep(sweep), Stopped);
    EXPECT_THROW((void)simulator.plan(tiny(), std::vector<std::int64_t>{2}, 4), Stopped);
    EXPECT_THROW((void)answer.timeline(), Stopped);
  }
  EXPECT_FALSE(answer.timeline().start_s.empty()) << "what was stopped is made when it is asked for again";
  EXPECT_FALSE(simulator.sweep(sweep).empty());
}

/// Two questions inside.
std::string compared(const std::vector<std::string>& labels, std::string_view engine) {
  std::vector<Scenario> scenarios;
  for (const char* batch : {"3", "6"}) {
    ScenarioSource source;
    source.text = kTiny;
    source.text_name = "text of the question";
    source.overrides = {{"training.micro_batch", batch, ""}};
    scenarios.push_back(load_scenario(source));
  }
  Session session;
  return comparison_json(compare(session, scenarios, labels, engine)).dump(2);
}

TEST(LibraryQuestion, SidesAreComparedUnderTheirLabels) {
  const Simulator simulator;
  for (const char* engine : {"roofline", "analytic"}) {
    const std::vector<Question> two{tiny({"training.micro_batch=3"}, engine), tiny({"training.micro_batch=6"}, engine)};
    const std::vector<std::string> labels{"three", "six"};
    EXPECT_EQ(simulator.compare(two, labels), compared(labels, engine));
    const std::string title = simulator.predict(two[0]).title() + " on " + load_gpu("nvidia-a100-sxm4-80gb", {}).title;
    EXPECT_EQ(simulator.compare(two, {}), compared({title, title}, engine));
    EXPECT_THAT(mistake_of([&] { (void)simulator.compare(two, std::vector<std::string>{"one"}); }).what(),
                HasSubstr("a comparison has a label for each question, or none"));
    EXPECT_NE(std::string(mistake_of([&] { (void)simulator.compare({}, {}); }).what()), "no mistake");
  }
}

TEST(LibraryQuestion, TheLargestMicroBatchIsFound) {
  const Simulator simulator;
  ScenarioSource source;
  source.text = kTiny;
  source.overrides = {{"hardware.dram.capacity", "2 GB", ""}};
  Session session;
  const std::string expected = fit_json(fit_batch(session, load_scenario(source), "roofline"), Seconds{}).dump(2);
  EXPECT_EQ(simulator.fit(tiny({"hardware.dram.capacity=2 GB"})), expected);
  EXPECT_GT(json::parse(expected)["micro_batch"], 3);
}

TEST(LibraryQuestion, ASweepIsThatOfItsFile) {
  const Simulator simulator;
  const auto file = [](const std::string& axis) {
    return written("sweep.yaml", "scenario: " + std::string(kTiny) + "\naxes:\n  " + axis + "\ngoal: fastest\n");
  };
  const std::string good = file("training.micro_batch: [1, 2, 5]");
  const Sweep sweep = load_sweep(good);
  const std::string expected = sweep_json(sweep, run_sweep(sweep, sweep.points(), {})).dump(2);
  EXPECT_EQ(simulator.sweep(good), expected);
  EXPECT_EQ(simulator.sweep(good, 1), expected);
  EXPECT_EQ(json::parse(expected)["points"].size(), 3u);
  EXPECT_THAT(mistake_of([&] { (void)simulator.sweep(file("training.micro_bach: [1, 2]")); }).what(),
              HasSubstr("micro_bach"));
}

TEST(LibraryQuestion, APlanIsThatOfTheStudy) {
  const Simulator simulator;
  const std::vector<std::string> narrow{"training.parallel.pipeline=1", "training.activation_checkpointing=none"};
  const auto expected = [&](std::vector<std::int64_t> gpus, std::optional<std::int64_t> batch) {
    PlanRequest request;
    request.source.text = kTiny;
    request.source.text_name = "text of the question";
    request.source.overrides = {{"training.parallel.pipeline", "1", ""},
                                {"training.activation_checkpointing", "none", ""}};
    request.gpus = std::move(gpus);
    request.batch = batch;
    request.engine = "roofline";
    Session session;
    const PlanQuestion question = plan_question(request, session, 0);
    Ranks alone;
    const PlanSearch search = search_plan(question, session, alone, {});
    return json(plan_json(question, search, answer_plan(question, search, session, 0)));
  };
  EXPECT_EQ(json::parse(simulator.plan(tiny(narrow), std::vector<std::int64_t>{1})), expected({1}, {}));
  EXPECT_EQ(json::parse(simulator.plan(tiny(narrow), std::vector<std::int64_t>{2, 1}, 8, 2)), expected({1, 2}, 8));
  EXPECT_THAT(mistake_of([&] { (void)simulator.plan(tiny(), std::vector<std::int64_t>{0}); }).what(),
              HasSubstr("expected 1 to"));
  EXPECT_NE(std::string(mistake_of([&] {
                          (void)simulator.plan(tiny({"hardware.dram.capacity=1 MB", "training.parallel.pipeline=1"}),
                                               std::vector<std::int64_t>{1});
                        }).what()),
            "no mistake")
      << "nothing fits";
}

// A line of JSON each, blank ones left out, whether the last one ends or not; mistakes stand in their place.
TEST(LibraryQuestion, KernelCasesAreAnsweredLineByLine) {
  const Simulator simulator;
  const std::string product =
                        R"({"op": "mm", "dtype": "bf16", "params": {"m": 256, "n": 128, "k": 64, "layout": "nt"}})",
                    softmax = R"({"op": "softmax", "dtype": "fp32", "params": {"rows": 64, "cols": 128}})",
                    wrong = R"({"op": "no such op"})";
  const KernelLines lines(load_gpu("nvidia-a100-sxm4-80gb", {}), load_software("pytorch-2.11"), "analytic", {});
  const auto expected = [&](const std::vector<std::string>& cases) {
    std::string text;
    for (const std::string& one : cases) text += lines.answer(one).text + "\n";
    return text;
  };
  const std::string gpu = "nvidia-a100-sxm4-80gb";
  EXPECT_EQ(simulator.kernels("", gpu), "");
  EXPECT_EQ(simulator.kernels("\n \n\t\r\n", gpu), "");
  EXPECT_EQ(simulator.kernels(product, gpu), expected({product}));
  EXPECT_EQ(simulator.kernels(product + "\n", gpu), expected({product}));
  EXPECT_EQ(simulator.kernels(product + "\n\n" + wrong + "\n" + softmax, gpu), expected({product, wrong, softmax}));
  EXPECT_THAT(simulator.kernels(wrong, gpu), HasSubstr("error"));
  const KernelLines changed(load_gpu("nvidia-a100-sxm4-80gb", {{"dram.bandwidth", "1 TB/s", ""}}),
                            load_software("pytorch-2.0"), "roofline", {.changed_hardware = true, .timeline = {}});
  EXPECT_EQ(
      simulator.kernels(softmax, gpu, std::vector<std::string>{"dram.bandwidth=1 TB/s"}, "roofline", "pytorch-2.0"),
      changed.answer(softmax).text + "\n");
  EXPECT_THAT(mistake_of([&] { (void)simulator.kernels(product, "nvidia-a1000"); }).what(), HasSubstr("nvidia-a1000"));
  EXPECT_THAT(mistake_of([&] { (void)simulator.kernels(product, gpu, {}, "by guess"); }).what(), HasSubstr("by guess"));
}

TEST(LibraryQuestion, RecordedMemoryRunsThroughTheAllocator) {
  const Simulator simulator;
  const std::string file = kSource + "/tests/allocator/pickles/snapshot-4.pickle";
  EXPECT_EQ(simulator.memory(file), history_json({file, "", ""}).dump(2));
  EXPECT_EQ(simulator.memory(file, "expandable_segments:True", "24 GiB"),
            history_json({file, "expandable_segments:True", "24 GiB"}).dump(2));
  EXPECT_NE(simulator.memory(file, "expandable_segments:True"), simulator.memory(file));
  EXPECT_NE(std::string(mistake_of([&] { (void)simulator.memory("no such file"); }).what()), "no mistake");
}

TEST(LibraryQuestion, NamesAreThoseOfTheShippedFiles) {
  const Simulator simulator;
  EXPECT_THAT(simulator.hardware(), ElementsAreArray(hardware_names()));
  EXPECT_THAT(simulator.models(), ElementsAreArray(model_names()));
  EXPECT_THAT(simulator.hardware(), Contains("nvidia-rtx-3090"));
  EXPECT_THAT(simulator.models(), Contains("bert-large"));
  std::ifstream file(kSource + "/CMakeLists.txt");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr(std::string("VERSION ") + version()));
}

}  // namespace
}  // namespace ridgeline
