// Families of kernels by their names: names of PyTorch, its libraries, Triton and NCCL, copies as profilers call
// them.
#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

enum class KernelFamily : std::uint8_t {
  gemm,
  attention,
  convolution,
  normalization,
  softmax,  ///< and losses
  elementwise,
  reduction,
  embedding,  ///< and other indexed reads and writes
  sort,
  random,
  optimizer,
  copy,   ///< between memories, and memsets
  fused,  ///< several of these in one generated kernel
  communication,
  other
};
inline constexpr std::size_t kKernelFamilies = 15;
std::string_view name_of(KernelFamily family);

KernelFamily family_of_kernel(std::string_view name);

/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "void ncclKernel_...", "multimem_all_reduce_kernel", DeepEP's.
bool is_collective_kernel(std::string_view name);

}  // namespace ridgeline
