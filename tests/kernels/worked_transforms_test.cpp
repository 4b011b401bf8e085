// Convolutions as products of transformed tensors (Winograd, Fourier), and what turns and rounds tensors, worked out by
// hand.
#include <gtest/gtest.h>

#include "sim/kernels/convolution/convolution_kernel.h"
#include "sim/kernels/convolution/image_layout.h"
#include "sim/kernels/convolution/transformed_convolution.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/likely_time.h"
#include "tests/kernels/one_tile_chips.h"

namespace ridgeline::worked_transforms {
namespace {

using testing_support::chip_of_cores;
using testing_support::text_of;
using Role = Gathering::Role;

ConvolutionProblem problem_of(Role role, std::int64_t channels, std::int64_t filters, std::int64_t size) {
  return {.role = role,
          .type = DType::fp32,
          .batch = 5,
          .channels = channels,
          .size = size,
          .filters = filters,
          .out_size = size,
          .kernel = 3};
}
/// Of a form of transformed tensors: its first product, then how tensors grow.
std::string transformed_text(const ConvolutionProblem& problem, const Gpu& gpu) {
  const auto form = transformed_convolution(problem, gpu);
  if (!form) return "none";
  const GemmWork& work = form->kernels.front().work;
  return fmt::format("{}: {}x{}x{}, image {:.6g} output {:.6g} filter {:.6g} passes {} launches {:.6g}{}", form->name,
                     work.m, work.n, work.k, form->image_growth, form->output_growth, form->filter_growth, form->passes,
                     form->image_launch_bytes, form->preferred ? " preferred" : "");
}

// Of the other tiles those within 1.2 of the first go with it, by their rank: seconds with what is launched beside
// them, times what speaks against them. Beside the one that is shown run all other kernels of the op.
TEST(WorkedTransforms, a_convolution_may_run_in_the_tiles_that_rank_next) {
  const Gpu hopper = load_gpu("nvidia-h200-sxm-141gb");
  const AnalyticEngine engine(hopper);
  for (const bool channels_last : {true, false}) {
    const Convolution op{.channels_last = channels_last,
                         .type = DType::bf16,
                         .batch = 16,
                         .in_channels = 60,
                         .size = 28,
                         .out_channels = 100,
                         .kernel = 3};
    const auto launches = lower(op, hopper, {}).launches;
    const KernelLaunch* shown = nullptr;
    double beside = 0.0;
    for (const KernelLaunch& launch : launches)
      if (std::holds_alternative<GemmWork>(launch.work)) shown = &launch;
      else beside += engine.time(launch, {}).time.value();
    ASSERT_NE(shown, nullptr);
    EXPECT_NEAR(shown->around, beside, 1e-9 * beside);
    ASSERT_NE(shown->others, nullptr);
    ASSERT_FALSE(shown->others->empty());
    const auto rank_of = [&](KernelLaunch launch, double around) {
      launch.others = nullptr;
      return (engine.time(launch, {}).time.value() + around) * dislike_of_form(std::get<GemmWork>(launch.work));
    };
    const double first = rank_of(*shown, shown->around);
    double last = first;
    const auto& own = std::get<GemmWork>(shown->work);
    for (const OtherForm& other : *shown->others) {
      const auto& work = std::get<GemmWork>(other.launch.work);
      EXPECT_TRUE(work.family != own.family || work.tile_m != own.tile_m || work.tile_n != own.tile_n ||
                  work.tile_k != own.tile_k);
      EXPECT_EQ(other.launch.flops, shown->flops);
      EXPECT_EQ(other.launch.reads.size(), 2u);
      const double rank = rank_of(other.launch, other.around);
      EXPECT_GE(rank, last);
      last = rank;
    }
    EXPECT_LE(last, 1.3 * first) << "1.2 at full clock, before the board's limit";
  }
}

// F(4 x 4) of 3 x 3: 36 products over blocks of 16 pixels. 7 x 7 pixels are 4 blocks: 144 values where 49 were; a
// filter has 36 instead of 9. Rows of all products lie under each other, in whole tiles of 32.
TEST(WorkedTransforms, winograds_weight_gradients_multiply_36_values_of_a_block) {
  const Gpu gpu = chip_of_cores();
  EXPECT_EQ(transformed_text(problem_of(Role::weight_gradient, 24, 33, 7), gpu),
            "winograd_nonfused: 2304x24x20, image 2.93878 output 2.93878 filter 4 passes 1 launches 0");
  EXPECT_EQ(transformed_text(problem_of(Role::weight_gradient, 23, 33, 7), gpu), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::weight_gradient, 33, 23, 7), gpu), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::weight_gradient, 33, 24, 7), gpu),
            "winograd_nonfused: 1152x33x20, image 2.93878 output 2.93878 filter 4 passes 1 launches 0");
  EXPECT_EQ(transformed_text(problem_of(Role::forward, 33, 40, 20), gpu), "none");
  for (const auto change : {+[](ConvolutionProblem& p) { p.stride = 2; }, +[](ConvolutionProblem& p) { p.kernel = 5; },
                            +[](ConvolutionProblem& p) { p.type = DType::tf32; }}) {
    ConvolutionProblem other = problem_of(Role::weight_gradient, 24, 33, 7);
    change(other);
    EXPECT_EQ(transformed_text(other, gpu), "none");
  }
}

