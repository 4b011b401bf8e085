// The picture of one kernel case, lines of cases, and what numbers of an answer are found by.
#include "sim/report/timeline/kernel_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/config/parse_yaml.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/report/exercise_measures.h"
#include "sim/report/json/question_json.h"
#include "sim/report/kernel_lines.h"
#include "sim/timing/kernel_profile.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Two launches of 4 and 6 us; of the second a simulation saw two stretches, of 1 and of 5 us.
TEST(KernelTimeline, LaunchesFollowEachOtherAndSamplesLieInThem) {
  KernelPrediction p;
  p.launches.resize(2), p.times.resize(2);
  p.launches[0].name = "first", p.launches[1].name = "second", p.launches[1].grid = {7, 3, 2};
  p.times[0].time = microseconds(4), p.times[1].time = microseconds(6), p.times[1].limiter = Limiter::dram;
  auto profile = std::make_shared<KernelProfile>();
  profile->samples = {{1e-6, 0.5, 0.75, 0.25, 3e12, 1e12}, {6e-6, 0.4, 0.7, 0.3, 2e12, 5e11}};
  p.times[1].profile = profile;
  const json events = json::parse(kernel_timeline(p))["traceEvents"];
  ASSERT_EQ(events.size(), 2U + 2 * 3 + 3);
  EXPECT_EQ(events[0]["name"], "first");
  EXPECT_EQ(events[0]["ts"], 0.0);
  EXPECT_NEAR(events[1]["ts"].get<double>(), 4, 1e-9);
  EXPECT_NEAR(events[1]["dur"].get<double>(), 6, 1e-9);
  EXPECT_EQ(events[1]["args"]["limited by"], "dram");
  EXPECT_EQ(events[1]["args"]["grid"], json({7, 3, 2}));
  EXPECT_EQ(events[2]["args"], (json{{"warps", 50.0}, {"SMs at work", 75.0}}));
  EXPECT_EQ(events[3]["args"], (json{{"hits", 25.0}}));
  EXPECT_NEAR(events[4]["args"]["read"].get<double>(), 3000, 1e-9);
  EXPECT_NEAR(events[4]["args"]["write"].get<double>(), 1000, 1e-9);
  EXPECT_NEAR(events[2]["ts"].get<double>(), 4, 1e-9) << "a sample holds from the end of the one before";
  EXPECT_NEAR(events[5]["ts"].get<double>(), 5, 1e-9);
  EXPECT_NEAR(events[8]["ts"].get<double>(), 10, 1e-9) << "counters end with the last kernel";
  EXPECT_TRUE(events[8]["args"].empty());
}

KernelLines lines_of(bool KernelLineOptions::*asked = nullptr) {
  KernelLineOptions options;
  if (asked != nullptr) options.*asked = true;
  return {load_gpu("nvidia-t4"), load_software("pytorch-2.11"), "analytic", std::move(options)};
}
constexpr const char* kSoftmax = R"({"op":"softmax","dtype":"fp32","params":{"rows":64,"cols":128},"id":7})";

TEST(KernelLines, AnAnswerKeepsItsLine) {
  const auto answer = lines_of().answer(kSoftmax);
  EXPECT_FALSE(answer.mistake);
  const json told = json::parse(answer.text);
  EXPECT_EQ(told["id"], 7);
  EXPECT_GT(told["predicted"]["time_us"], 0.0);
  EXPECT_FALSE(told["predicted"].contains("hardware_changed") || told["predicted"].contains("sensitivity"));
  EXPECT_EQ(json::parse(
                lines_of(&KernelLineOptions::changed_hardware).answer(kSoftmax).text)["predicted"]["hardware_changed"],
            true);
  EXPECT_TRUE(json::parse(lines_of(&KernelLineOptions::sensitivity).answer(kSoftmax).text)["predicted"].contains(
      "sensitivity"));
}

TEST(KernelLines, TextIsAskedFor) {
  const auto answer = lines_of(&KernelLineOptions::text).answer(kSoftmax);
  EXPECT_FALSE(answer.mistake);
  EXPECT_THAT(answer.text, ::testing::StartsWith(kSoftmax));
  EXPECT_THAT(answer.text, HasSubstr(" blocks of "));
}

TEST(KernelLines, AMistakeIsToldOnItsLine) {
  const auto unknown = lines_of().answer(R"({"op":"no such op","id":9})");
  EXPECT_TRUE(unknown.mistake);
  EXPECT_EQ(json::parse(unknown.text)["id"], 9);
  EXPECT_THAT(json::parse(unknown.text)["error"].get<std::string>(), HasSubstr("no such op"));
  const auto none = lines_of().answer("no JSON");
  EXPECT_TRUE(none.mistake);
  EXPECT_EQ(json::parse(none.text)["line"], "no JSON");
  EXPECT_THAT(json::parse(none.text)["error"].get<std::string>(), HasSubstr("not a JSON object"));
}

double found(const json& value, const std::string& path) { return number_at(value, path); }

TEST(NumberAt, FollowsKeysAndAddsUpLists) {
  const json value{{"a", {{"b", 3}}},
                   {"yes", true},
                   {"list", {{{"kind", "x"}, {"n", 1}}, {{"kind", "y"}, {"n", 10}}, {{"kind", "x"}, {"n", 100}}}}};
  EXPECT_EQ(found(value, "a.b"), 3);
  EXPECT_EQ(found(value, "yes"), 1);
  EXPECT_EQ(found(value, "list.n"), 111);
  EXPECT_EQ(found(value, "list[kind=x].n"), 101);
  EXPECT_EQ(found(value, "list[kind=z].n"), 0);
  EXPECT_EQ(found(value, "list[other=x].n"), 0);
  for (const char* path : {"a", "b", "a.c", "list[kind].n", "list[kind=x.n", "a.b.c"})
    EXPECT_THROW((void)found(value, path), UserError) << path;
}

