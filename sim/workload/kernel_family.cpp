#include "sim/workload/kernel_family.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace ridgeline {
namespace {

struct FamilyWord {
  std::string_view word;  ///< stands in the name, in lower case
  KernelFamily family;
};

/// The first word that a name has decides. Names of templates hold what they are made of, so that the outer ones come
/// first: an optimizer's kernel is full of functors.
constexpr std::array kFamilyWords{
    FamilyWord{"memcpy", KernelFamily::copy},
    FamilyWord{"memset", KernelFamily::copy},
    FamilyWord{"multi_tensor_apply", KernelFamily::optimizer},
    FamilyWord{"adam", KernelFamily::optimizer},
    FamilyWord{"lamb_", KernelFamily::optimizer},
    FamilyWord{"triton_poi", KernelFamily::elementwise},
    FamilyWord{"triton_red", KernelFamily::reduction},
    FamilyWord{"triton_per", KernelFamily::reduction},
    FamilyWord{"triton_tem", KernelFamily::gemm},
    FamilyWord{"triton_for", KernelFamily::elementwise},
    FamilyWord{"flash", KernelFamily::attention},
    FamilyWord{"fmha", KernelFamily::attention},
    FamilyWord{"sdpa", KernelFamily::attention},
    FamilyWord{"attention", KernelFamily::attention},
    FamilyWord{"layer_norm", KernelFamily::normalization},
    FamilyWord{"layernorm", KernelFamily::normalization},
    FamilyWord{"rms_norm", KernelFamily::normalization},
    FamilyWord{"rmsnorm", KernelFamily::normalization},
    FamilyWord{"rowwisemoments", KernelFamily::normalization},
    FamilyWord{"gammabeta", KernelFamily::normalization},
    FamilyWord{"batch_norm", KernelFamily::normalization},
    FamilyWord{"batchnorm", KernelFamily::normalization},
    FamilyWord{"group_norm", KernelFamily::normalization},
    FamilyWord{"bn_fw", KernelFamily::normalization},
    FamilyWord{"bn_bw", KernelFamily::normalization},
    FamilyWord{"softmax", KernelFamily::softmax},
    FamilyWord{"nll_loss", KernelFamily::softmax},
    FamilyWord{"cross_entropy", KernelFamily::softmax},
    FamilyWord{"dropout", KernelFamily::random},
    FamilyWord{"distribution_", KernelFamily::random},
    FamilyWord{"radixsort", KernelFamily::sort},
    FamilyWord{"sort", KernelFamily::sort},
    FamilyWord{"topk", KernelFamily::sort},
    FamilyWord{"embedding", KernelFamily::embedding},
    FamilyWord{"indexselect", KernelFamily::embedding},
    FamilyWord{"index_", KernelFamily::embedding},
    FamilyWord{"indexing", KernelFamily::embedding},
    FamilyWord{"gather", KernelFamily::embedding},
    FamilyWord{"scatter", KernelFamily::embedding},
    FamilyWord{"direct_copy", KernelFamily::copy},
    FamilyWord{"catarray", KernelFamily::copy},
    FamilyWord{"splitkreduce", KernelFamily::gemm},
    FamilyWord{"reduce_kernel", KernelFamily::reduction},
    FamilyWord{"elementwise_kernel", KernelFamily::elementwise},
    FamilyWord{"implicit_convolve", KernelFamily::convolution},
    FamilyWord{"winograd", KernelFamily::convolution},
    FamilyWord{"wgrad", KernelFamily::convolution},
    FamilyWord{"dgrad", KernelFamily::convolution},
    FamilyWord{"fprop", KernelFamily::convolution},
    FamilyWord{"convolve", KernelFamily::convolution},
    FamilyWord{"conv2d", KernelFamily::convolution},
    FamilyWord{"conv_depthwise", KernelFamily::convolution},
    FamilyWord{"nchwtonhwc", KernelFamily::copy},
    FamilyWord{"nhwctonchw", KernelFamily::copy},
    FamilyWord{"gemm", KernelFamily::gemm},
    FamilyWord{"gemv", KernelFamily::gemm},
    FamilyWord{"cutlass", KernelFamily::gemm},
    FamilyWord{"nvjet", KernelFamily::gemm},
    FamilyWord{"xmma", KernelFamily::gemm},
    FamilyWord{"s884", KernelFamily::gemm},
    FamilyWord{"s1688", KernelFamily::gemm},
    FamilyWord{"s16816", KernelFamily::gemm},
    FamilyWord{"matmul", KernelFamily::gemm},
    FamilyWord{"cublas", KernelFamily::gemm},
    FamilyWord{"pointwise", KernelFamily::elementwise},
    FamilyWord{"elementwise", KernelFamily::elementwise},
    FamilyWord{"functor", KernelFamily::elementwise},
    FamilyWord{"reduce", KernelFamily::reduction},
    FamilyWord{"cumsum", KernelFamily::reduction},
    FamilyWord{"copy", KernelFamily::copy},
    FamilyWord{"fill", KernelFamily::copy},
    FamilyWord{"triton_", KernelFamily::fused},
};

}  // namespace

std::string_view name_of(KernelFamily family) {
  static constexpr std::array<std::string_view, kKernelFamilies> kNames{
      "gemm",        "attention", "convolution", "normalization", "softmax and loss",
      "elementwise", "reduction", "embedding",   "sort",          "random",
      "optimizer",   "copy",      "fused",       "communication", "other"};
  return kNames[static_cast<std::size_t>(family)];
}

bool is_collective_kernel(std::string_view name) {
  if (name.starts_with("nccl") || name.starts_with("void nccl")) return true;
  // Through memory that the GPUs see of each other: PyTorch's symmetric memory, vLLM's and TensorRT's own; DeepEP's
  // exchange of tokens between experts.
  constexpr std::string_view kShared[] = {"multimem_all_",        "one_shot_all_reduce",     "two_shot_all_reduce",
                                          "cross_device_reduce_", "allreduce_fusion_kernel", "deep_ep::"};
  return std::any_of(std::begin(kShared), std::end(kShared),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

KernelFamily family_of_kernel(std::string_view name) {
  if (is_collective_kernel(name)) return KernelFamily::communication;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const FamilyWord& known : kFamilyWords)
    if (lower.find(known.word) != lower.npos) return known.family;
  return KernelFamily::other;
}

}  // namespace ridgeline
