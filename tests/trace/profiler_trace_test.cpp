// Small profiler traces: what launched a kernel, which step, what the host did; and traces with known defects.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/trace/aten/aten_map.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/trace_text.h"

namespace ridgeline::trace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

constexpr const char* kMatrixArguments =
    R"("Input Dims": [[4, 16], [16, 8]], "Input type": ["float", "float"], "Input Strides": [[16, 1], [8, 1]], "Concrete Inputs": ["", ""])";

std::string words_of_refusal(const std::string& path) {
  try {
    read_recording(path, [](const RecordedGpu&) { return RecordedDevice{4e12, 1e-6}; });
  } catch (const UserError& error) {
    return error.what();
  }
  return "was read";
}

double host_microseconds(const Replayable& r) {
  double total = 0;
  for (const Record& record : r.recording.trace.records)
    if (record.kind == Record::Kind::host) total += record.index;
  return total;
}

TEST(ProfilerTrace, AKernelBelongsToTheOutermostOperatorWithARule) {
  const Replayable r = TraceText()
                           .op(0, 30, "aten::linear")
                           .op(2, 26, "aten::mm", kMatrixArguments)
                           .op(4, 5, "aten::as_strided")
                           .launch(12, 40, 100)
                           .read();
  ASSERT_EQ(r.recorded.size(), 1U);
  EXPECT_EQ(r.recorded[0].name, "aten::mm");
  EXPECT_TRUE(r.recorded[0].understood);
  EXPECT_NEAR(r.recorded[0].measured, 100e-6, 1e-12);
  ASSERT_EQ(r.recording.trace.ops.size(), 1U);
  EXPECT_EQ(shape_of(r.recording.trace.ops[0]), "4x8x16 nn fp32");
  EXPECT_EQ(r.measured.gpu, "NVIDIA H200");
  EXPECT_NEAR(r.measured.busy, 100e-6, 1e-12);
}

TEST(ProfilerTrace, WhatRunsOnSeveralStreamsAtOnceIsBusyOnce) {
  const Replayable r =
      TraceText().op(0, 60, "aten::mm", kMatrixArguments).launch(10, 100, 50).launch(20, 120, 50).read();
  EXPECT_NEAR(r.measured.busy, 70e-6, 1e-12);
  EXPECT_NEAR(r.measured.kernel_sum, 100e-6, 1e-12);
}

TEST(ProfilerTrace, AnOperatorWithoutARuleCostsItsBytesAndOneWithoutShapesItsTime) {
  const Replayable r = TraceText()
                           .op(0, 20, "mine::op", R"("Input Dims": [[1024]], "Input type": ["float"])")
                           .launch(5, 10, 10)
                           .op(30, 20, "mine::shapeless")
                           .launch(35, 60, 10)
                           .read();
  ASSERT_EQ(r.recorded.size(), 2U);
  EXPECT_FALSE(r.recorded[0].understood);
  EXPECT_EQ(std::get<UnknownOp>(r.recording.trace.ops[0]).read_bytes, 4096);
  const auto& shapeless = std::get<UnknownOp>(r.recording.trace.ops[1]);
  EXPECT_NEAR(static_cast<double>(shapeless.read_bytes + shapeless.written_bytes), 9e-6 * 4e12, 2.0);
  EXPECT_THAT(r.defects.counts, Contains(Key(HasSubstr("without shapes"))));
}

TEST(ProfilerTrace, LaunchesWhoseKernelsAreMissingAreCounted) {
  TraceText text;
  text.op(0, 60, "aten::mm", kMatrixArguments).launch(10, 100, 50);
  for (const int at : {20, 30})
    text.add(fmt::format(
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {}, "dur": 4, "args": {{"correlation": {}}}}})",
        at, at));
  EXPECT_THAT(text.read().defects.counts, Contains(::testing::Pair(HasSubstr("not in the trace"), 2)));
}

TEST(ProfilerTrace, AnEmptyListOfEventsIsCalledOne) {
  for (const char* text : {R"({"traceEvents": [ ]})", R"({"schema": "1.1", "nodes":[]})"}) {
    const std::string path = temporary_path("empty.json");
    std::ofstream(path) << text;
    EXPECT_THAT(words_of_refusal(path), HasSubstr("the recording holds no events"));
  }
}

