// Families of kernels by names as profilers record them.
#include "sim/workload/kernel_family.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ridgeline {
namespace {

TEST(KernelFamily, IsWhatRecordedNamesSay) {
  using F = KernelFamily;
  const std::vector<std::pair<const char*, F>> named = {
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", F::gemm},
      {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", F::gemm},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(T1::Params)", F::gemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)", F::gemm},
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Flash_fwd_params)",
       F::attention},
      {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", F::attention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", F::attention},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nchw", F::convolution},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", F::elementwise},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<float>>",
       F::optimizer},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float>>>", F::reduction},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", F::normalization},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>", F::softmax},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>", F::embedding},
      {"triton_poi_fused_add_mul_3", F::elementwise},
      {"triton_per_fused_native_layer_norm_2", F::reduction},
      {"Memcpy HtoD (Pinned -> Device)", F::copy},
      {"[CUDA memset]", F::copy},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", F::communication},
      {"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", F::communication},
      {"mine", F::other}};
  for (const auto& [name, family] : named) EXPECT_EQ(family_of_kernel(name), family) << name;
}

}  // namespace
}  // namespace ridgeline