config::Node scalar(const char* text) {
  config::Node node;
  node.kind = config::Node::Kind::scalar, node.scalar = text;
  return node;
}

TEST(QuestionJson, AScalarIsWhatYamlMeans) {
  EXPECT_EQ(json(tree_json(scalar("true"))), json(true));
  EXPECT_EQ(json(tree_json(scalar("false"))), json(false));
  EXPECT_EQ(json(tree_json(scalar("12"))), json(12));
  EXPECT_TRUE(json(tree_json(scalar("12"))).is_number_integer());
  EXPECT_EQ(json(tree_json(scalar("1e-3"))), json(0.001));
  EXPECT_EQ(json(tree_json(scalar("24 GiB"))), json("24 GiB"));
  EXPECT_EQ(json(tree_json(scalar("nan"))), json("nan")) << "a name, for all that is known";
  EXPECT_EQ(json(tree_json(scalar("inf"))), json("inf"));
}

TEST(QuestionJson, NumbersAreThoseThatAreOneToTheirEnd) {
  for (const auto& [text, value] : std::initializer_list<std::pair<const char*, json>>{{"0", 0},
                                                                                       {"-7", -7},
                                                                                       {"12x", "12x"},
                                                                                       {"1.5", 1.5},
                                                                                       {"1.5x", "1.5x"},
                                                                                       {"x1", "x1"},
                                                                                       {"", ""},
                                                                                       {"True", "True"},
                                                                                       {"1e999", "1e999"}})
    EXPECT_EQ(json(tree_json(scalar(text))), value) << text;
}

TEST(QuestionJson, ListsAndMappingsKeepTheirOrder) {
  const config::Node tree = config::parse_yaml("{b: [1, x, [2.5, {}]], a: {c: true, d: null}, e: []}", "test");
  EXPECT_EQ(tree_json(tree).dump(), R"({"b":[1,"x",[2.5,{}]],"a":{"c":true,"d":null},"e":[]})");
}

// Every file that decides the answer, by its place in the data folder.
TEST(QuestionJson, AQuestionNamesWhatItWasAskedOfAndItsFiles) {
  ScenarioSource source;
  source.text =
      "{title: t, hardware: nvidia-t4, host: default, software: pytorch-2.11, model: gpt2, training: {micro_batch: 3, "
      "sequence_length: 5}}";
  source.text_name = "test";
  source.overrides = {config::parse_override("training.micro_batch=7"), config::parse_override("hardware.sm.count=41")};
  const Scenario scenario = load_scenario(source);
  json told = json(question_json(scenario, "roofline"));
  std::set<std::string> files;
  for (const json& one : told["files"]) {
    files.insert(one["path"]);
    EXPECT_EQ(one["fnv1a64"].get<std::string>().size(), 16U) << one;
  }
  EXPECT_EQ(files.size(), told["files"].size());
  for (const char* file : {"hw/nvidia-t4.yaml", "hw/residuals.json", "models/gpt2.yaml"})
    EXPECT_TRUE(files.contains(file)) << file;
  const auto holds = [&](const char* what) {
    return std::any_of(files.begin(), files.end(), [&](const std::string& f) { return f.find(what) != f.npos; });
  };
  EXPECT_TRUE(holds("pytorch-2.11")) << told["files"];
  EXPECT_TRUE(holds("host")) << told["files"];
  told.erase("files");
  EXPECT_EQ(told, (json{{"scenario",
                         {{"title", "t"},
                          {"hardware", "nvidia-t4"},
                          {"host", "default"},
                          {"software", "pytorch-2.11"},
                          {"model", "gpt2"},
                          {"training", {{"micro_batch", 7}, {"sequence_length", 5}}}}},
                        {"changes", {"training.micro_batch=7", "hardware.sm.count=41"}},
                        {"engine", "roofline"},
                        {"datasheet_only", false},
                        {"hardware", "nvidia-t4"},
                        {"software", "pytorch-2.11"},
                        {"host", "default"}}));
  EXPECT_TRUE(question_json({}, "analytic").is_null()) << "nobody asked";
}

TEST(QuestionJson, AScenarioOfAFileNamesItsFile) {
  ScenarioSource source;
  source.file = RIDGELINE_SOURCE_DIR "/scenarios/bert-large-fp32.yaml";
  const json told = json(question_json(load_scenario(source), "analytic"));
  std::set<std::string> files;
  for (const json& one : told["files"]) files.insert(one["path"]);
  EXPECT_TRUE(files.contains("scenarios/bert-large-fp32.yaml")) << told["files"];
}

TEST(QuestionJson, WhatWasMeasuredIsInBaseUnits) {
  Scenario s;
  EXPECT_TRUE(json(measured_json(s)).is_null());
  s.measured.step_time = Seconds{0.16}, s.measured.samples_per_s = 200;
  s.measured.peak_allocated = Bytes{8}, s.measured.peak_reserved = Bytes{9}, s.measured.device_used = Bytes{10};
  EXPECT_TRUE(json(measured_json(s)).is_null()) << "nobody says where from";
  s.measured.source = "a log";
  EXPECT_EQ(json(measured_json(s)), (json{{"step_time_s", 0.16},
                                          {"samples_per_s", 200.0},
                                          {"peak_allocated_bytes", 8.0},
                                          {"peak_reserved_bytes", 9.0},
                                          {"device_used_bytes", 10.0},
                                          {"source", "a log"}}));
}

}  // namespace
}  // namespace ridgeline
