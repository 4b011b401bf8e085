// What kernels read, ask for and write, counted by hand.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

const Gpu& a100() {
  static const Gpu gpu = load_gpu("nvidia-a100-sxm4-80gb");
  return gpu;
}

// Every column of tiles asks for all of A, every row for all of B.
TEST(Accesses, AProductAsksForAPanelOfEachOperandATile) {
  const Matmul op{.type = DType::fp16, .batch = 1, .m = 8192, .n = 1024, .k = 512, .layout = Layout::nt};
  const LoweredOp lowered = lower(op, a100(), Software{});
  ASSERT_EQ(lowered.launches.size(), 1u);
  const KernelLaunch& launch = lowered.launches[0];
  const auto& work = std::get<GemmWork>(launch.work);
  ASSERT_EQ(work.split_k, 1);
  const double a = 8192.0 * 512.0 * 2.0, b = 1024.0 * 512.0 * 2.0;
  ASSERT_GE(launch.reads.size(), 2u);
  EXPECT_DOUBLE_EQ(launch.reads[0].bytes, a);
  EXPECT_DOUBLE_EQ(launch.reads[1].bytes, b);
  EXPECT_DOUBLE_EQ(launch.reads[0].requested, a * static_cast<double>(ceil_div<std::int64_t>(1024, work.tile_n)));
  EXPECT_DOUBLE_EQ(launch.reads[1].requested, b * static_cast<double>(ceil_div<std::int64_t>(8192, work.tile_m)));
  EXPECT_DOUBLE_EQ(launch.written_bytes(), 8192.0 * 1024.0 * 2.0);
}

TEST(Accesses, ACopyReadsWhatItWrites) {
  constexpr double kBytes = 4096.0 * 1024.0 * 4.0;
  for (const CopyKind kind : {CopyKind::contiguous, CopyKind::transpose, CopyKind::permute}) {
    double read = 0.0, written = 0.0;
    for (const KernelLaunch& launch : lower(Copy{kind, DType::fp32, 4096, 1024, 1}, a100(), Software{}).launches) {
      read += launch.read_bytes();
      written += launch.written_bytes();
    }
    EXPECT_DOUBLE_EQ(read, kBytes) << static_cast<int>(kind);
    EXPECT_DOUBLE_EQ(written, kBytes) << static_cast<int>(kind);
  }
}

TEST(Accesses, ASumOfTwoTensorsReadsBothAndWritesOne) {
  Pointwise add{
      .function = PointwiseFunction::add, .rows = 1024, .cols = 1024, .input_count = 2, .output = DType::fp32};
  add.inputs[0] = DType::fp32;
  add.inputs[1] = DType::bf16;
  const LoweredOp lowered = lower(add, a100(), Software{});
  ASSERT_EQ(lowered.launches.size(), 1u);
  EXPECT_DOUBLE_EQ(lowered.launches[0].read_bytes(), 1024.0 * 1024.0 * (4.0 + 2.0));
  EXPECT_DOUBLE_EQ(lowered.launches[0].written_bytes(), 1024.0 * 1024.0 * 4.0);
}

// Q, K and V (and a bias) are its inputs; what it makes comes after them.
TEST(Accesses, AttentionWritesItsResultAndItsStatisticsAndReadsWhatItIsGiven) {
  for (const AttentionBackend backend : {AttentionBackend::flash, AttentionBackend::efficient, AttentionBackend::cudnn})
    for (const bool bias : {false, true}) {
      if (bias && backend == AttentionBackend::flash) continue;  // takes none
      const Attention op{.backend = backend,
                         .type = DType::bf16,
                         .batch = 8,
                         .heads = 16,
                         .kv_heads = 16,
                         .seq_q = 512,
                         .seq_k = 512,
                         .head_dim = 64,
                         .bias = bias};
      const int inputs = bias ? 4 : 3;
      bool result = false, statistics = false;
      for (const KernelLaunch& launch : lower(op, a100(), Software{}).launches) {
        for (const Access& read : launch.reads) EXPECT_LT(read.operand, inputs) << launch.name;
        for (const Access& write : launch.writes) {
          EXPECT_TRUE(write.operand == Access::kTemporary || write.operand >= inputs) << launch.name << write.operand;
          result |= write.operand == inputs && write.bytes == 8.0 * 16 * 512 * 64 * 2;
          statistics |= write.operand == inputs + 1;
        }
      }
      EXPECT_TRUE(result);
      EXPECT_TRUE(statistics);
    }
}

}  // namespace
}  // namespace ridgeline
