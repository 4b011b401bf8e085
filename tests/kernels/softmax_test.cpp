// Blocks of softmax on rows that are read again, which PyTorch's versions size differently; what its backward pass
// moves where types differ.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {
namespace {

int threads(std::int64_t columns, const char* software) {
  const Softmax op{.input = DType::bf16, .output = DType::bf16, .rows = 4096, .cols = columns};
  return lower(op, load_gpu("nvidia-h100-sxm5-80gb"), load_software(software)).launches.front().threads_per_block;
}

TEST(Softmax, blocks_on_rows_of_broken_vectors_are_full_since_2_1) {
  EXPECT_EQ(threads(5185, "pytorch-2.0"), 512);
  EXPECT_EQ(threads(5185, "pytorch-2.5"), 1024);
  EXPECT_EQ(threads(5184, "pytorch-2.5"), threads(5184, "pytorch-2.0")) << "whole vectors";
}

// Under autocast the gradient and the result are fp32, the gradient of the scores is fp16. Taking one for the other
// would halve what is read and double what is written.
TEST(Softmax, backward_reads_the_wide_type_and_writes_the_narrow_one) {
  const Softmax op{.backward = true, .input = DType::fp32, .output = DType::fp16, .rows = 4096, .cols = 512};
  const LoweredOp lowered = lower(op, load_gpu("nvidia-h200-sxm-141gb"), load_software("pytorch-2.11"));
  ASSERT_EQ(lowered.launches.size(), 2U);
  const KernelLaunch &product = lowered.launches[0], &sum = lowered.launches[1];
  const double wide = 4.0 * 4096 * 512, narrow = 2.0 * 4096 * 512;
  EXPECT_DOUBLE_EQ(product.read_bytes(), 2.0 * wide);
  EXPECT_DOUBLE_EQ(product.written_bytes(), wide);
  EXPECT_DOUBLE_EQ(sum.read_bytes(), 2.0 * wide);
  EXPECT_DOUBLE_EQ(sum.written_bytes(), narrow);
}

}  // namespace
}  // namespace ridgeline
