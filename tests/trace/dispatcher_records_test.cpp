// Dispatcher calls in op traces: mapped as they are read, with their storages, and with the host's work around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {
namespace {

constexpr const char* kHeader = R"({"ridgeline":"op-trace","version":1,"parameters":0,"optimizer":"AdamW"})"
                                "\n";

Replayable read(const std::string& records, const std::string& before = "") {
  const std::string path = temporary_path("records.jsonl");
  std::ofstream(path, std::ios::binary) << kHeader << before << "{\"record\":\"step\"}\n"
                                        << records << "{\"record\":\"end\"}\n";
  return read_replayable_op_trace(path);
}
std::string refusal(const std::string& records) {
  try {
    read(records);
  } catch (const UserError& error) {
    return error.what();
  }
  return "was read";
}

std::string storage(int id, int bytes) {
  return "{\"record\":\"storage\",\"id\":" + std::to_string(id) + ",\"bytes\":" + std::to_string(bytes) +
         ",\"category\":\"activations\"}\n";
}
std::string relu(const std::string& in, const std::string& out, const std::string& phase = "forward") {
  return R"({"record":"aten","name":"aten::relu","phase":")" + phase + R"(","in":[)" + in + R"(],"out":[)" + out +
         "]}\n";
}
const std::string kX = R"({"type":"fp32","sizes":[4,8],"storage":0})",
                  kY = R"({"type":"fp32","sizes":[4,8],"storage":1})";

std::int64_t times(const Replayable& r, HostClass host_class) {
  std::int64_t sum = 0;
  for (const Record& record : r.recording.trace.records)
    if (record.kind == Record::Kind::host && record.host_class == host_class) sum += record.index;
  return sum;
}

TEST(DispatcherRecords, ACallReadsAndWritesTheStoragesItNames) {
  const Replayable r = read(storage(0, 128) + storage(1, 128) + relu(kX, kY) + "{\"record\":\"free\",\"id\":0}\n");
  const OpTrace& trace = r.recording.trace;
  ASSERT_EQ(trace.calls.size(), 1U);
  EXPECT_EQ(shape_of(trace.ops[0]), "4x8 fp32");
  EXPECT_EQ(trace.operands[0].storage, 0U);
  EXPECT_EQ(trace.operands[1].storage, 1U);
  ASSERT_EQ(r.recorded.size(), 1U);
  EXPECT_EQ(r.recorded[0].name, "aten::relu");
  EXPECT_TRUE(r.memory_known);
}

TEST(DispatcherRecords, ACopyWritesItsFirstArgumentAndReadsTheSecond) {
  const auto copied = [](const std::string& to, const std::string& from) {
    const Replayable r =
        read(storage(0, 128) + storage(1, 128) + R"({"record":"aten","name":"aten::copy_","phase":"forward","in":[)" +
             to + "," + from + ",false]}\n");
    const auto& operands = r.recording.trace.operands;
    return std::pair{operands.front().storage, operands.back().storage};
  };
  EXPECT_EQ(copied(kX, kY), (std::pair<StorageId, StorageId>{1, 0}));
  EXPECT_EQ(copied(kY, kX), (std::pair<StorageId, StorageId>{0, 1}));
  // Without storages, source and destination are two all the same.
  const std::string unnamed = R"({"type":"fp32","sizes":[4,8]})";
  const auto [from, to] = copied(unnamed, unnamed);
  EXPECT_NE(from, to);
}

TEST(DispatcherRecords, StoragesBornLaterKeepTheirIdsThoughOthersWereAddedBetween) {
  const std::string nameless = R"({"type":"fp32","sizes":[4,8]})";
  const Replayable r = read(relu(nameless, nameless) + storage(0, 128) + storage(1, 128) + relu(kX, kY));
  const OpTrace& trace = r.recording.trace;
  EXPECT_EQ(trace.storages[trace.operands[2].storage].category, Category::activations);
  EXPECT_NE(trace.operands[2].storage, trace.operands[3].storage);
}

TEST(DispatcherRecords, AnUnknownCallCostsItsBytesAndIsNotUnderstood) {
  const Replayable r =
      read(storage(0, 128) + R"({"record":"aten","name":"mine::op","phase":"forward","in":[)" + kX + "]}\n");
  ASSERT_EQ(r.recorded.size(), 1U);
  EXPECT_FALSE(r.recorded[0].understood);
}

TEST(DispatcherRecords, TheHostEntersBackwardOnceAStepAndCountsTheOptimizersTensors) {
  const std::string list = R"({"tensors":[{"type":"fp32","sizes":[4,8]},{"type":"fp32","sizes":[8]}]})";
  const auto listed = [&](const std::string& name, const std::string& phase) {
    return R"({"record":"aten","name":"aten::)" + name + R"(","phase":")" + phase + R"(","in":[)" + list + "]}\n";
  };
  const Replayable r =
      read(storage(0, 128) + storage(1, 128) + relu(kX, kY) + relu(kX, kY, "backward") + relu(kX, kY, "backward") +
           listed("_foreach_norm", "clipping") + listed("_foreach_mul_", "clipping") +
           listed("_foreach_lerp_", "optimizer") + listed("_foreach_addcdiv_", "optimizer"));
  EXPECT_EQ(times(r, HostClass::backward_call), 1);
  EXPECT_EQ(times(r, HostClass::pointwise), 1);
  EXPECT_EQ(times(r, HostClass::pointwise_backward), 2);
  EXPECT_EQ(times(r, HostClass::clip_fixed), 1);
  EXPECT_EQ(times(r, HostClass::per_parameter_clip), 2);
  EXPECT_EQ(times(r, HostClass::foreach_fixed), 1);
  EXPECT_EQ(times(r, HostClass::per_parameter_foreach), 2);
  EXPECT_EQ(times(r, HostClass::per_parameter_zero_grad), 2);
}

TEST(DispatcherRecords, ViewsCostTheHostAloneUnlessAnotherCallMadeThem) {
  const auto view = [](const std::string& name) {
    return R"({"record":"aten","name":"aten::)" + name + R"(","phase":"forward"})" + "\n";
  };
  EXPECT_EQ(times(read(view("view") + view("t") + view("detach")), HostClass::view), 1);
  EXPECT_EQ(times(read(view("transpose")), HostClass::transpose), 1);
}

TEST(DispatcherRecords, WhatCannotBeIsRefusedWithItsLine) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal(relu(kX, kX)), HasSubstr("records.jsonl:3: a tensor names storage 0, which has no line above"));
  EXPECT_THAT(refusal(relu(R"({"type":"fp32","sizes":[4,-8]})", "")), HasSubstr("\"sizes\" must be 0 to"));
  EXPECT_THAT(refusal(relu(R"({"type":"fp31","sizes":[4]})", "")), HasSubstr("unknown type \"fp31\""));
  EXPECT_THAT(refusal(relu(R"({"type":"fp32"})", "")), HasSubstr("needs \"sizes\""));
  EXPECT_THAT(refusal(relu(R"({"type":"fp32","sizes":[1125899906842624,1125899906842624]})", "")),
              HasSubstr("more elements than any device holds"));
  EXPECT_THAT(refusal(relu(R"({"type":"fp32","sizes":[4,8],"strides":[1]})", "")), HasSubstr("differ in number"));
  EXPECT_THAT(refusal(relu(kX, kX, "afterwards")), HasSubstr("unknown phase"));
}

}  // namespace
}  // namespace ridgeline::trace
