// Blocks of softmax on rows that are read again, which PyTorch's versions size differently.
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

}  // namespace
}  // namespace ridgeline
