// How an op trace is built from calls, worked out by hand: which storage an operand has, the host's time, calls without
// a rule, collectives beside the network.
#include <gtest/gtest.h>

#include "sim/trace/trace_builder.h"
#include "tests/support/trace_listing.h"

namespace ridgeline::trace {
namespace {

AtenCall built_call(const std::string& name, std::vector<Argument> inputs, Phase phase = Phase::forward,
                    std::vector<MeasuredKernel> kernels = {}) {
  AtenCall call;
  call.name = name;
  call.inputs = std::move(inputs);
  call.phase = phase;
  call.kernels = std::move(kernels);
  return call;
}

/// A builder and what it has built; the host takes no time.
struct Built {
  Replayable into;
  TraceBuilder builder{into, 4e12, 1e-6};
  Built& call(const std::string& name, std::vector<Argument> inputs, Phase phase = Phase::forward) {
    EXPECT_TRUE(builder.call(built_call(name, std::move(inputs), phase), [] { return 0.0; }));
    return *this;
  }
  [[nodiscard]] std::string text() const { return listing_of(into.recording.trace); }
  [[nodiscard]] std::string storages() const {
    std::string text;
    for (const Storage& storage : into.recording.trace.storages) text += fmt::format("{} ", storage.bytes);
    return text;
  }
};

const AtenTensor kMatrix = "fp32[3,5]"_t;

// Sixty bytes: the latest result of as many bytes that is no other operand of the call, of the last three.
TEST(WorkedBuilder, InputsAreLateResultsOfAsManyBytes) {
  Built built;
  built.call("aten::relu", {kMatrix}).call("aten::tanh", {kMatrix}).call("aten::mul", {kMatrix, kMatrix});
  built.call("aten::addcmul", {kMatrix, kMatrix, kMatrix}).call("aten::relu", {"bf16[3,5]"_t});
  built.call("aten::where", {kMatrix, kMatrix, kMatrix});
  EXPECT_EQ(built.text(),
            "relu 3x5 fp32>fp32 contiguous [0:60 > 1:60] forward\n"
            "tanh 3x5 fp32>fp32 contiguous [1:60 > 2:60] forward\n"
            "mul 3x5 fp32,fp32>fp32 contiguous [2:60 1:60 > 3:60] forward\n"
            "other 3x5 fp32,fp32,fp32>fp32 contiguous [3:60 2:60 1:60 > 4:60] forward\n"
            "relu 3x5 bf16>bf16 contiguous [5:30 > 6:30] forward\n"
            "other 3x5 fp32,fp32,fp32>fp32 contiguous [4:60 3:60 2:60 > 7:60] forward\n");
  EXPECT_EQ(built.storages(), "60 60 60 60 60 30 30 60 ");
  EXPECT_EQ(built.into.recording.trace.ops.size(), 5u) << "equal operations are one";
  EXPECT_EQ(built.into.origin, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
}

// In the backward pass only the gradient is late, unless gradients are added.
TEST(WorkedBuilder, WhatTheForwardPassSavedIsLongGone) {
  Built built;
  built.call("aten::relu", {kMatrix}).call("aten::tanh", {kMatrix});
  built.call("aten::mul", {kMatrix, kMatrix}, Phase::backward).call("aten::add", {kMatrix, kMatrix}, Phase::backward);
  built.call("aten::add_", {kMatrix, kMatrix}, Phase::backward).call("aten::mul", {kMatrix, kMatrix}, Phase::optimizer);
  EXPECT_EQ(built.text(),
            "relu 3x5 fp32>fp32 contiguous [0:60 > 1:60] forward\n"
            "tanh 3x5 fp32>fp32 contiguous [1:60 > 2:60] forward\n"
            "mul 3x5 fp32,fp32>fp32 contiguous [2:60 3:60 > 4:60] backward\n"
            "add 3x5 fp32,fp32>fp32 contiguous [4:60 2:60 > 5:60] backward\n"
            "add_in_place 3x5 fp32,fp32>fp32 contiguous [5:60 4:60 > 5:60] backward\n"
            "mul 3x5 fp32,fp32>fp32 contiguous [5:60 4:60 > 6:60] optimizer\n");
}

TEST(WorkedBuilder, StoragesThatTheRecordingNames) {
  Built built;
  built.builder.mention(7, 60);
  built.builder.mention(7, 40);  // as large as it was
  built.call("aten::relu", {"fp32[3,5]#7"_t});
  built.builder.mention(7, 61);  // another of that name
  built.call("aten::relu", {"fp32[3,5]#7"_t});
  built.builder.forget(7);
  built.call("aten::relu", {"fp32[3,5]#7"_t});
  built.builder.know(9, 0);
  AtenCall call = built_call("aten::mul", {"fp32[3,5]#9"_t, "fp32[3,5]#8"_t});
  call.outputs = {"fp32[3,5]#9"_t};
  EXPECT_TRUE(built.builder.call(call, [] { return 0.0; }));
  EXPECT_EQ(built.text(),
            "relu 3x5 fp32>fp32 contiguous [0:60 > 1:60] forward\n"
            "relu 3x5 fp32>fp32 contiguous [2:60 > 3:60] forward\n"
            "relu 3x5 fp32>fp32 contiguous [3:60 > 4:60] forward\n"
            "mul 3x5 fp32,fp32>fp32 contiguous [0:60 4:60 > 0:60] forward\n");
  EXPECT_EQ(built.storages(), "60 60 61 60 60 ");
}

// Our own timelines name what is read and written, in the order of the operands: bytes touched, and of the whole.
TEST(WorkedBuilder, OperandsThatATimelineNames) {
  const auto named = [](std::vector<NamedOperand> reads, std::vector<NamedOperand> writes) {
    Built built;
    AtenCall call = built_call("aten::mul", {kMatrix, kMatrix});
    call.reads = std::move(reads), call.writes = std::move(writes);
    EXPECT_TRUE(built.builder.call(call, [] { return 0.0; }));
    return built.text() + built.storages();
  };
  const std::string mul = "mul 3x5 fp32,fp32>fp32 contiguous ";
  EXPECT_EQ(named({{4, 60, 100}, {5, 60, 0}}, {{4, 60, 100}}), mul + "[0:60 1:60 > 0:60] forward\n100 60 ");
  EXPECT_EQ(named({{4, 60, 100}}, {{4, 60, 100}}), mul + "[0:60 1:60 > 2:60] forward\n60 60 60 ") << "one is lacking";
  EXPECT_EQ(named({{4, 60, 100}, {5, 60, 0}}, {}), mul + "[0:60 1:60 > 2:60] forward\n60 60 60 ");
}

TEST(WorkedBuilder, TheHostsTimeIsKeptInMicroseconds) {
  Replayable into;
  TraceBuilder builder(into);
  // 2.5; 1.7 + 0.5; nothing of 0.2 + 0.4; -3 is owed and taken off the next 5.
  for (const double microseconds : {2.5, 1.7, 0.4, -3.0, 5.0}) builder.host_time(microseconds * 1e-6);
  EXPECT_EQ(listing_of(into.recording.trace), "host python_fixed 2\nhost python_fixed 2\nhost python_fixed 2\n");
  builder.host(HostClass::linear, 3);
  builder.host(HostClass::linear, 0);
  builder.wait();
  EXPECT_EQ(listing_of(into.recording.trace),
            "host python_fixed 2\nhost python_fixed 2\nhost python_fixed 2\nhost linear 3\nwait\n");
}

// 4 TB/s beyond a microsecond a kernel: two kernels of together 6 us move 16 MB.
TEST(WorkedBuilder, CallsWithoutARuleCostTheirBytesOrTheirTime) {
  Built built;
  MeasuredKernel kernel = measured("k", 8);
  kernel.seconds = 3e-6;
  kernel.beside = 1e-6;
  built.builder.unknown(built_call("mine::op", {kMatrix}, Phase::backward, {kernel}), 0.0);
  built.builder.unknown(built_call("mine::shapeless", {}, Phase::forward, {kernel, kernel}), 2.5e-6);
  kernel.seconds = 0.5e-6;
  built.builder.unknown(built_call("mine::short", {}, Phase::forward, {kernel}), 0.0);
  EXPECT_EQ(built.text(),
            "unknown mine::op read_bytes=60 written_bytes=60 [0:60 > 1:60] backward\n"
            "host python_fixed 2\n"
            "unknown mine::shapeless read_bytes=8000000 written_bytes=8000000 [2:8000000 > 3:8000000] forward\n"
            "unknown mine::short read_bytes=0 written_bytes=0 [4:0 > 5:0] forward\n");
  EXPECT_EQ(built.into.defects.counts.at("calls without shapes or a rule, their measured time carried over by class"),
            2);
  ASSERT_EQ(built.into.recorded.size(), 3u);
  EXPECT_EQ(built.into.recorded[1].name, "mine::shapeless");
  EXPECT_FALSE(built.into.recorded[1].understood);
  EXPECT_EQ(built.into.recorded[1].kernels, 2);
  EXPECT_NEAR(built.into.recorded[1].measured, 6e-6, 1e-15);
  EXPECT_NEAR(built.into.recorded[1].beside, 2e-6, 1e-15);
}

TEST(WorkedBuilder, WhatKernelsCarryIsSaidByTheirClassWhereItIsKnown) {
  Replayable into;
  TraceBuilder builder(into, 4e12, 1e-6, [](const std::vector<MeasuredKernel>& kernels) {
    return 7 * static_cast<std::int64_t>(kernels.size());
  });
  builder.unknown(built_call("mine::op", {kMatrix}, Phase::forward, {measured("k"), measured("k"), measured("k")}),
                  0.0);
  builder.unknown(built_call("mine::op", {kMatrix}), 0.0);
  EXPECT_EQ(listing_of(into.recording.trace),
            "unknown mine::op read_bytes=10 written_bytes=11 [0:10 > 1:11] forward\n"
            "unknown mine::op read_bytes=60 written_bytes=60 [2:60 > 3:60] forward\n");
}

TEST(WorkedBuilder, CallsThatGiveNoOperation) {
  Built built;
  EXPECT_FALSE(built.builder.call(built_call("mine::op", {kMatrix})));
  EXPECT_FALSE(built.builder.call(built_call("aten::view", {kMatrix}, Phase::forward, {measured("k")})))
      << "something ran";
  EXPECT_EQ(built.text(), "");
  EXPECT_TRUE(built.builder.call(built_call("aten::view", {kMatrix}), [] { return 3e-6; }));
  EXPECT_EQ(built.text(), "host python_fixed 3\n");
  EXPECT_TRUE(built.into.recorded.empty());
}

// Strides that are not recorded, and kernels that compute where operands lie.
TEST(WorkedBuilder, OperandsThatLieApart) {
  Built built;
  const auto apart = [&](const std::string& name, std::vector<Argument> inputs) {
    AtenCall call = built_call(name, std::move(inputs));
    call.laid_out_apart = true;
    EXPECT_TRUE(built.builder.call(call, [] { return 0.0; }));
  };
  apart("aten::relu", {kMatrix});
  apart("aten::zero_", {kMatrix});
  apart("aten::mul", {kMatrix, "fp32[5]"_t});
  apart("aten::clone", {kMatrix});
  apart("aten::clone", {"fp32[3,5](1,3)"_t, 0.0});
  EXPECT_EQ(built.text(),
            "relu 3x5 fp32>fp32 strided [0:60 > 1:60] forward\n"
            "fill 3x5 >fp32 contiguous [ > 2:60] forward\n"
            "mul 3x5 fp32,fp32>fp32 broadcast_row [2:60 3:20 > 4:60] forward\n"
            "copy permute fp32 rows=3 cols=5 parts=1 [4:60 > 5:60] forward\n"
            "copy transpose fp32 rows=3 cols=5 parts=1 [5:60 > 6:60] forward\n");
}

TEST(WorkedBuilder, CollectivesRunBesideOrInLine) {
  Built built;
  const Collective sum{CollectiveKind::all_reduce, GroupKind::data, DType::bf16, 8, 64};
  const AtenCall call = built_call("nccl", {}, Phase::backward, {measured("nccl", 8)});
  built.builder.collective(call, sum, 0.0);
  EXPECT_TRUE(built.into.recording.trace.streams.empty());
  built.builder.name_streams({"default", "collectives"});
  built.builder.record({Record::Kind::record_event, HostClass::other, 0, 0});
  built.builder.record({Record::Kind::wait_event, HostClass::other, 1, 0});
  built.builder.set_stream(1);
  built.builder.collective(call, sum, 2e-6);
  built.builder.record({Record::Kind::record_event, HostClass::other, 1, 3});
  built.builder.record({Record::Kind::wait_event, HostClass::other, 0, 3});
  built.builder.collective(call, std::nullopt, 0.0);
  built.builder.set_stream(0);
  built.call("aten::relu", {kMatrix});
  EXPECT_EQ(built.text(),
            "collective all_reduce data bf16 ranks=8 bytes=64 [0:64 > 1:64] backward\n"
            "event 0 of 0\n1 waits for 0\nhost python_fixed 2\n"
            "collective all_reduce data bf16 ranks=8 bytes=64 [1:64 > 2:64] backward on 1\n"
            "event 3 of 1\n0 waits for 3\n"
            "unknown nccl read_bytes=0 written_bytes=0 [3:0 > 4:0] backward on 1\n"
            "relu 3x5 fp32>fp32 contiguous [5:60 > 6:60] forward\n");
  EXPECT_EQ(built.into.recording.trace.events, 4u);
  EXPECT_EQ(built.into.recording.trace.streams, (std::vector<std::string>{"default", "collectives"}));
  EXPECT_TRUE(built.into.recorded[0].understood);
  EXPECT_FALSE(built.into.recorded[2].understood);
}

TEST(WorkedBuilder, StepsLayersAndModules) {
  Built built;
  built.builder.begin_step();
  AtenCall call = built_call("aten::relu", {kMatrix}, Phase::clipping);
  call.layer = 3;
  call.module = 5;
  EXPECT_TRUE(built.builder.call(call, [] { return 0.0; }));
  built.builder.end_step();
  built.builder.wait();
  const OpTrace& trace = built.into.recording.trace;
  EXPECT_EQ(built.text(), "step\nrelu 3x5 fp32>fp32 contiguous [0:60 > 1:60] clipping of 3\nwait\n");
  EXPECT_EQ(trace.calls[0].module, 5);
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].end, 1u);
  EXPECT_EQ(trace.calls[0].inputs, 1);
  EXPECT_EQ(trace.calls[0].outputs, 1);
}

// The tensors of a multi-tensor call, list after list; a list keeps its storages for the next call.
TEST(WorkedBuilder, ListsOfAnOptimizerAreTheSameFromCallToCall) {
  Built built;
  const TensorList list{"fp32[3,5]"_t, "fp32[7]"_t};
  built.call("aten::_foreach_lerp_", {list, list}, Phase::optimizer);
  built.call("aten::_foreach_addcmul_", {list, list, list}, Phase::optimizer);
  built.call("aten::_foreach_norm", {list}, Phase::clipping);
  EXPECT_EQ(built.text(),
            "multi_tensor lerp fp32 sizes=15,7 [0:60 1:28 2:60 3:28] optimizer\n"
            "multi_tensor addcmul fp32 sizes=15,7 [4:60 5:28 2:60 3:28] optimizer\n"
            "multi_tensor norm fp32 sizes=15,7 [2:60 3:28] clipping\n");
}

}  // namespace
}  // namespace ridgeline::trace