TEST(WorkedTransforms, volta_multiplies_winograds_values_in_every_direction) {
  Gpu volta = chip_of_cores();
  volta.architecture = Architecture::turing;
  EXPECT_EQ(transformed_text(problem_of(Role::forward, 24, 33, 7), volta),
            "winograd_nonfused: 1152x33x24, image 2.93878 output 2.93878 filter 4 passes 1 launches 0");
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 24, 33, 7), volta),
            "winograd_nonfused: 1152x24x33, image 2.93878 output 2.93878 filter 4 passes 1 launches 0");
  EXPECT_EQ(transformed_text(problem_of(Role::forward, 23, 33, 7), volta), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::forward, 33, 23, 7), volta), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::weight_gradient, 33, 23, 7), volta), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 33, 23, 40), volta), "none") << "no Fourier";
}

// Squares of 32 x 32 pixels overlap by two: one of up to 30 pixels, four of 31. 544 complex values each, four products.
TEST(WorkedTransforms, fourier_input_gradients_multiply_544_complex_values_of_a_square) {
  const Gpu gpu = chip_of_cores();
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 32, 24, 16), gpu),
            "fft2d_32x32: 17408x32x96, image 4.25 output 4.25 filter 120.889 passes 2 launches 2.5e+07 preferred");
  EXPECT_EQ(
      transformed_text(problem_of(Role::input_gradient, 32, 24, 30), gpu),
      "fft2d_32x32: 17408x32x96, image 1.20889 output 1.20889 filter 120.889 passes 2 launches 2.5e+07 preferred");
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 32, 24, 31), gpu),
            "fft2d_32x32: 69632x32x96, image 4.52862 output 4.52862 filter 120.889 passes 2 launches 1e+08 preferred");
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 31, 24, 16), gpu), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 32, 23, 16), gpu), "none");
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 32, 24, 15), gpu), "none");
  // Of more than 18,384 filters for 32 images and more, of 64 pixels at most.
  const auto large = [&](std::int64_t filters, std::int64_t batch, std::int64_t size) {
    ConvolutionProblem p = problem_of(Role::input_gradient, 48, filters, size);
    p.batch = batch;
    const auto form = transformed_convolution(p, gpu);
    return form ? form->preferred ? "preferred" : "taken" : "none";
  };
  EXPECT_STREQ(large(383, 5, 65), "preferred") << "48 x 383 = 18,384";
  EXPECT_STREQ(large(384, 31, 64), "none");
  EXPECT_STREQ(large(384, 32, 64), "taken");
  EXPECT_STREQ(large(384, 32, 65), "none");
  Gpu tiny = gpu;
  tiny.sm.registers = 1024;
  EXPECT_EQ(transformed_text(problem_of(Role::input_gradient, 32, 24, 16), tiny), "none") << "no product fits an SM";
}

// A transform moves half of what is read and written as a copy does, as often as it passes over it.
TEST(WorkedTransforms, transforms_are_copies_of_what_they_read_and_write) {
  TransformedConvolution form;
  form.name = "form", form.passes = 3.0, form.image_launch_bytes = 700.0;
  EXPECT_EQ("\n" + text_of(transform_of(form, 4, DType::fp32, 1000.0, true, 5.0)), R"(
form contraction fp32 no pipe: 1 x 128, 32 registers
  copy 9000; #4:1000 -> t:5000)");
  EXPECT_EQ("\n" + text_of(transform_of(form, 2, DType::fp32, 1000.0, false, 5.0)), R"(
form contraction fp32 no pipe: 1 x 128, 32 registers
  copy 9700; #2:1000 -> t:5000)");
  EXPECT_EQ("\n" + text_of(turned(3, {.count = 2, .channels = 33, .pixels = 65}, DType::bf16)), R"(
nchwToNhwc copy bf16 no pipe: 3,2,2 x 256, 32 registers shared 2112
  layout change 17160 blocks 12; #3:8580 -> t:8580)");
  EXPECT_EQ("\n" + text_of(rounded(1, {.count = 2, .channels = 33, .pixels = 65}, DType::tf32)), R"(
convertTensor copy tf32 no pipe: 4096 x 128, 32 registers
  copy 17160 blocks 4096; #1:17160 -> t:17160)");
}

TEST(WorkedTransforms, kernels_are_named_by_direction_type_tile_and_splits) {
  GemmWork work{.type = DType::bf16, .tile_m = 64, .tile_n = 32, .tile_k = 16};
  const auto name = [&](Role role, int splits) {
    work.gathering.role = role, work.split_k = splits;
    return name_of_convolution(work);
  };
  EXPECT_EQ(name(Role::forward, 1), "fprop_implicit_gemm_bf16_64x32x16");
  EXPECT_EQ(name(Role::input_gradient, 1), "dgrad_implicit_gemm_bf16_64x32x16");
  EXPECT_EQ(name(Role::weight_gradient, 2), "wgrad_implicit_gemm_bf16_64x32x16_splitK");
  EXPECT_EQ(name(Role::scattered_images, 1), "dgrad_engine_implicit_gemm_bf16_64x32x16");
  EXPECT_EQ(name(Role::scattered_filters, 3), "wgrad_engine_implicit_gemm_bf16_64x32x16_splitK");
}

}  // namespace
}  // namespace ridgeline::worked_transforms
