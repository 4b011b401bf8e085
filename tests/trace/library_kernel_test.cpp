// What names of libraries' kernels say of the tile, and when a replayed product runs in it.
#include "sim/trace/profiler/library_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

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
  const LibraryKernel ran = kernel_that_ran(kernels);
  EXPECT_EQ(ran.m, 128);
  EXPECT_TRUE(ran.summed);
  EXPECT_FALSE(kernel_that_ran({kernels.front()}).summed);
  EXPECT_EQ(kernel_that_ran({kernels.back()}).instructions, Instructions::none);
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

}  // namespace
}  // namespace ridgeline::trace
