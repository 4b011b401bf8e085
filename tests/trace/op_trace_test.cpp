// A written op trace reads back as the same run; a broken one is refused with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "sim/answer/memory_prediction.h"
#include "sim/input/text_source.h"
#include "sim/output/write_file.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/op_trace/write_op_trace.h"
#include "sim/trace/trace_builder.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {
namespace {

OpTrace small_run() {
  ScenarioSource source;
  source.overrides = {{"hardware", "nvidia-h200-sxm-141gb", ""},
                      {"model", "nanogpt-char", ""},
                      {"training.micro_batch", "4", ""},
                      {"training.sequence_length", "64", ""},
                      {"training.precision", "amp-fp16", ""}};
  return std::move(*make_scenario_program(load_scenario(source)).trace);
}

TEST(OpTraceFile, ReadsBackAsTheSameRunRecordForRecord) {
  const OpTrace run = small_run();
  const std::string text = op_trace_lines({.producer = "test", .title = "a \"small\" run", .samples = 4}, run);
  const Recording back = parse_op_trace(text, "memory");
  EXPECT_EQ(back.info.title, "a \"small\" run");
  EXPECT_EQ(back.trace.model_flops, run.model_flops);
  EXPECT_EQ(back.trace.notes, run.notes);
  ASSERT_EQ(back.trace.records.size(), run.records.size());
  ASSERT_EQ(back.trace.calls.size(), run.calls.size());
  ASSERT_EQ(back.trace.steps.size(), run.steps.size());
  for (std::size_t i = 0; i < run.records.size(); ++i) {
    ASSERT_EQ(back.trace.records[i].kind, run.records[i].kind) << i;
    ASSERT_EQ(back.trace.records[i].host_class, run.records[i].host_class) << i;
    ASSERT_EQ(back.trace.records[i].index, run.records[i].index) << i;
  }
  for (std::size_t i = 0; i < run.calls.size(); ++i)
    ASSERT_TRUE(back.trace.ops[back.trace.calls[i].op] == run.ops[run.calls[i].op]) << i;
  ASSERT_EQ(back.trace.operands.size(), run.operands.size());
  for (std::size_t i = 0; i < run.operands.size(); ++i) {
    ASSERT_EQ(back.trace.operands[i].storage, run.operands[i].storage) << i;
    ASSERT_EQ(back.trace.operands[i].bytes, run.operands[i].bytes) << i;
  }
  EXPECT_EQ(op_trace_lines(back.info, back.trace), text);
}

// torch's safe softmax is several kernels whose intermediate results the recording does not name.
TEST(OpTraceFile, WhatTheRecordingDoesNotAllocateIsNotAllocatedWhereItIsReadAgain) {
  const std::string text =
      R"({"ridgeline":"op-trace","version":1,"producer":"x","title":"t","samples":1,"tokens":1,"parameters":1,"model_flops":1,"notes":[]}
{"record":"storage","id":0,"bytes":8192,"category":"inputs"}
{"record":"storage","id":1,"bytes":8192,"category":"activations"}
{"record":"step"}
{"record":"aten","name":"aten::_safe_softmax","phase":"forward","in":[{"type":"fp32","sizes":[4,512],"storage":0},-1],"out":[{"type":"fp32","sizes":[4,512],"storage":1}]}
{"record":"end"}
)";
  const Recording read = parse_op_trace(text, "memory");
  const auto allocations = [](const OpTrace& trace) {
    return std::count_if(trace.records.begin(), trace.records.end(),
                         [](const Record& record) { return record.kind == Record::Kind::allocate; });
  };
  ASSERT_EQ(allocations(read.trace), 2);
  ASSERT_GT(read.trace.storages.size(), 2u);
  const std::string written = op_trace_lines(read.info, read.trace);
  const Recording again = parse_op_trace(written, "memory");
  EXPECT_EQ(allocations(again.trace), 2);
  EXPECT_EQ(op_trace_lines(again.info, again.trace), written);
}

