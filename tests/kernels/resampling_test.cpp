// Interpolation, padding, sampling and unfolding: kernels and grids as PyTorch launches them, and what they move.
#include <gtest/gtest.h>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "sim/launch/kernel_launch.h"

namespace ridgeline {
namespace {

using R = ResamplingFunction;

std::vector<KernelLaunch> launches_of(const Resampling& op) {
  static const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  static const Software software = load_software("pytorch-2.11");
  return lower(op, gpu, software).launches;
}
Resampling image(R function, bool backward, std::int64_t batch, std::int64_t channels, std::int64_t inputs,
                 std::int64_t outputs) {
  return {.function = function,
          .backward = backward,
          .batch = batch,
          .channels = channels,
          .inputs = inputs,
          .outputs = outputs};
}

TEST(Resampling, a_thread_walks_the_planes_of_its_pixel) {
  // Grids of UpSampleBilinear2d.cu and UpSampleBicubic2d.cu as profiled: a thread a pixel of one plane.
  const auto bilinear = launches_of(image(R::bilinear, false, 3, 3, 724 * 543, 1448 * 1086));
  ASSERT_EQ(bilinear.size(), 1U);
  EXPECT_EQ(bilinear[0].grid[0], 1536);
  const auto bicubic = launches_of(image(R::bicubic, false, 6, 3, 46 * 46, 92 * 92));
  ASSERT_EQ(bicubic.size(), 2U);  // the result is cleared first
  EXPECT_EQ(bicubic[0].grid[0], 149);
  EXPECT_EQ(bicubic[1].grid[0], 9);
}

TEST(Resampling, gradients_are_added_to_a_cleared_image) {
  for (const R function :
       {R::bilinear, R::bicubic, R::linear, R::reflection_pad, R::replication_pad, R::grid_bilinear}) {
    const auto launches = launches_of(image(function, true, 2, 8, 1000, 4000));
    ASSERT_EQ(launches.size(), 2U) << static_cast<int>(function);
    EXPECT_EQ(launches[0].writes[0].bytes, 2.0 * 8 * 1000 * 4);
    EXPECT_EQ(launches[0].writes[0].operand, launches[1].writes[0].operand);
  }
  const auto bilinear = launches_of(image(R::bilinear, true, 3, 3, 724 * 543, 1448 * 1086));
  EXPECT_EQ(bilinear[1].grid[0], 13822);  // a thread a pixel of every plane
}

TEST(Resampling, every_image_is_unfolded_by_a_kernel_of_its_own) {
  Resampling op = image(R::unfold, false, 10, 64, 64 * 64, 32 * 32);
  op.taps = 4;
  const auto launches = launches_of(op);
  ASSERT_EQ(launches.size(), 10U);
  EXPECT_EQ(launches[0].grid[0], 64);
  double written = 0.0;
  for (const KernelLaunch& launch : launches) written += launch.writes[0].bytes;
  EXPECT_DOUBLE_EQ(written, 10.0 * 64 * 32 * 32 * 4 * 4);
}

TEST(Resampling, needs_pixels_on_both_sides) {
  for (const Resampling& none : {image(R::bilinear, false, 0, 1, 4, 4), image(R::bilinear, false, 1, 1, 0, 4),
                                 image(R::bilinear, false, 1, 1, 4, 0)})
    EXPECT_THROW(launches_of(none), std::invalid_argument);
}

}  // namespace
}  // namespace ridgeline