TEST(ProfilerTrace, KernelsOfEarlierYearsDateTheToolkit) {
  const auto toolkit = [](const std::string& kernel, const char* category) {
    std::string text = TraceText().op(0, 60, "aten::mm", kMatrixArguments).launch(10, 100, 50, kernel).text();
    const std::string from = "\"cat\": \"kernel\"";
    text.replace(text.find(from), from.size(), fmt::format("\"cat\": \"{}\"", category));
    const std::string path = temporary_path("dated.json");
    std::ofstream(path) << text;
    return RecordingFile(path).toolkit();
  };
  EXPECT_EQ(toolkit("some_kernel", "kernel"), 0.0);
  EXPECT_EQ(toolkit("elementwise<at::detail::Array<char*, 3>>", "kernel"), 11.8);
  EXPECT_EQ(toolkit("elementwise<at::detail::Array<char*, 3>>", "Kernel"), 11.7);
}

constexpr const char* kHalfArguments = R"("Input Dims": [[4, 8]], "Input type": ["c10::BFloat16"])";
constexpr const char* kFullArguments = R"("Input Dims": [[4, 8]], "Input type": ["float"])";
constexpr const char* kCastArguments = R"("Input Dims": [[4, 8], [4, 8]], "Input type": ["float", "c10::BFloat16"])";

std::vector<std::string> names_of_calls(const Replayable& r) {
  std::vector<std::string> names;
  for (const RecordedCall& call : r.recorded) names.push_back(call.name);
  return names;
}

TEST(ProfilerTrace, AutocastsCastAndTheOperatorAfterItAreACallEach) {
  const Replayable r = TraceText()
                           .op(0, 60, "aten::exp", kHalfArguments)
                           .op(2, 20, "aten::copy_", kCastArguments)
                           .launch(10, 40, 3)
                           .op(30, 20, "aten::exp", kFullArguments)
                           .launch(35, 50, 5)
                           .read();
  EXPECT_EQ(names_of_calls(r), (std::vector<std::string>{"aten::copy_", "aten::exp"}));
  EXPECT_EQ(name_of(r.recording.trace.ops.at(0)), "cast");
  EXPECT_EQ(shape_of(r.recording.trace.ops.at(1)), "4x8 fp32");
}

TEST(ProfilerTrace, CopiesThatAnOperatorMakesOfItsOperandsAreCallsOfTheirOwn) {
  const Replayable r = TraceText()
                           .op(0, 60, "aten::cumsum", R"("Input Dims": [[4, 8], []], "Input type": ["bool", "Scalar"])")
                           .op(2, 20, "aten::copy_", kCastArguments)
                           .launch(10, 40, 3)
                           .launch(35, 50, 5)
                           .read();
  EXPECT_EQ(names_of_calls(r), (std::vector<std::string>{"aten::copy_", "aten::cumsum"}));
  EXPECT_NEAR(r.recorded.at(1).measured, 5e-6, 1e-12);
}

TEST(ProfilerTrace, ACollectiveInsideAnotherOperatorIsACollective) {
  const Replayable r = TraceText()
                           .op(0, 60, "aten::mm", kMatrixArguments)
                           .launch(10, 40, 3)
                           .launch(35, 50, 500, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)")
                           .read();
  ASSERT_EQ(r.recorded.size(), 2U);
  EXPECT_EQ(r.recorded[0].name, "aten::mm");
  EXPECT_NEAR(r.recorded[0].measured, 3e-6, 1e-12);
  EXPECT_FALSE(r.recorded[1].understood);
  EXPECT_TRUE(r.recorded[1].name.starts_with("nccl"));
  EXPECT_TRUE(std::get<UnknownOp>(r.recording.trace.ops.at(1)).name.starts_with("nccl"));
}

/// That of the convolution with which a trace begins.
int stride_of_first(const TraceText& trace) {
  const Replayable r = trace.read();
  return static_cast<int>(std::get<Convolution>(r.recording.trace.ops.at(0)).stride);
}