// Two launches of a damaged recording may lie three hundred thousand years apart.
TEST(TraceBuilder, HostWorkOfOneRecordIsAnHourAtMost) {
  Replayable replayable;
  TraceBuilder builder(replayable);
  for (const double seconds : {1e13, 1e300, std::numeric_limits<double>::infinity(), -1e300, 2e-6})
    builder.host_time(seconds);
  std::vector<std::uint32_t> microseconds;
  for (const Record& record : replayable.recording.trace.records) microseconds.push_back(record.index);
  EXPECT_THAT(microseconds, ::testing::ElementsAre(4'000'000'000, 4'000'000'000, 4'000'000'000, 2));
}

TEST(OpTraceFile, ComesBackFromGzipAndSaysWhereATruncatedOneEnds) {
  const std::string text = op_trace_lines({.producer = "test"}, small_run());
  const std::string path = temporary_path("run.jsonl.gz");
  write_file(path, text);
  EXPECT_EQ(read_text(path), text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  try {
    read_op_trace(path);
    FAIL() << "half a file was read";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("ends too early"));
  }
}

TEST(OpTraceFile, IsRefusedWithTheLineOfTheMistake) {
  const std::string header = R"({"ridgeline":"op-trace","version":1,"parameters":0})"
                             "\n";
  const std::string kExchange =
      R"({"record":"op","id":0,"kind":"collective","collective":"all_gather","group":"shard","type":"bf16",)";
  const std::pair<std::string, const char*> cases[] = {
      {"", "f:1: the file is empty"},
      {"{\"a\":1}\n", "f:1: not an op trace"},
      {"{\"ridgeline\":\"op-trace\",\"version\":7,\"parameters\":0}\n", "version 7"},
      {header + "{\"record\":\"storage\",\"id\":0,\"bytes\":-4,\"category\":\"weights\"}\n",
       "f:2: \"bytes\" must be 0"},
      {header + "{\"record\":\"storage\",\"id\":0,\"bytes\":NaN,\"category\":\"weights\"}\n",
       "f:2: not a line of JSON"},
      {header + "{\"record\":\"storage\",\"id\":0,\"bytes\":1,\"category\":\"weight\"}\n", "did you mean weights"},
      {header + "{\"record\":\"free\",\"id\":3}\n", "storage 3 is freed but not alive"},
      {header + "{\"record\":\"allocate\",\"id\":0}\n", "storage 0 is allocated but has no line above"},
      {header + "{\"record\":\"storage\",\"id\":0,\"bytes\":1,\"category\":\"weights\"}\n" +
           "{\"record\":\"allocate\",\"id\":0}\n",
       "f:3: storage 0 is allocated but alive"},
      {header + kExchange + "\"ranks\":0,\"bytes\":8}\n", "f:2: \"ranks\" must be 1 to"},
      {header + "{\"record\":\"op\",\"id\":0,\"kind\":\"all_gather\"}\n", "unknown kind \"all_gather\""},
      {R"({"ridgeline":"op-trace","version":1,"parameters":0,"parallel":{"tensor":0}})", "\"tensor\" must be 1 to"},
      {header + "{\"record\":\"call\",\"op\":0}\n", "op 0 is called but not described"},
      {header + "{\"record\":\"step\"}\n", "ends inside a step"},
      {header, "has no step"},
  };
  for (const auto& [text, fragment] : cases) {
    try {
      parse_op_trace(text, "f");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(fragment));
    }
  }
}

TEST(OpTraceFile, NamesWhatIsExchangedOverHowManyRanksAndWhichStoragesLieInOthers) {
  OpTrace run;
  run.ops = {Collective{CollectiveKind::all_gather, GroupKind::shard, DType::bf16, 8, 4096}};
  run.storages = {{512, Category::weights}, {4096, Category::temporaries}, {64, Category::weights}};
  run.operands = {{0, 512}, {1, 4096}};
  run.calls = {{.op = 0, .operands_begin = 0, .inputs = 1, .outputs = 1}};
  // The first storage is never allocated, the last one is before the second.
  run.records = {{Record::Kind::allocate, HostClass::other, 0, 2},
                 {Record::Kind::allocate, HostClass::other, 0, 1},
                 {Record::Kind::op, HostClass::other, 0, 0}};
  run.steps = {{1, 3}};
  ParallelDescription ranks;
  ranks.data = 8;
  ranks.tensor = 2;
  const std::string text = op_trace_lines({.producer = "test", .ranks = ranks}, run);
  const Recording back = parse_op_trace(text, "memory");
  EXPECT_EQ(std::get<Collective>(back.trace.ops[0]), std::get<Collective>(run.ops[0]));
  EXPECT_EQ(back.info.ranks.data, 8);
  EXPECT_EQ(back.info.ranks.tensor, 2);
  EXPECT_TRUE(back.info.ranks.shards_parameters());
  ASSERT_EQ(back.trace.records.size(), run.records.size());
  for (std::size_t i = 0; i < run.records.size(); ++i) {
    EXPECT_EQ(back.trace.records[i].kind, run.records[i].kind) << i;
    EXPECT_EQ(back.trace.records[i].index, run.records[i].index) << i;
  }
  EXPECT_EQ(op_trace_lines(back.info, back.trace), text);
}

TEST(OpTraceFile, StreamsEventsAndCollectivesReadBackAsTheyWere) {
  ScenarioSource source;
  source.overrides = {{"hardware", "nvidia-h200-sxm-141gb", ""},
                      {"cluster", "h200-x2", ""},
                      {"model", "nanogpt-char", ""},
                      {"training.micro_batch", "4", ""},
                      {"training.sequence_length", "64", ""},
                      {"training.parallel.data", "2", ""}};
  const OpTrace run = std::move(*make_scenario_program(load_scenario(source)).trace);
  ASSERT_GT(run.events, 0u);
  const std::string text = op_trace_lines({.producer = "test", .title = "two ranks", .samples = 4}, run);
  const Recording back = parse_op_trace(text, "memory");
  EXPECT_EQ(back.trace.events, run.events);
  ASSERT_EQ(back.trace.records.size(), run.records.size());
  for (std::size_t i = 0; i < run.records.size(); ++i) ASSERT_EQ(back.trace.records[i].kind, run.records[i].kind) << i;
  EXPECT_EQ(op_trace_lines(back.info, back.trace), text);
}

}  // namespace
}  // namespace ridgeline::trace
