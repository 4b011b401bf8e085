// Names of rules whose behaviour tests/trace/aten_tables_test.cpp and aten_experts_test.cpp state, by kind.
#pragma once

#include <array>
#include <set>
#include <string>

namespace ridgeline::trace {

/// Lookups of tables with one and several moments a row, and those of dense tables; then their backward calls.
inline constexpr std::array<const char*, 7> kLookups{
    "fbgemm::split_embedding_codegen_lookup_sgd_function",
    "fbgemm::split_embedding_codegen_lookup_adagrad_function",
    "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function",
    "fbgemm::split_embedding_codegen_lookup_adam_function",
    "fbgemm::split_embedding_codegen_lookup_partial_rowwise_adam_function",
    "fbgemm::split_embedding_codegen_lookup_lamb_function",
    "fbgemm::dense_embedding_codegen_lookup_function"};
inline constexpr std::array<const char*, 7> kUpdates{
    "torch::autograd::CppNode<SplitLookupFunction_sgd_Op>",
    "torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>",
    "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>",
    "torch::autograd::CppNode<SplitLookupFunction_adam_Op>",
    "torch::autograd::CppNode<SplitLookupFunction_partial_rowwise_adam_Op>",
    "torch::autograd::CppNode<SplitLookupFunction_lamb_Op>",
    "torch::autograd::CppNode<SplitLookupFunction_Dense_Op>"};
/// Calls that move what their first tensor holds, in one kernel.
inline constexpr std::array<const char*, 8> kMoves{
    "fbgemm::permute_pooled_embs",
    "fbgemm::permute_pooled_embs_auto_grad",
    "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >",
    "fbgemm::recat_embedding_grad_output_mixed_D_batch",
    "fbgemm::FloatToHFP8Quantized",
    "fbgemm::HFP8QuantizedToFloat",
    "fbgemm::FP8RowwiseQuantizedToFloat",
    "fbgemm::Fused8BitRowwiseQuantizedToFloat"};
/// In two kernels: rows' largest first.
inline constexpr std::array<const char*, 2> kQuantizations{"fbgemm::FloatToFP8RowwiseQuantized",
                                                           "fbgemm::FloatToFused8BitRowwiseQuantized"};
inline constexpr std::array<const char*, 8> kOfApex{"apex::multi_tensor_adam",        "apex::multi_tensor_adagrad",
                                                    "apex::multi_tensor_sgd",         "apex::multi_tensor_lamb_stage1",
                                                    "apex::multi_tensor_lamb_stage2", "apex::multi_tensor_axpby",
                                                    "apex::multi_tensor_scale",       "apex::multi_tensor_l2norm"};
inline constexpr std::array<const char*, 4> kFusedExperts{"vllm::inplace_fused_experts", "vllm::outplace_fused_experts",
                                                          "sglang::inplace_fused_experts",
                                                          "sglang::outplace_fused_experts"};
inline constexpr std::array<const char*, 10> kSingleRules{"aten::_embedding_bag",
                                                          "aten::_embedding_bag_forward_only",
                                                          "fbgemm::bounds_check_indices",
                                                          "fbgemm::permute_2D_sparse_data",
                                                          "fbgemm::permute_sparse_features",
                                                          "_moe_C::topk_softmax",
                                                          "sgl_kernel::topk_softmax",
                                                          "_moe_C::moe_align_block_size",
                                                          "sgl_kernel::moe_align_block_size",
                                                          "_moe_C::moe_sum"};

/// All of these names.
inline std::set<std::string> shown_elsewhere() {
  std::set<std::string> names;
  const auto add = [&](const auto& list) { names.insert(list.begin(), list.end()); };
  add(kLookups), add(kUpdates), add(kMoves), add(kQuantizations), add(kOfApex), add(kFusedExperts), add(kSingleRules);
  return names;
}

}  // namespace ridgeline::trace