TEST(ProfilerTrace, AStrideThatIsNotRecordedIsThatOfTheImageAfterwards) {
  const std::string types = R"("Input type": ["float", "float", "", "GenericList", "GenericList", "GenericList"])";
  const std::string convolution = R"("Input dims": [[32, 256, 56, 56], [512, 256, 1, 1], [], [], [], []], )" + types;
  const auto image = [](int side, int channels = 512) {
    return fmt::format(R"("Input dims": [[32, {}, {}, {}]], "Input type": ["float"])", channels, side, side);
  };
  const auto traced = [&](const std::string& after, const std::string& arguments) {
    return TraceText()
        .op(0, 30, "aten::cudnn_convolution", convolution)
        .launch(10, 40, 100)
        .op(40, 5, "aten::add_", image(56, 64))  // another's
        .op(50, 20, after, arguments);
  };
  EXPECT_EQ(stride_of_first(traced("aten::relu_", image(56))), 1);
  EXPECT_EQ(stride_of_first(traced("aten::relu_", image(28))), 2);
  EXPECT_EQ(stride_of_first(traced("aten::cos", "")), 1);
  const std::string listed = R"("Input Dims": [[32, 256, 56, 56], [512, 256, 1, 1], [], [], []], )"
                             R"("Input type": ["float", "float", "", "ScalarList", "ScalarList"], )"
                             R"("Concrete Inputs": ["", "", "", "[2, 2]", "[0, 0]"])";
  EXPECT_EQ(stride_of_first(TraceText().op(0, 30, "aten::convolution", listed).launch(10, 40, 100)), 2);
}

TEST(ProfilerTrace, AKernelThatComputesWhereOperandsLieSaysThatTheyLieApart) {
  const auto walk = [](const std::string& kernel, const std::string& strides) {
    const Replayable r =
        TraceText()
            .op(0, 30, "aten::mul", R"("Input Dims": [[64, 32], [64, 32]], "Input type": ["float", "float"])" + strides)
            .launch(10, 40, 100, kernel)
            .read();
    return std::get<Pointwise>(r.recording.trace.ops.at(0)).walk;
  };
  const std::string indexed = "void at::native::elementwise_kernel<128, 2, f>",
                    plain = "void at::native::vectorized_elementwise_kernel<4, f>",
                    strides = R"(, "Input Strides": [[32, 1], [32, 1]])";
  EXPECT_EQ(walk(indexed, ""), Walk::strided);
  EXPECT_EQ(walk(plain, ""), Walk::contiguous);
  EXPECT_EQ(walk(indexed, strides), Walk::contiguous);
}

TEST(ProfilerTrace, LargeCopiesFromTheHostKeepTheirTime) {
  const auto understood = [](std::int64_t bytes) {
    const Replayable r =
        TraceText()
            .op(0, 30, "aten::copy_", R"("Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"])")
            .add(R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": 10, )"
                 R"("dur": 4, "args": {"correlation": 7}})")
            .add(fmt::format(
                R"x({{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 40, )x"
                R"x("dur": 500, "args": {{"stream": 7, "correlation": 7, "bytes": {}}}}})x",
                bytes))
            .read();
    return r.recorded.at(0).understood;
  };
  EXPECT_FALSE(understood(4 << 20));
  EXPECT_TRUE(understood(64 << 10));
}

TEST(ProfilerTrace, OfMarkedStepsTheOneOfMedianGpuTimeIsTaken) {
  TraceText text;
  for (int step = 0; step < 3; ++step) {
    const double at = 1000.0 * step;
    text.host("user_annotation", fmt::format("ProfilerStep#{}", step), at, 900)
        .op(at + 10, 50, "aten::mm", kMatrixArguments)
        .launch(at + 20, at + 100, 100.0 + 10 * ((step * 2) % 3));
  }
  const Replayable r = text.read();
  EXPECT_EQ(r.measured.which_step, "ProfilerStep#2, the one of median GPU time of 3");
  EXPECT_NEAR(r.measured.busy, 110e-6, 1e-12);
  EXPECT_NEAR(r.measured.step, 900e-6, 1e-12);
}

TEST(ProfilerTrace, WithoutMarksAndWithOneOptimizerStepTheWholeRecordingIsOneStep) {
  const Replayable r = TraceText()
                           .op(0, 50, "aten::mm", kMatrixArguments)
                           .launch(10, 100, 100)
                           .host("user_annotation", "Optimizer.step#AdamW.step", 60, 100)
                           .read();
  EXPECT_EQ(r.measured.which_step, "the whole recording, taken as one step");
}

TEST(ProfilerTrace, TheProfilersShareOfTheHostIsTakenOut) {
  const Replayable plain = TraceText().op(0, 100, "aten::mm", kMatrixArguments).launch(90, 120, 10).read();
  EXPECT_NEAR(host_microseconds(plain), 50 + 101 - 94 - 2.4, 1.01);
  TraceText two;
  two.op(0, 100, "aten::mm", kMatrixArguments).launch(90, 120, 10).op(200, 100, "aten::mm", kMatrixArguments);
  TraceText overhead = two.launch(290, 320, 10);
  overhead.host("overhead", "Activity Buffer Request", 120, 40);
  EXPECT_NEAR(host_microseconds(two.read()) - host_microseconds(overhead.read()), 40, 1.01);
}

