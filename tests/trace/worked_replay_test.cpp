// A small profiler trace and everything that is read out of it, worked out by hand: which operator a kernel belongs to,
// the phase, the host's time, what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>

#include "sim/trace/aten/library_kernel.h"
#include "sim/trace/op_trace/read_op_trace.h"
#include "sim/trace/profiler/profiler_arguments.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "tests/support/temporary_path.h"
#include "tests/support/trace_lines.h"
#include "tests/support/worked_call.h"

namespace ridgeline::trace {
namespace {

// Microseconds of the host: from call to call, less 0.95 for each operator begun and 2.4 for each launch since.
TEST(WorkedReplay, OfTwoStepsTheLongerIsReplayed) {
  TraceLines lines;
  lines.mark(100, 200, "ProfilerStep#1").op(110, 40, "aten::mm", tensors({"[3, 7]", "[7, 5]"})).launch(120, 140, 30, 0);
  lines.mark(300, 600, "ProfilerStep#2");
  lines.op(310, 60, "aten::linear").op(312, 5, "aten::t").op(320, 40, "aten::mm", tensors({"[3, 7]", "[7, 5]"}));
  lines.launch(340, 360, 20, 1);
  lines.op(380, 20, "aten::relu", tensors({"[3, 5]"})).launch(390, 400, 10, 2);
  lines.memory(395, 1000, 4000).memory(405, 1500, 3000).memory(950, 9000, 9000);
  // Backward, on a thread of its own.
  lines.op(420, 40, "autograd::engine::evaluate_function: ReluBackward0", "", 2);
  lines.op(425, 25, "aten::threshold_backward", tensors({"[3, 5]", "[3, 5]"}), 2).launch(430, 440, 12, 3, 2);
  lines.op(470, 20, "aten::mul", tensors({"[3, 5]", "[3, 5]"})).launch(475, 480, 5, 4);
  lines.mark(500, 60, "Optimizer.step#SGD.step");
  lines.op(505, 20, "aten::add_", tensors({"[3, 5]", "[3, 5]"})).launch(510, 520, 6, 5);
  // The loss is read: copied, and waited for.
  lines.op(590, 60, "aten::_local_scalar_dense", tensors({"[]"}));
  lines.call(595, "cudaMemcpyAsync", 6)
      .gpu(610, 2, "Memcpy DtoH (Device -> Pinned)", 6, 7, "gpu_memcpy", ", \"bytes\": 4");
  lines.call(600, "cudaStreamSynchronize", 7, 1, 30);
  lines.op(700, 20, "aten::relu", tensors({"[3, 5]"})).launch(705, 710, 10, 8);
  const Replayable r = lines.read();
  EXPECT_EQ(
      measured_of(r),
      "aten::mm: 20 us of 1 kernels\n"
      "aten::relu: 10 us of 1 kernels\n"
      "aten::threshold_backward: 12 us of 1 kernels\n"
      "aten::mul: 5 us of 1 kernels\n"
      "aten::add_: 6 us of 1 kernels\n"
      "aten::_local_scalar_dense: 2 us of 1 kernels\n"
      "aten::relu: 10 us of 1 kernels\n"
      "ProfilerStep#2, the one of median GPU time of 2: busy 65 sum 65 span 360 step 600 kernels 7 allocated 1500 "
      "reserved 4000 on NVIDIA H200");
  // 300..344: 44 - 3 x 0.95 - 2.4 = 38.75.  ..394: 50 - 0.95 - 2.4 = 46.65, with 0.75 left 47.4.  ..434: 40 - 2 x 0.95
  // - 2.4 - 2 x 0.8 = 34.1, 34.5.  ..479: 45 - 0.95 - 2.4 = 41.65, 42.15.  ..514: 35 - 0.95 - 2.4 = 31.65, 31.8. ..630:
  // 116 - 0.95 - 2.4 - 30 of waiting = 82.65, 83.45.  ..709: 79 - 0.95 - 2.4 = 75.65, 76.1.  ..900: 191.1.
  EXPECT_EQ(listing_of(r.recording.trace),
            "step\n"
            "host python_fixed 38\n"
            "matmul fp32 batch=1 m=3 n=5 k=7 nn [0:84 1:140 > 2:60] forward\n"
            "host python_fixed 47\n"
            "relu 3x5 fp32>fp32 contiguous [2:60 > 3:60] forward\n"
            "host python_fixed 34\n"
            "relu_backward 3x5 fp32,fp32>fp32 contiguous [3:60 4:60 > 5:60] backward\n"
            "host python_fixed 42\n"
            "mul 3x5 fp32,fp32>fp32 contiguous [5:60 3:60 > 6:60] clipping\n"
            "host python_fixed 31\n"
            "add_in_place 3x5 fp32,fp32>fp32 contiguous [6:60 5:60 > 6:60] optimizer\n"
            "host python_fixed 83\n"
            "copy device_to_host fp32 rows=1 cols=1 parts=1 [7:4] clipping\n"
            "wait\n"
            "host python_fixed 76\n"
            "relu 3x5 fp32>fp32 contiguous [6:60 > 8:60] clipping\n"
            "host python_fixed 191\n");
  EXPECT_TRUE(r.defects.counts.empty());
  EXPECT_TRUE(r.host_measured);
  EXPECT_FALSE(r.memory_known);
  EXPECT_EQ(r.host_slowness, 1.0);
  EXPECT_EQ(r.format, Format::pytorch_profiler);
}

// Without marks: from 50 us before the first launch returns; kernels beside each other; one without a launch.
TEST(WorkedReplay, AWholeRecordingIsOneStep) {
  TraceLines lines;
  lines.op(100, 90, "aten::mm", tensors({"[3, 7]", "[7, 5]"})).launch(160, 170, 20, 3).call(170, "cudaLaunchKernel", 4);
  lines.gpu(180, 20, "other_stream", 4, 8);
  lines.op(200, 30, "mine::op", tensors({"[5]"})).launch(210, 215, 10, 5);
  lines.gpu(240, 10, "lost", 77);
  const Replayable r = lines.read();
  // The lost kernel ran after the end: it is of no step. 114..174, from 50 before the first launch returned: 60 - 2
  // x 2.4 = 55.2.  ..214: 40 - 0.95 - 2.4 = 36.65, with 0.2 left 36.85.  ..231: 17.85.
  EXPECT_EQ(measured_of(r),
            "aten::mm: 40 us of 2 kernels, 20 beside others\n"
            "mine::op: 10 us of 1 kernels, not understood\n"
            "the whole recording, taken as one step: busy 40 sum 50 span 55 step 131 kernels 3 allocated 0 reserved 0 "
            "on NVIDIA H200");
  EXPECT_EQ(listing_of(r.recording.trace),
            "step\n"
            "host python_fixed 55\n"
            "matmul fp32 batch=1 m=3 n=5 k=7 nn [0:84 1:140 > 2:60] forward\n"
            "host python_fixed 36\n"
            "unknown mine::op read_bytes=20 written_bytes=20 [3:20 > 4:20] forward\n"
            "host python_fixed 17\n");
  EXPECT_EQ(r.defects.counts.at("GPU activities without launch call and operator"), 1);
}

TEST(WorkedReplay, NumbersAreReadOfPartsOfLongerTexts) {
  const std::string_view digits = "12345";
  EXPECT_EQ(std::get<double>(value_from_text(digits.substr(0, 2))), 12.0);
  EXPECT_EQ(std::get<double>(value_from_text(digits.substr(1, 3))), 234.0);
  const std::string_view list = "[12]345";
  EXPECT_EQ(std::get<Numbers>(value_from_text(list.substr(0, 4))), Numbers{12});
}

TEST(WorkedReplay, NamesOfKernelsSayStagesAndSplits) {
  const LibraryKernel said =
      library_kernel_of("sm80_xmma_gemm_tf32f32_tensor16x8x8_tilesize128x64x32_stage3_warpsize2x2x1");
  EXPECT_EQ(said, (LibraryKernel{LibraryKernel::Instructions::mma_sync, 64, 128, 32, 3, 0, false}));
  EXPECT_EQ(library_kernel_of("x_tensorop_gemm_tilesize128x64x32_stage1"), LibraryKernel{});
  EXPECT_EQ(library_kernel_of("x_tensorop_gemm_tilesize128x64x32_stage4_").stages, 4);
  EXPECT_EQ(library_kernel_of("x_tensorop_gemm_tilesize128x64x32_stages_2x3").stages, 0);
  const std::string name = "cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align1";
  const auto splits = [&](std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t blocks) {
    return kernel_that_ran({{name, 5e-6, 0.0, 0, blocks}}, batch, m, n).splits;
  };
  // Tiles of 128 rows by 64 columns.
  EXPECT_EQ(splits(1, 128, 1, 1), 1);
  EXPECT_EQ(splits(1, 1, 64, 3), 3);
  EXPECT_EQ(splits(1, 1, 65, 4), 2);
  EXPECT_EQ(splits(1, 129, 64, 4), 2);
  EXPECT_EQ(splits(3, 128, 64, 6), 2);
  EXPECT_EQ(splits(1, 128, 64, 2), 2);
  EXPECT_EQ(splits(0, 128, 64, 2), 0);
  EXPECT_EQ(splits(1, 0, 64, 2), 0);
  EXPECT_EQ(splits(1, 128, 0, 2), 0);
  // Sides are eights up to 512.
  const auto tile = [](const char* of) {
    const LibraryKernel found = library_kernel_of(fmt::format("x_tensorop_gemm_{}_32x3_nn", of));
    return fmt::format("{}x{}", found.m, found.n);
  };
  EXPECT_EQ(tile("512x8"), "8x512");
  EXPECT_EQ(tile("520x8"), "0x0");
  EXPECT_EQ(tile("8x512"), "512x8");
  EXPECT_EQ(tile("8x520"), "0x0");
  EXPECT_EQ(tile("12x8"), "0x0");
  EXPECT_EQ(tile("8x12"), "0x0");
  EXPECT_EQ(tile("0x8"), "0x0");
}

/// A file of this text.
std::string recording_of(const std::string& text) {
  const std::string path = temporary_path("recording.json");
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(WorkedReplay, TheToolkitIsOneOfCudasNumbers) {
  const auto cuda = [](const std::string& version) {
    return RecordingFile(recording_of(R"({"cuda_runtime_version": )" + version +
                                      R"(, "traceEvents": [{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]})"))
        .cuda();
  };
  EXPECT_DOUBLE_EQ(cuda("12040"), 12.4);
  EXPECT_DOUBLE_EQ(cuda("11080"), 11.8);
  EXPECT_DOUBLE_EQ(cuda("13000"), 13.0);
  EXPECT_DOUBLE_EQ(cuda("1000"), 1.0);
  EXPECT_DOUBLE_EQ(cuda("1000000"), 1000.0);
  EXPECT_EQ(cuda("999"), 0.0);
  EXPECT_EQ(cuda("1000001"), 0.0);
  EXPECT_EQ(cuda("-12040"), 0.0);
  EXPECT_EQ(cuda("\"12040\""), 0.0);
}

// An op trace says what it is on its first line, wherever that begins.
TEST(WorkedReplay, TheFirstLineSaysWhetherItIsAnOpTrace) {
  const std::string blanks(60, ' ');
  const auto format = [](const std::string& text) {
    try {
      return std::string(name_of(RecordingFile(recording_of(text)).format()));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(format(blanks + "{\n\"ridgeline\": 1, \"traceEvents\": [{\"ph\":\"X\"}]}"), "PyTorch profiler trace");
  EXPECT_THAT(format(blanks + "{\"a\": 1, \"ridgeline\": 1}\n"), ::testing::HasSubstr("not an op trace"));
  EXPECT_EQ(format(blanks + R"({"ridgeline":"op-trace","version":1,"parameters":0})" +
                   "\n{\"record\":\"step\"}\n{\"record\":\"end\"}\n"),
            "op trace");
}

const std::string kFirstLine = R"({"ridgeline":"op-trace","version":1,"parameters":0)";

/// The op trace of these records, of ranks as the header says.
Recording op_trace_of(const std::string& records, const std::string& header = "") {
  return parse_op_trace(kFirstLine + header + "}\n" + records, "f");
}

TEST(WorkedReplay, AStepOfAPipelineThatHoldsRoundsOnceIsItsOneAction) {
  const std::string body = "{\"record\":\"host\",\"class\":\"linear\",\"times\":1}\n",
                    repeated = "{\"record\":\"step\"}\n" + body + "{\"record\":\"repeat\",\"times\":3}\n" + body +
                               "{\"record\":\"repeated\"}\n{\"record\":\"end\"}\n",
                    plain = "{\"record\":\"step\"}\n" + body + "{\"record\":\"end\"}\n",
                    stages = R"(,"parallel":{"pipeline":2})";
  EXPECT_EQ(op_trace_of(repeated, stages).trace.stage_actions.size(), 1u);
  EXPECT_EQ(op_trace_of(plain + repeated, stages).trace.stage_actions.front().begin, 1u);
  EXPECT_EQ(op_trace_of(plain + repeated, stages).trace.stage_actions.front().end, 3u);
  EXPECT_TRUE(op_trace_of(plain, stages).trace.stage_actions.empty());
  EXPECT_TRUE(op_trace_of(repeated).trace.stage_actions.empty());
}

// Lists of tensors that the recording names keep their storages; others get one for each tensor of each list.
TEST(WorkedReplay, ListsOfTensorsKeepTheirStorages) {
  const std::string storages =
      "{\"record\":\"storage\",\"id\":0,\"bytes\":60,\"category\":\"weights\"}\n"
      "{\"record\":\"storage\",\"id\":1,\"bytes\":28,\"category\":\"weights\"}\n";
  const std::string
      list = R"({"tensors":[{"type":"fp32","sizes":[3,5],"storage":0},{"type":"fp32","sizes":[7],"storage":1}]})",
      unnamed = R"({"tensors":[{"type":"fp32","sizes":[3,5]},{"type":"fp32","sizes":[7]}]})";
  const auto call = [](const std::string& name, const std::string& in) {
    return R"({"record":"aten","name":"aten::)" + name + R"(","phase":"optimizer","in":[)" + in + "]}\n";
  };
  const Recording recording =
      op_trace_of(storages + "{\"record\":\"step\"}\n" + call("_foreach_lerp_", list + "," + unnamed) +
                  call("_foreach_norm", unnamed) + call("_foreach_norm", list) + "{\"record\":\"end\"}\n");
  std::string operations;
  for (const Call& made : recording.trace.calls) {
    operations += text_of(recording.trace.ops[made.op]);
    for (std::size_t i = 0; i < made.inputs; ++i) {
      const Operand& operand = recording.trace.operands[made.operands_begin + i];
      operations += fmt::format(" {}:{}", operand.storage, operand.bytes);
    }
    operations += "\n";
  }
  EXPECT_EQ(operations,
            "multi_tensor lerp fp32 sizes=15,7 0:60 1:28 2:60 3:28\n"
            "multi_tensor norm fp32 sizes=15,7 2:60 3:28\n"
            "multi_tensor norm fp32 sizes=15,7 0:60 1:28\n");
}

}  // namespace
}  // namespace ridgeline::trace
