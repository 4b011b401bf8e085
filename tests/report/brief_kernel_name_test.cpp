// Names of recorded kernels in tables.
#include "sim/report/text/brief_kernel_name.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ridgeline {
namespace {

TEST(BriefKernelName, KeepsWhatTellsKernelsApart) {
  const std::vector<std::pair<const char*, const char*>> names = {
      {"void at::native::vectorized_elementwise_kernel<(int)4, at::native::BinaryFunctor<float, float, float, "
       "at::native::binary_internal::MulFunctor<float>>, std::array<char *, (unsigned long)3>>(int, T2, T3)",
       "vectorized_elementwise_kernel MulFunctor"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, "
       "3ul>>(int)",
       "vectorized_elementwise_kernel CUDAFunctor_add"},
      {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::(anonymous "
       "namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}>>(int)",
       "elementwise_kernel where_kernel_impl"},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(T1::Params)",
       "Kernel2 cutlass_80_simt_sgemm_64x64_8x5_tn_align1"},
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT"},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
      {"Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"},
      {"(", "("}};
  for (const auto& [name, brief] : names) EXPECT_EQ(brief_kernel_name(name), brief);
}

}  // namespace
}  // namespace ridgeline