TEST(ProfilerTrace, ALaunchThatWaitsForTheQueueIsNoWorkOfTheHost) {
  const Replayable just_under =
      TraceText().op(0, 60, "aten::mm", kMatrixArguments).launch(10, 90, 10, "k", 19.9).read();
  const Replayable just_over = TraceText().op(0, 60, "aten::mm", kMatrixArguments).launch(10, 90, 10, "k", 20.1).read();
  EXPECT_NEAR(host_microseconds(just_under) - host_microseconds(just_over), 20.1 - 4.2, 1.01);
}

TEST(ProfilerTrace, WaitsAreKeptExceptThatAtTheEndOfTheMeasurement) {
  const auto waits = [](const Replayable& r) {
    return std::count_if(r.recording.trace.records.begin(), r.recording.trace.records.end(),
                         [](const Record& record) { return record.kind == Record::Kind::wait_for_gpu; });
  };
  TraceText text;
  text.op(0, 50, "aten::mm", kMatrixArguments).launch(10, 100, 10);
  TraceText ended = text, between = text;
  ended.host("cuda_runtime", "cudaDeviceSynchronize", 60, 500);
  between.host("cuda_runtime", "cudaStreamSynchronize", 60, 500)
      .op(600, 50, "aten::mm", kMatrixArguments)
      .launch(610, 700, 10);
  EXPECT_EQ(waits(ended.read()), 0);
  EXPECT_EQ(waits(between.read()), 1);
}

TEST(ProfilerTrace, ListsWithoutShapesAreThoseOfTheParametersThatTookGradients) {
  const std::string list =
      R"("Input Dims": [[], []], "Input type": ["TensorList", "TensorList"], "Input Strides": [[], []], "Concrete Inputs": ["", ""])";
  const auto gradient = [](int elements) {
    return fmt::format(R"("Input Dims": [[{}]], "Input type": ["float"])", elements);
  };
  TraceText text;
  text.op(0, 5, "torch::autograd::AccumulateGrad", gradient(300))
      .op(6, 5, "torch::autograd::AccumulateGrad", gradient(24));
  text.op(20, 40, "aten::_foreach_lerp_", list).launch(30, 100, 10);
  const Replayable r = text.read();
  ASSERT_EQ(r.recording.trace.ops.size(), 1U);
  EXPECT_EQ(shape_of(r.recording.trace.ops[0]), "2 tensors, 324 elements fp32");
  EXPECT_EQ(r.recording.trace.parameters, 324);
}

TEST(ProfilerTrace, ProductsOfFp32OnTensorCoresAreTf32) {
  const auto type = [](const std::string& kernel) {
    const Replayable r = TraceText().op(0, 50, "aten::mm", kMatrixArguments).launch(10, 100, 10, kernel).read();
    return std::get<Matmul>(r.recording.trace.ops[0]).type;
  };
  EXPECT_EQ(type("sm80_xmma_gemm_f32f32_tf32f32_f32_nn"), DType::tf32);
  EXPECT_EQ(type("sm80_xmma_gemm_f32f32_f32f32_f32_nn"), DType::fp32);
}

TEST(ProfilerTrace, KnownDefectsAreCountedAndTheRestIsRead) {
  const Replayable r =
      TraceText()
          .op(0, 50, "aten::mm", kMatrixArguments)
          .launch(10, 100, 10)
          .add(R"({"ph": "X", "cat": "cpu_op", "name": "a", "tid": 1, "ts": 70})")
          .add(R"({"ph": "X", "cat": "cpu_op", "name": "b", "tid": 1, "ts": 71, "dur": -3})")
          .add(R"({"ph": "X", "cat": "kernel", "name": "a "quoted" name", "tid": 1, "ts": 72, "dur": 3})")
          .add(R"({"ph": "X", "cat": "kernel", "name": "orphan", "tid": 7, "ts": 73, "dur": 3})")
          .read();
  EXPECT_EQ(r.defects.counts.at("events without a duration, left out"), 1);
  EXPECT_EQ(r.defects.counts.at("events with a negative duration, taken as 0"), 1);
  EXPECT_EQ(r.defects.counts.at("events that are not valid JSON, left out"), 1);
  EXPECT_EQ(r.defects.counts.at("GPU activities without launch call and operator"), 1);
  EXPECT_EQ(r.recorded.front().name, "aten::mm");
}

