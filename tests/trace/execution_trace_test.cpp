// Small execution traces: order, nesting, both layouts of a node; and traces that cannot be.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::trace {
namespace {

using ::testing::HasSubstr;

/// One side of a node: a tensor of `shape` and `type`, with the storage that `id` names.
std::string side(const std::string& name, const std::vector<std::string>& shapes, const std::string& device = "cuda:0",
                 const std::string& type = "float") {
  std::string values, sizes, types;
  int id = 1;
  for (const std::string& shape : shapes) {
    const char* comma = values.empty() ? "" : ", ";
    values += fmt::format("{}[{}, {}, 0, 32, 4, \"{}\"]", comma, id, id + 1, device);
    sizes += comma + shape;
    types += fmt::format("{}\"Tensor({})\"", comma, type);
    id += 2;
  }
  return fmt::format("\"{}\": {{\"values\": [{}], \"shapes\": [{}], \"types\": [{}]}}", name, values, sizes, types);
}
const std::string kProduct = side("inputs", {"[4, 16]", "[16, 8]"}) + ", " + side("outputs", {"[4, 8]"});

std::string written(const std::string& nodes) {
  const std::string path = temporary_path("et.json");
  std::ofstream(path, std::ios::binary) << "{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 1,\n\"nodes\": [\n"
                                        << nodes << "\n], \"finish_ts\": 3}";
  return path;
}
Replayable read_execution(const std::string& nodes) {
  return read_recording(written(nodes), [](const RecordedGpu&) { return RecordedDevice{}; });
}
std::string refused_execution(const std::string& nodes) {
  try {
    read_execution(nodes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "was read";
}
std::string node(int id, int parent, const std::string& name, const std::string& rest = "") {
  return fmt::format("{{\"id\": {}, \"ctrl_deps\": {}, \"name\": \"{}\"{}{}}}", id, parent, name,
                     rest.empty() ? "" : ", ", rest);
}

TEST(ExecutionTrace, NodesRunInTheOrderOfTheirIdsAndTheOutermostRuleCounts) {
  const Replayable r =
      read_execution(node(5, 3, "aten::relu", kProduct) + ",\n" + node(4, 3, "aten::mm", kProduct) + ",\n" +
                     node(3, 2, "aten::linear") + ",\n" + node(2, 1, "[pytorch|profiler|execution_trace|thread]"));
  EXPECT_EQ(r.format, Format::pytorch_execution_trace);
  ASSERT_EQ(r.recorded.size(), 2U);
  EXPECT_EQ(r.recorded[0].name, "aten::mm");
  EXPECT_EQ(r.recorded[1].name, "aten::relu");
  EXPECT_FALSE(r.memory_known);
}

TEST(ExecutionTrace, NodesOfTheFirstSchemaKeepShapesBesideTheirInputs) {
  const std::string types = "[\"Tensor(c10::Half)\", \"Tensor(c10::Half)\"]";
  const Replayable r = read_execution(
      "{\"id\": 3, \"parent\": 1, \"name\": \"aten::mm\", \"inputs\": [[1, 2, 0, 64, 2, \"cuda:0\"], [3, 4, 0, 128, 2, "
      "\"cuda:0\"]], \"input_shapes\": [[4, 16], [16, 8]], \"input_types\": " +
      types + ", \"outputs\": [], \"output_shapes\": [], \"output_types\": []}");
  ASSERT_EQ(r.recording.trace.ops.size(), 1U);
  EXPECT_EQ(shape_of(r.recording.trace.ops[0]), "4x8x16 nn fp16");
}

TEST(ExecutionTrace, ForwardBackwardClippingAndOptimizerAreToldApart) {
  const Replayable r = read_execution(
      node(3, 1, "aten::mm", kProduct) + "," + node(4, 1, "autograd::engine::evaluate_function: MmBackward0") + "," +
      node(5, 4, "aten::mm", kProduct) + "," + node(6, 1, "aten::relu", kProduct) + "," +
      node(7, 1, "Optimizer.step#AdamW.step") + "," + node(8, 7, "aten::relu", kProduct));
  std::vector<Phase> phases;
  for (const Call& call : r.recording.trace.calls) phases.push_back(call.phase);
  EXPECT_THAT(phases, ::testing::ElementsAre(Phase::forward, Phase::backward, Phase::clipping, Phase::optimizer));
}

TEST(ExecutionTrace, WhatRunsOnNumbersInHostMemoryIsLeftOutUnlessAllDoes) {
  const std::string host = side("inputs", {"[4, 8]"}, "cpu");
  EXPECT_EQ(read_execution(node(3, 1, "aten::mm", kProduct) + "," + node(4, 1, "aten::relu", host)).recorded.size(),
            1U);
  EXPECT_EQ(read_execution(node(4, 1, "aten::relu", host)).recorded.size(), 1U);
}

TEST(ExecutionTrace, CirclesAndLinksForwardsEndAndAreNoCrash) {
  EXPECT_EQ(read_execution(node(3, 4, "aten::mm", kProduct) + "," + node(4, 3, "aten::relu", kProduct)).recorded.size(),
            1U);
  EXPECT_EQ(read_execution(node(3, 3, "aten::mm", kProduct)).recorded.size(), 1U);
}

TEST(ExecutionTrace, WhatCannotBeIsRefusedWithItsLine) {
  EXPECT_THAT(refused_execution(node(3, 1, "[root]")), HasSubstr("no operator with tensors"));
  EXPECT_THAT(refused_execution(node(3, 1, "aten::relu", side("inputs", {"[4, -8]"}))),
              HasSubstr("et.json:3: a tensor has the size -8"));
  EXPECT_THAT(refused_execution("{\"id\": NaN}"), HasSubstr("et.json:3: a node is not valid JSON"));
}

TEST(ExecutionTrace, AListOfTensorsIsReadTensorByTensor) {
  const std::string list =
      "\"inputs\": {\"values\": [[[1, 2, 0, 32, 4, \"cuda:0\"], [3, 4, 0, 32, 4, \"cuda:0\"]], 1], \"shapes\": [[[4, "
      "8], [4, 24]], []], \"types\": [\"GenericList[Tensor(float),Tensor(float)]\", \"Int\"]}, " +
      side("outputs", {"[4, 32]"});
  const Replayable r = read_execution(node(3, 1, "aten::cat", list));
  ASSERT_EQ(r.recorded.size(), 1U);
  EXPECT_TRUE(r.recorded[0].understood);
  const Copy& copy = std::get<Copy>(r.recording.trace.ops.at(0));
  EXPECT_EQ(copy.rows * copy.cols, 4 * 32);
}

}  // namespace
}  // namespace ridgeline::trace
