// Which kernels a convolution launches, and in which order of pixels and channels they want their operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/convolution/convolution_kernel.h"
#include "sim/kernels/lowering.h"

namespace ridgeline {
namespace {

class ConvolutionKernels : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<KernelLaunch> launches(const Convolution& op,
                                                   const char* gpu = "nvidia-h200-sxm-141gb") const {
    return lower(op, load_gpu(gpu), load_software("pytorch-2.11")).launches;
  }
  static auto count(const std::vector<KernelLaunch>& all, std::string_view name) {
    return std::count_if(all.begin(), all.end(),
                         [&](const KernelLaunch& launch) { return launch.name.find(name) != std::string::npos; });
  }
  static Convolution op(DType type, bool channels_last, std::int64_t channels, std::int64_t kernel) {
    return {.channels_last = channels_last,
            .type = type,
            .batch = 16,
            .in_channels = channels,
            .size = 56,
            .out_channels = 128,
            .kernel = kernel};
  }
};

TEST_F(ConvolutionKernels, turn_every_operand_in_nchw_and_none_in_channels_last) {
  EXPECT_EQ(count(launches(op(DType::bf16, false, 128, 3)), "nchwToNhwc"), 3);
  EXPECT_EQ(count(launches(op(DType::bf16, true, 128, 3)), "nchwToNhwc"), 0);
  Convolution backward = op(DType::bf16, false, 128, 3);
  backward.backward = true;
  EXPECT_EQ(count(launches(backward), "nchwToNhwc"), 6);
}

TEST_F(ConvolutionKernels, keep_fp32_in_nchw_and_turn_it_in_channels_last) {
  EXPECT_EQ(count(launches(op(DType::fp32, false, 128, 3)), "nchwToNhwc"), 0);
  EXPECT_EQ(count(launches(op(DType::fp32, true, 128, 3)), "nchwToNhwc"), 3);
}

TEST_F(ConvolutionKernels, of_volta_are_products_of_gathered_panels_in_every_direction) {
  Convolution backward = op(DType::fp32, false, 128, 1);
  backward.backward = true;
  const auto gradients = launches(backward, "nvidia-v100-sxm2-32gb");
  EXPECT_EQ(count(gradients, "dgrad_implicit_gemm_fp32_"), 1);
  EXPECT_EQ(count(gradients, "wgrad_implicit_gemm_fp32_"), 1);
  // As profiled on an H200: kernels that scatter for both gradients, or for that of the weights alone.
  backward.batch = 64, backward.size = 28, backward.out_channels = 512;
  EXPECT_EQ(count(launches(backward), "_engine_"), 2);
  backward.in_channels = 64, backward.size = 56, backward.out_channels = 256;
  EXPECT_EQ(count(launches(backward), "_engine_"), 1);
}

TEST_F(ConvolutionKernels, of_volta_take_winograds_form_in_every_direction) {
  const Convolution forward = op(DType::fp32, false, 128, 3);
  EXPECT_EQ(count(launches(forward, "nvidia-v100-sxm2-32gb"), "winograd"), 3);
  EXPECT_EQ(count(launches(forward), "winograd"), 0);
  Convolution backward = forward;
  backward.backward = true;
  EXPECT_EQ(count(launches(backward, "nvidia-v100-sxm2-32gb"), "winograd"), 6);
  EXPECT_EQ(count(launches(backward, "nvidia-v100-sxm2-32gb"), "fft2d"), 0);
}

TEST_F(ConvolutionKernels, are_plain_products_where_a_pixel_is_all_a_filter_sees) {
  const auto plain = launches(op(DType::bf16, true, 128, 1));
  EXPECT_EQ(count(plain, "implicit_gemm"), 0);
  Convolution strided = op(DType::bf16, true, 128, 1);
  strided.stride = 2;
  EXPECT_EQ(count(launches(strided), "implicit_gemm"), 1);
}

TEST_F(ConvolutionKernels, of_wgmma_end_at_25_taps_but_for_input_gradients) {
  const Gpu gpu = load_gpu("nvidia-h200-sxm-141gb");
  const auto families = [&](Gathering::Role role, std::int64_t kernel) {
    const ConvolutionProblem problem{.role = role,
                                     .type = DType::bf16,
                                     .batch = 16,
                                     .channels = 128,
                                     .size = 56,
                                     .filters = 128,
                                     .out_size = 56,
                                     .kernel = kernel};
    std::set<GemmWork::Family> known;
    for (const ConvolutionKernel& one : tensor_convolutions(problem, {.read = 1e7, .written = 1e7}, gpu))
      known.insert(one.work.family);
    return known.size();
  };
  EXPECT_EQ(families(Gathering::Role::forward, 5), 2);
  EXPECT_EQ(families(Gathering::Role::forward, 7), 1);
  EXPECT_EQ(families(Gathering::Role::weight_gradient, 7), 1);
  EXPECT_EQ(families(Gathering::Role::input_gradient, 7), 2);
}

TEST_F(ConvolutionKernels, sum_weights_of_many_images_in_parts) {
  Convolution backward = op(DType::bf16, true, 64, 3);
  backward.backward = true;
  backward.batch = 128;
  EXPECT_EQ(count(launches(backward), "wgrad_implicit_gemm_bf16"), 1);
  EXPECT_EQ(count(launches(backward), "_splitK"), 1);
}

TEST_F(ConvolutionKernels, take_winograds_form_for_3x3_weights_of_many_channels_in_fp32) {
  Convolution backward = op(DType::fp32, false, 128, 3);
  backward.backward = true;
  EXPECT_GT(count(launches(backward), "winograd"), 0);
  backward.in_channels = 16;
  EXPECT_EQ(count(launches(backward), "winograd"), 0);
}

TEST_F(ConvolutionKernels, exist_on_gpus_without_tensor_cores_for_the_type) {
  for (const char* gpu : {"nvidia-v100-sxm2-32gb", "nvidia-t4"})
    for (const DType type : {DType::bf16, DType::fp16, DType::tf32, DType::fp32})
      EXPECT_GE(launches(op(type, false, 3, 7), gpu).size(), 1) << gpu << " " << name_of(type);
}

}  // namespace
}  // namespace ridgeline
