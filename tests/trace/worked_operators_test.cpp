// Which operator of a profiler's trace a kernel is counted for, worked out by hand: operators within operators, copies
// of operands, casts of autocast, kernels without launch or operator, collectives beside the network.
#include <gtest/gtest.h>

#include "sim/units/user_error.h"
#include "tests/support/trace_lines.h"

namespace ridgeline::trace {
namespace {

const std::string kOneMatrix = tensors({"[3, 5]"}), kTwoMatrices = tensors({"[3, 5]", "[3, 5]"});

/// Names of calls with the microseconds of their kernels.
std::string calls_of(const Replayable& r) {
  std::string text;
  for (const RecordedCall& call : r.recorded)
    text += fmt::format("{} {:.6g}{}; ", call.name, call.measured * 1e6, call.understood ? "" : " ?");
  return text;
}
std::string defects_of_trace(const Replayable& r) {
  std::string text;
  for (const auto& [what, times] : r.defects.counts) text += fmt::format("{}: {}; ", what, times);
  return text;
}

TEST(WorkedOperators, TheOutermostThatIsUnderstoodTakesAllItsKernels) {
  TraceLines lines;
  // linear has no rule, addmm has: both kernels are its.
  lines.op(0, 90, "aten::linear").op(10, 70, "aten::addmm", tensors({"[5]", "[3, 7]", "[7, 5]"}));
  lines.op(20, 20, "aten::mul", kTwoMatrices).launch(25, 100, 3, 1).launch(50, 110, 5, 2);
  EXPECT_EQ(calls_of(lines.read()), "aten::addmm 8; ");
  // A product whose sides do not fit is not understood: what is in it stands by itself.
  TraceLines inside;
  inside.op(0, 90, "aten::mm", tensors({"[3, 7]", "[6, 5]"})).op(20, 20, "aten::mul", kTwoMatrices);
  inside.launch(25, 100, 3, 1).launch(50, 110, 5, 2);
  EXPECT_EQ(calls_of(inside.read()), "aten::mul 3; aten::mm 5 ?; ");
  // Nobody around it is understood: the innermost costs its bytes.
  TraceLines unknown;
  unknown.op(0, 90, "mine::outer", kOneMatrix)
      .op(20, 20, "mine::inner", kTwoMatrices)
      .launch(25, 100, 3, 1)
      .launch(28, 105, 4, 2);
  unknown.launch(50, 110, 5, 3);
  EXPECT_EQ(calls_of(unknown.read()), "mine::inner 7 ?; mine::outer 5 ?; ");
}

TEST(WorkedOperators, CopiesOfOperandsAreCallsOfTheirOwn) {
  const std::string cast = R"("Input Dims": [[3, 5], [3, 5]], "Input type": ["float", "c10::BFloat16"])";
  TraceLines lines;
  lines.op(0, 90, "aten::mul", kTwoMatrices)
      .op(10, 10, "aten::copy_", cast)
      .launch(12, 100, 3, 1)
      .launch(50, 110, 5, 2);
  EXPECT_EQ(calls_of(lines.read()), "aten::copy_ 3; aten::mul 5; ");
  // Rules that copy themselves keep theirs.
  TraceLines clones;
  clones.op(0, 90, "aten::clone", kOneMatrix)
      .op(10, 10, "aten::copy_", kTwoMatrices)
      .launch(12, 100, 3, 1)
      .launch(50, 110, 5, 2);
  EXPECT_EQ(calls_of(clones.read()), "aten::clone 8; ");
  // So do those that consist of nothing but a copy, save a concatenation, which is one of each part.
  TraceLines only;
  only.op(0, 40, "aten::clone", kOneMatrix).op(10, 10, "aten::copy_", kTwoMatrices).launch(12, 100, 3, 1);
  only.op(50, 40, "aten::cat").op(60, 10, "aten::copy_", kTwoMatrices).launch(62, 110, 4, 2);
  only.op(72, 10, "aten::copy_", kTwoMatrices).launch(74, 120, 5, 3);
  EXPECT_EQ(calls_of(only.read()), "aten::clone 3; aten::copy_ 4; aten::copy_ 5; ");
}

// Autocast casts inside the operator and calls it anew.
TEST(WorkedOperators, AnOperatorThatCallsItselfIsTheInnerOne) {
  TraceLines lines;
  lines.op(0, 90, "aten::exp", tensors({"[3, 5]"}, "c10::BFloat16"));
  lines.op(5, 20, "aten::_to_copy")
      .op(10, 10, "aten::copy_", R"("Input Dims": [[3, 5], [3, 5]], "Input type": ["float", "c10::BFloat16"])");
  lines.launch(12, 100, 3, 1).op(40, 20, "aten::exp", kOneMatrix).launch(50, 110, 5, 2);
  const Replayable r = lines.read();
  EXPECT_EQ(calls_of(r), "aten::copy_ 3; aten::exp 5; ");
  EXPECT_EQ(text_of(r.recording.trace.ops.at(0)), "cast 3x5 bf16>fp32 contiguous");
  EXPECT_EQ(text_of(r.recording.trace.ops.at(1)), "other 3x5 fp32>fp32 contiguous");
}

TEST(WorkedOperators, KernelsAreFoundByTheirLaunchOrTheirOperator) {
  TraceLines lines;
  // Its launch is missing, its operator known by number; numbers from 1 on are such.
  lines.op(0, 30, "aten::relu", kOneMatrix + R"(, "External id": 5)")
      .gpu(100, 3, "k", 91, 7, "kernel", R"(, "External id": 5)");
  lines.op(40, 30, "aten::tanh", kOneMatrix + R"(, "External id": 0)").launch(45, 110, 4, 0);
  lines.gpu(120, 5, "k", 92, 7, "kernel", R"(, "External id": 0)");
  // A launch outside all operators whose kernel names one.
  lines.op(80, 10, "aten::neg", kOneMatrix + R"(, "External id": 9)").call(95, "cudaLaunchKernel", 3);
  lines.gpu(130, 6, "k", 3, 7, "kernel", R"(, "External id": 9)");
  lines.op(200, 5, "aten::view");
  const Replayable r = lines.read();
  EXPECT_EQ(calls_of(r), "aten::relu 3; aten::tanh 4; aten::neg 6; k 5 ?; ");
  EXPECT_EQ(defects_of_trace(r),
            "GPU activities whose launch call is missing, placed by their operator: 1; GPU activities without launch "
            "call and operator: 1; calls without shapes or a rule, their measured time carried over by class: 1; ");
}

TEST(WorkedOperators, OptimizersOfApexLaunchWithoutOperators) {
  TraceLines lines;
  lines.op(0, 30, "aten::relu", kOneMatrix).launch(5, 40, 3, 1);
  lines.call(50, "cudaLaunchKernel", 2);
  lines.gpu(60, 9, "void multi_tensor_apply_kernel<AdamFunctor<c10::Half>>", 2).op(80, 1, "aten::view");
  const Replayable r = lines.read();
  EXPECT_EQ(calls_of(r), "aten::relu 3; apex::multi_tensor_adam 9; ");
  EXPECT_EQ(text_of(r.recording.trace.ops.at(1)), "multi_tensor fused_adam fp16 sizes=1572864");  // 24 blocks
}

// Kernels name the type of what profilers leave out, and whether products ran in TF32.
TEST(WorkedOperators, KernelsSayTypes) {
  const auto op_with = [](const std::string& name, const std::string& arguments, const std::string& kernel,
                          const std::string& category = "kernel") {
    TraceLines lines;
    lines.op(0, 30, name, arguments).call(5, "cudaLaunchKernel", 1).gpu(40, 3, kernel, 1, 7, category);
    return text_of(lines.read().recording.trace.ops.at(0));
  };
  const std::string list = R"("Input Dims": [[[3, 5], [7]]], "Input type": ["TensorList"])";
  EXPECT_EQ(op_with("aten::_foreach_norm", list, "k"), "multi_tensor norm fp32 sizes=15,7");
  EXPECT_EQ(op_with("aten::_foreach_norm", list, "k<c10::BFloat16>"), "multi_tensor norm bf16 sizes=15,7");
  EXPECT_EQ(op_with("aten::_foreach_norm", list, "k<OpaqueType<2u>>"), "multi_tensor norm bf16 sizes=15,7");
  EXPECT_EQ(op_with("aten::_foreach_norm", list, "k<c10::Half>"), "multi_tensor norm fp16 sizes=15,7");
  const std::string product = tensors({"[3, 7]", "[7, 5]"});
  EXPECT_EQ(op_with("aten::mm", product, "k"), "matmul fp32 batch=1 m=3 n=5 k=7 nn");
  EXPECT_EQ(op_with("aten::mm", product, "xmma_tf32f32"), "matmul tf32 batch=1 m=3 n=5 k=7 nn");
  EXPECT_EQ(op_with("aten::mm", product, "cutlass_s1688gemm"), "matmul tf32 batch=1 m=3 n=5 k=7 nn");
  EXPECT_EQ(op_with("aten::copy_", kTwoMatrices, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"),
            "copy host_to_device fp32 rows=3 cols=5 parts=1");
  EXPECT_EQ(op_with("aten::copy_", kTwoMatrices, "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy"),
            "copy device_to_host fp32 rows=3 cols=5 parts=1");
  EXPECT_EQ(op_with("aten::copy_", kTwoMatrices, "Memcpy DtoD (Device -> Device)", "gpu_memcpy"),
            "copy contiguous fp32 rows=3 cols=5 parts=1");
}

TEST(WorkedOperators, PhasesChangeWhereTheyBegin) {
  TraceLines lines;
  lines.op(0, 10, "aten::relu", kOneMatrix).launch(4, 300, 1, 1);
  lines.op(20, 10, "autograd::engine::evaluate_function: A", "", 2)
      .op(21, 8, "aten::neg", kOneMatrix, 2)
      .launch(24, 310, 1, 2, 2);
  lines.op(40, 10, "autograd::engine::evaluate_function: B", "", 2)
      .op(41, 8, "aten::abs", kOneMatrix, 2)
      .launch(44, 320, 1, 3, 2);
  lines.op(30, 5, "aten::tanh", kOneMatrix).launch(31, 315, 1, 4);  // between two nodes, on the other thread
  lines.op(60, 10, "aten::exp", kOneMatrix).launch(64, 330, 1, 5);
  lines.mark(80, 20, "Optimizer.step#A")
      .op(79, 21, "aten::sqrt", kOneMatrix)
      .launch(80, 340, 1, 6)
      .launch(99, 350, 1, 7);
  lines.op(100, 8, "aten::log", kOneMatrix).launch(100, 360, 1, 8);
  std::string phases;
  const Replayable r = lines.read();
  constexpr const char* kNames[] = {"setup", "forward", "backward", "clipping", "optimizer", "other"};
  for (std::size_t i = 0; i < r.recording.trace.calls.size(); ++i)
    phases += fmt::format("{} {}; ", r.recorded[r.origin[i]].name.substr(6),
                          kNames[static_cast<int>(r.recording.trace.calls[i].phase)]);
  EXPECT_EQ(phases,
            "relu forward; neg backward; tanh forward; abs backward; exp clipping; sqrt optimizer; log clipping; ");
}

TEST(WorkedOperators, WaitsAndEndsOfAStep) {
  TraceLines lines;
  lines.op(0, 10, "aten::relu", kOneMatrix).launch(4, 30, 5, 1);
  lines.call(20, "cudaDeviceSynchronize", 2, 1, 30);
  lines.op(60, 10, "aten::tanh", kOneMatrix).launch(64, 70, 5, 3).call(80, "cudaStreamSynchronize", 4, 1, 30);
  const Replayable r = lines.read();
  // From 0, as 8 - 50 is before it, to 8: 8 - 2.4 = 5.6 (the operator at 0 is of the time before).  ..50: 42 less 30 of
  // waiting, and 0.6.  ..68: 18 - 0.95 - 2.4 = 14.65, 15.25.  ..81: 13.25.  The last wait ends the measurement.
  EXPECT_EQ(listing_of(r.recording.trace),
            "step\n"
            "host python_fixed 5\n"
            "relu 3x5 fp32>fp32 contiguous [0:60 > 1:60] forward\n"
            "host python_fixed 12\n"
            "wait\n"
            "host python_fixed 15\n"
            "tanh 3x5 fp32>fp32 contiguous [1:60 > 2:60] forward\n"
            "host python_fixed 13\n");
}

TEST(WorkedOperators, WhatCannotBeReplayedSaysWhy) {
  const auto told = [](const TraceLines& lines) {
    try {
      (void)lines.read();
    } catch (const UserError& error) {
      const std::string text = error.what();
      return text.substr(text.find(": ") + 2);
    }
    return std::string("read");
  };
  EXPECT_EQ(told(TraceLines().launch(5, 10, 3, 1)),
            "the trace has no operators (category cpu_op): record it with torch.profiler.ProfilerActivity.CPU");
  EXPECT_EQ(told(TraceLines().op(0, 10, "aten::relu", kOneMatrix)),
            "nothing ran on a GPU in this trace: record it on one, with torch.profiler.ProfilerActivity.CUDA");
  EXPECT_EQ(told(TraceLines().op(0, 10, "aten::relu", kOneMatrix).gpu(500, 3, "k", 1)),
            "nothing was launched in the step chosen");
  EXPECT_EQ(told(TraceLines().op(0, 10, "aten::relu", kOneMatrix).launch(5, 10, 3, 1)), "read");
}

TEST(WorkedOperators, KernelsOnSeveralDevicesAreNoted) {
  TraceLines lines;
  lines.op(0, 50, "aten::relu", kOneMatrix).call(5, "cudaLaunchKernel", 1).call(15, "cudaLaunchKernel", 2);
  lines.gpu(30, 3, "k", 1, 7, "kernel", R"(, "device": 0)").gpu(31, 3, "k", 2, 7, "kernel", R"(, "device": 1)");
  EXPECT_EQ(lines.read().recording.trace.notes,
            std::vector<std::string>{
                "one process launched kernels on 2 GPUs: they are predicted one behind the other on one"});
}

}  // namespace
}  // namespace ridgeline::trace
