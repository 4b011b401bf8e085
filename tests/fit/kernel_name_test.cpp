#include "fit/kernel_name.h"

#include <gtest/gtest.h>

namespace ridgeline::fit {
namespace {

using Family = GemmWork::Family;

struct Named {
  const char* name;
  Family family;
  int m, n, k, stages;
};

TEST(KernelNames, say_tile_and_stages) {
  const Named names[]{
      {"nvjet_sm90_tst_192x32_64x7_4x1_v_bz_TNT", Family::wgmma, 32, 192, 64, 7},
      {"sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_"
       "cublas",
       Family::wgmma, 64, 128, 32, 0},
      {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_split_"
       "k_kernel__5x_cublas",
       Family::simt, 64, 256, 8, 3},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32x3_nt_align1>(cutlass_80_", Family::mma_sync, 256,
       128, 32, 3},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nn_align2>(", Family::mma_sync, 128,
       256, 64, 3},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_64x32_8x5_nt_align1>(", Family::simt, 32, 64, 8, 5},
      {"void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_128x256_nn_align1>(", Family::mma_sync, 256, 128,
       32, 2}};
  for (const Named& expected : names) {
    const auto named = gemm_of_name(expected.name);
    ASSERT_TRUE(named.has_value()) << expected.name;
    EXPECT_EQ(named->family, expected.family) << expected.name;
    EXPECT_EQ(named->m, expected.m) << expected.name;
    EXPECT_EQ(named->n, expected.n) << expected.name;
    EXPECT_EQ(named->k, expected.k) << expected.name;
    EXPECT_EQ(named->stages, expected.stages) << expected.name;
  }
}

TEST(KernelNames, say_how_k_is_shared) {
  EXPECT_TRUE(gemm_of_name("nvjet_sm90_hsh_64x8_64x16_2x4_h_bz_splitK_TNT")->split);
  EXPECT_FALSE(gemm_of_name("nvjet_sm90_hsh_64x8_64x16_2x4_h_bz_TNT")->split);
  EXPECT_TRUE(gemm_of_name("sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize256x128x32_warpgroupsize2x1x1_execute_"
                           "segment_k_on_kernel__5x_cublas")
                  ->shares_steps);
}

TEST(KernelNames, of_other_kernels_and_names_cut_off_say_nothing) {
  for (const char* name : {"Memset (Device)", "void cublasLt::splitKreduce_kernel<32, 16, int, float>",
                           "void cutlass::Kernel2<cutlass_75_wmma_tensorop_f16_s161616gemm_f16_32x32_128x1_tn_align1>(",
                           "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32",
                           "nvjet_sm90_tst_192x32_64x", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256"})
    EXPECT_FALSE(gemm_of_name(name).has_value()) << name;
}

}  // namespace
}  // namespace ridgeline::fit
