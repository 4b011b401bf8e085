// What is lowered by the shape of a chip alone is what the chip itself would lower, and products are none of it.
#include <gtest/gtest.h>

#include <vector>

#include "sim/hardware/load_gpu.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {
namespace {

TEST(ShapeLowering, ProductsAttentionAndConvolutionsAreChosenBySpeed) {
  EXPECT_FALSE(is_lowered_by_shape(Matmul{}));
  EXPECT_FALSE(is_lowered_by_shape(Attention{}));
  EXPECT_FALSE(is_lowered_by_shape(Convolution{}));
  EXPECT_TRUE(is_lowered_by_shape(MultiTensor{}));
  EXPECT_TRUE(is_lowered_by_shape(Embedding{}));
  EXPECT_THROW(lower_by_shape(Matmul{}, load_gpu("nvidia-t4"), Software{}), std::logic_error);
}

TEST(ShapeLowering, ChipsThatDifferInSpeedAloneHaveOneShape) {
  const Gpu chip = load_gpu("nvidia-h100-sxm5-80gb");
  Gpu other = chip;
  other.name = "other";
  other.clock.boost = 2.0 * chip.clock.boost;
  other.dram.bandwidth = 2.0 * chip.dram.bandwidth;
  other.power.limit = 0.5 * chip.power.limit;
  EXPECT_TRUE(ChipShape(chip) == ChipShape(other));
  other = chip;
  other.sm.count += 1;
  EXPECT_FALSE(ChipShape(chip) == ChipShape(other));
  other = chip;
  other.l2.capacity = 2.0 * chip.l2.capacity;
  EXPECT_FALSE(ChipShape(chip) == ChipShape(other));
  other = chip;
  other.architecture = Architecture::turing;
  EXPECT_FALSE(ChipShape(chip) == ChipShape(other));
  other = chip;
  other.gemm.replace = !chip.gemm.replace;
  EXPECT_FALSE(ChipShape(chip) == ChipShape(other));
}

}  // namespace
}  // namespace ridgeline
