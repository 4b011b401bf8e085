// The law of gathering products: how taps, strides and groups of channels fall into steps and tiles.
#include "sim/timing/convolution/convolution_law.h"

#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"

namespace ridgeline {
namespace {

using Role = Gathering::Role;

class ConvolutionLaw : public ::testing::Test {
 protected:
  /// 56 x 56 pixels of 16 images by 128 filters.
  static GemmWork forward(std::int64_t channels, std::int64_t taps) {
    GemmWork work{.family = GemmWork::Family::wgmma,
                  .type = DType::bf16,
                  .m = 16 * 56 * 56,
                  .n = 128,
                  .k = taps * channels,
                  .tile_m = 128,
                  .tile_n = 128,
                  .tile_k = 64};
    work.gathering = {.role = Role::forward, .taps = taps, .channels = channels};
    return work;
  }
  [[nodiscard]] ConvolutionTime time(const GemmWork& work, double bytes = 1e6) const {
    return convolution_law(work, gpu_, bytes, 0.0, bytes);
  }
  const Gpu gpu_ = load_gpu("nvidia-h200-sxm-141gb");
};

TEST_F(ConvolutionLaw, every_tap_begins_a_step_of_its_own) {
  EXPECT_EQ(time(forward(64, 9)).steps, 9);
  EXPECT_EQ(time(forward(65, 9)).steps, 18);
  EXPECT_EQ(time(forward(8, 25)).steps, 25);
  EXPECT_EQ(time(forward(64, 9)).tiles, 392);
}

TEST_F(ConvolutionLaw, few_channels_without_whole_steps_run_over_taps_and_channels_as_one) {
  GemmWork work = forward(3, 49);
  work.gathering.dense_taps = true;
  EXPECT_EQ(time(work).steps, 3);  // 147 values
  work.gathering.dense_taps = false;
  EXPECT_EQ(time(work).steps, 49);
}

TEST_F(ConvolutionLaw, input_pixels_of_a_stride_have_tiles_of_their_own_and_a_share_of_the_taps) {
  GemmWork work = forward(64, 9);
  work.gathering.role = Role::input_gradient;
  work.gathering.phases = 4;
  work.m = 129;
  const ConvolutionTime four = time(work);
  EXPECT_EQ(four.tiles, 4);
  EXPECT_EQ(four.steps, 3);  // 9/4 of a step
  work.gathering.phases = 1;
  EXPECT_EQ(time(work).tiles, 2);
  EXPECT_EQ(time(work).steps, 9);
}

TEST_F(ConvolutionLaw, weight_gradients_of_persistent_kernels_have_tiles_for_each_tap) {
  GemmWork work = forward(48, 9);
  work.gathering.role = Role::weight_gradient;
  work.m = 128;
  work.n = 9 * 48;
  work.k = 50000;
  EXPECT_EQ(time(work).tiles, 9);
  work.family = GemmWork::Family::mma_sync;
  EXPECT_EQ(time(work).tiles, 4);  // 432 columns of 128
  work.split_k = 8;
  EXPECT_LT(time(work).total, [&] {
    GemmWork whole = work;
    whole.split_k = 1;
    return time(whole).total;
  }());
}

TEST_F(ConvolutionLaw, pixels_of_whole_lines_load_faster) {
  EXPECT_LT(time(forward(64, 9)).loads, time(forward(72, 9)).loads);
  EXPECT_EQ(time(forward(64, 9)).loads, time(forward(128, 9)).loads);
}

TEST_F(ConvolutionLaw, computed_addresses_and_scattered_results_cost_time) {
  GemmWork work = forward(512, 9);
  const double plain = time(work).total;
  work.gathering.indexed = true;
  EXPECT_GT(time(work).total, plain);
  GemmWork scattered = forward(64, 1);
  scattered.family = GemmWork::Family::simt;
  scattered.gathering = {.role = Role::scattered_filters};
  const double filters = time(scattered, 1e9).total;
  scattered.gathering.role = Role::scattered_images;  // which are cleared first
  EXPECT_GT(time(scattered, 1e9).total, filters);
}

TEST_F(ConvolutionLaw, what_the_l2_holds_is_not_waited_for) {
  const GemmWork work = forward(64, 1);
  EXPECT_LT(convolution_law(work, gpu_, 0.0, 2e9, 1e6).total, convolution_law(work, gpu_, 2e9, 0.0, 1e6).total);
}

}  // namespace
}  // namespace ridgeline
