// What names of libraries' kernels say of the tile, and when a replayed product runs in it.
#include "sim/trace/aten/library_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/hardware/load_gpu.h"
#include "sim/hardware/load_host.h"
#include "sim/kernels/lowering.h"
#include "tests/support/aten_example.h"

namespace ridgeline::trace {
namespace {

using Instructions = LibraryKernel::Instructions;

/// "wgmma 64x128x64 6", of the rows and columns of a row-major result.
std::string said_by(std::string_view name) {
  const LibraryKernel kernel = library_kernel_of(name);
  constexpr std::array<const char*, 4> kNames{"none", "wgmma", "mma_sync", "simt"};
  if (kernel.instructions == Instructions::none) return "none";
  return fmt::format("{} {}x{}x{} {}", kNames[static_cast<std::size_t>(kernel.instructions)], kernel.m, kernel.n,
                     kernel.k, kernel.stages);
}

TEST(LibraryKernel, NamesOfCutlassSayTileDepthAndStages) {
  EXPECT_EQ(said_by("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>("
                    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8::Params)"),
            "mma_sync 64x128x64 6");
  EXPECT_EQ(said_by("cutlass_80_simt_sgemm_256x128_8x4_nt_align1"), "simt 128x256x8 4");
}

TEST(LibraryKernel, TheSecondMentionOfATileIsNotItsDepth) {
  EXPECT_EQ(said_by("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>("
                    "cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1::Params)"),
            "mma_sync 128x256x0 0");
}

TEST(LibraryKernel, NamesOfCublasAndNvjet) {
  EXPECT_EQ(said_by("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_warpgroupsize1x1x1_execute_kernel"),
            "wgmma 64x128x64 0");
  EXPECT_EQ(said_by("nvjet_hsh_192x128_64x5_2x1_v_bz_coopB_TNN"), "wgmma 128x192x64 5");
  EXPECT_EQ(said_by("ampere_sgemm_128x64_nn"), "simt 64x128x0 0");
  EXPECT_EQ(said_by("volta_fp16_s884gemm_fp16_256x128_ldg8_f2f_nn"), "mma_sync 128x256x0 0");
  EXPECT_EQ(said_by("ampere_fp16_s16816gemm_fp16_64x128_ldg8_relu_f2f_stages_64x5_tn"), "mma_sync 128x64x64 5");
}

TEST(LibraryKernel, OtherKernelsSayNothing) {
  for (const char* name :
       {"", "some_kernel", "gemv2T_kernel_val", "void gemmSN_NN_kernel<float, 128, 2, 4, 8>", "x_gemm_0x0",
        "void cublasLt::splitKreduce_kernel<32, 16, int>", "nvjet", "nvjet_hsh_", "volta_sgemm_nn",
        "nvjet_hsh_99999999999999999999x64_64x5", "cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_tn_align1",
        "volta_scudnn_128x64_relu_interior_nn_v1", "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>"})
    EXPECT_EQ(said_by(name), "none") << name;
}

TEST(LibraryKernel, TheLongestOfACallAndWhetherSplitsAreAddedUp) {
  const std::vector<MeasuredKernel> kernels{{"nvjet_hsh_64x64_64x8_TNN", 1e-6},
                                            {"nvjet_hsh_128x128_64x6_splitK_TNN", 5e-6},
                                            {"void cublasLt::splitKreduce_kernel<32, 16>", 9e-6}};
  const LibraryKernel ran = kernel_that_ran(kernels, 1, 256, 256);
  EXPECT_EQ(ran.m, 128);
  EXPECT_TRUE(ran.summed);
  EXPECT_FALSE(kernel_that_ran({kernels.front()}, 1, 256, 256).summed);
  EXPECT_EQ(kernel_that_ran({kernels.back()}, 1, 256, 256).instructions, Instructions::none);
}

// Launches of a published trace of an A100: 2048 x 32 results of 38377 terms in 96 blocks of 128 x 64.
TEST(LibraryKernel, BlocksBeyondTheTilesAreSplits) {
  const auto splits = [](std::int64_t blocks, std::int64_t m, std::int64_t n,
                         const char* name = "cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align1") {
    return kernel_that_ran({{name, 5e-6, 0.0, 0, blocks}}, 1, m, n).splits;
  };
  EXPECT_EQ(splits(96, 2048, 32), 6);
  EXPECT_EQ(splits(16, 2048, 32), 1);
  EXPECT_EQ(splits(24, 2048, 32), 1);  // a side of the grid is rounded up
  EXPECT_EQ(splits(40, 2048, 32), 0);
  EXPECT_EQ(splits(8, 2048, 32), 0);
  EXPECT_EQ(splits(132, 128, 64, "nvjet_hsh_128x64_64x6_TNN"), 0);  // persistent
}

TEST(LibraryKernel, ASplitThatRanIsTakenWhateverWouldBeFaster) {
  Matmul op{.type = DType::tf32, .m = 2048, .n = 32, .k = 38377};
  op.ran = {.instructions = Instructions::mma_sync, .m = 128, .n = 64, .k = 32, .stages = 3};
  const auto blocks = [&](std::int64_t splits) {
    op.ran.splits = splits;
    const LoweredOp lowered = lower(Op{op}, load_gpu("nvidia-a100-sxm4-40gb"), load_software("pytorch-2.0"));
    return lowered.launches.back().blocks();
  };
  EXPECT_DOUBLE_EQ(blocks(1), 16.0);
  EXPECT_DOUBLE_EQ(blocks(6), 96.0);
  EXPECT_DOUBLE_EQ(blocks(12), 192.0);
}

TEST(LibraryKernel, NamesOfConvolutionsSayTheirForm) {
  const auto ran = [](const char* name, bool weights = false) {
    return convolution_that_ran({{"void cudnn::ops::nchwToNhwcKernel<float, float>", 9e-6}, {name, 1e-6}}, weights);
  };
  EXPECT_EQ(ran("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize256x64x32_warpgroupsize1x1x1")
                .instructions,
            Instructions::wgmma);
  EXPECT_EQ(ran("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc>")
                .instructions,
            Instructions::mma_sync);
  EXPECT_EQ(ran("volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_interior_nhwc_tn_v1").instructions,
            Instructions::mma_sync);
  for (const char* name :
       {"volta_scudnn_128x64_relu_interior_nn_v1", "void implicit_convolve_sgemm<float, float, 1024>",
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize256x64x8_stage3"})
    EXPECT_EQ(ran(name).instructions, Instructions::simt) << name;
  EXPECT_TRUE(ran("void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, float>").transformed);
  EXPECT_TRUE(ran("void fft2d_r2c_32x32<float, false, 1u, true>").transformed);
  EXPECT_FALSE(ran("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1").known());  // fused: no form of ours
  const char* of_weights =
      "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_tilesize128x128x32_warpgroupsize1x1x1";
  EXPECT_TRUE(ran(of_weights, true).known());
  EXPECT_FALSE(ran(of_weights, false).known());
}

TEST(LibraryKernel, AConvolutionRunsInTheFormThatIsNamed) {
  const auto runs = [](const char* gpu, DType type, RecordedConvolution ran, const char* name, Pipe pipe) {
    Convolution op{.type = type, .batch = 32, .in_channels = 64, .size = 56, .out_channels = 64, .kernel = 3};
    op.ran = ran;
    const LoweredOp lowered = lower(Op{op}, load_gpu(gpu), load_software("pytorch-2.0"));
    return std::any_of(lowered.launches.begin(), lowered.launches.end(), [&](const KernelLaunch& launch) {
      return launch.name.find(name) != launch.name.npos && launch.pipe == pipe;
    });
  };
  const char *v100 = "nvidia-v100-sxm2-16gb", *h100 = "nvidia-h100-sxm5-80gb";
  const RecordedConvolution transformed{.transformed = true}, on_cuda_cores{.instructions = Instructions::simt},
      of_before{.instructions = Instructions::mma_sync}, own{.instructions = Instructions::wgmma};
  EXPECT_TRUE(runs(v100, DType::fp32, transformed, "gemm_of_transforms", Pipe::fp32));
  EXPECT_TRUE(runs(v100, DType::fp32, on_cuda_cores, "implicit_gemm", Pipe::fp32));
  EXPECT_TRUE(runs(h100, DType::tf32, of_before, "implicit_gemm", Pipe::tensor_mma));
  EXPECT_TRUE(runs(h100, DType::tf32, own, "implicit_gemm", Pipe::tensor_wgmma));
  EXPECT_TRUE(runs(h100, DType::tf32, on_cuda_cores, "implicit_gemm", Pipe::fp32));
}

TEST(LibraryKernel, AProductKeepsItWhereTheLibraryIsTheRecordings) {
  AtenCall call = call_of({"mm", {half({256, 64}), half({64, 512})}, ""});
  call.kernels = {{"nvjet_hsh_128x256_64x4_TNN", 5e-6}};
  const auto ran = [&](bool same_library) {
    MapContext context;
    context.same_library = same_library;
    return std::get<Matmul>(map_aten(call, context)->front().op).ran;
  };
  EXPECT_EQ(ran(true).m, 256);
  EXPECT_EQ(ran(true).n, 128);
  EXPECT_EQ(ran(false), LibraryKernel{});
}

// A tile that no menu has is made of its name: operands of all stages in shared memory, and Hopper's barriers.
TEST(LibraryKernel, ATileThatNoMenuHasHoldsItsStagesAndItsBarriers) {
  const auto shared_bytes = [](Instructions instructions, std::int64_t stages) {
    Matmul op{.type = DType::bf16, .m = 4096, .n = 4096, .k = 4096};
    op.ran = {.instructions = instructions, .m = 96, .n = 80, .k = 64, .stages = stages};
    return lower(Op{op}, load_gpu("nvidia-h100-sxm5-80gb"), load_software("pytorch-2.5"))
        .launches.back()
        .shared_bytes_per_block;
  };
  const auto stage = static_cast<std::int64_t>((96 + 80) * 64 * 2);
  EXPECT_EQ(shared_bytes(Instructions::wgmma, 3), 3 * stage + 4096);
  EXPECT_EQ(shared_bytes(Instructions::wgmma, 4), 4 * stage + 4096);
  EXPECT_EQ(shared_bytes(Instructions::mma_sync, 3), 3 * stage);
}

}  // namespace
}  // namespace ridgeline::trace