TEST(ProfilerTrace, NamesAndCategoriesOfOldProfilersAreRead) {
  const Replayable r =
      TraceText()
          .add(
              R"({"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 1, "tid": "thread 5", "ts": 0, "dur": 50, "args": {"Input dims": [[4, 16], [16, 8]], "Input type": ["float", "float"]}})")
          .add(
              R"({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": "thread 5", "ts": 10, "dur": 4, "args": {"correlation": "9"}})")
          .add(
              R"({"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 90, "dur": 5, "args": {"correlation": "9"}})")
          .read();
  ASSERT_EQ(r.recorded.size(), 1U);
  EXPECT_TRUE(r.recorded[0].understood);
}

TEST(ProfilerTrace, SizesAndTimesThatCannotBeAreRefusedWithFileAndLine) {
  const auto with = [](const std::string& event) {
    return words_of_refusal(TraceText().op(0, 9, "aten::t").add(event).file("bad.json"));
  };
  EXPECT_THAT(with(R"({"ph": "X", "cat": "kernel", "name": "k", "tid": 7, "ts": NaN, "dur": 3})"),
              HasSubstr("bad.json:4: \"ts\""));
  EXPECT_THAT(with(R"({"ph": "X", "cat": "kernel", "name": "k", "tid": 7, "ts": 3, "dur": 1e999})"),
              HasSubstr("bad.json:4: \"dur\""));
  const auto sized = [](const std::string& dims) {
    return words_of_refusal(
        TraceText()
            .op(0, 50, "aten::relu", fmt::format(R"("Input Dims": [{}], "Input type": ["float"])", dims))
            .launch(10, 100, 10)
            .file("sizes.json"));
  };
  EXPECT_THAT(sized("[4, -8]"), HasSubstr("sizes.json:3: a tensor has the size -8"));
  EXPECT_THAT(sized("[4611686018427387904, 8]"), HasSubstr("more elements than any device holds"));
  EXPECT_EQ(sized("[4, 8]"), "was read");
}

TEST(ProfilerTrace, ATraceWithoutOperatorsOrWithoutAGpuSaysHowToRecordOne) {
  TraceText no_gpu, no_operators;
  no_gpu.op(0, 9, "aten::mm", kMatrixArguments);
  no_operators.launch(0, 9, 9);
  EXPECT_THAT(words_of_refusal(no_gpu.file()), HasSubstr("ProfilerActivity.CUDA"));
  EXPECT_THAT(words_of_refusal(no_operators.file()), HasSubstr("ProfilerActivity.CPU"));
}

TEST(ProfilerTrace, JsonOfAnotherKindIsNamedByItsKeys) {
  const std::string path = temporary_path("other.json");
  std::ofstream(path) << R"({"model_type": "bert", "layers": [1, 2]})";
  EXPECT_THAT(words_of_refusal(path), ::testing::AllOf(HasSubstr("neither"), HasSubstr("layers, model_type")));
  std::ofstream(path) << R"({"traceEvents": []})";
  EXPECT_THAT(words_of_refusal(path), HasSubstr("other.json"));
}

TEST(ProfilerTrace, MarksAmongTheOperatorsAreMarksToo) {
  TraceText text;
  for (int step = 0; step < 6; ++step)
    text.op(100.0 * step, 90, fmt::format("ProfilerStep#{}", step))
        .op(100.0 * step + 5, 60, "aten::mm", kMatrixArguments)
        .launch(100.0 * step + 10, 100.0 * step + 20, 50);
  const Replayable r = text.read();
  EXPECT_EQ(r.recorded.size(), 1U);
  EXPECT_THAT(r.measured.which_step, HasSubstr("of median GPU time of 6"));
}

TEST(ProfilerTrace, AnEmptyProductLaunchesNothingAndOneOverNothingFillsZeros) {
  AtenCall call;
  call.name = "aten::mm";
  AtenTensor a, b;
  a.sizes = {0, 16}, b.sizes = {16, 8};
  call.inputs = {a, b};
  const auto none = map_aten(call, {});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  a.sizes = {4, 0}, b.sizes = {0, 8};
  call.inputs = {a, b};
  const auto zeros = map_aten(call, {});
  ASSERT_TRUE(zeros);
  ASSERT_EQ(zeros->size(), 1U);
  EXPECT_EQ(std::get<Pointwise>(zeros->front().op).function, PointwiseFunction::fill);
}

}  // namespace
}  // namespace ridgeline::trace
