// NVIDIA's apex: multi-tensor kernels that its optimizers launch without a dispatcher call. Their blocks take a chunk
// each, so that blocks say how many elements; tensors fill their last chunk in part, on the whole as the parameters do.
#include <algorithm>
#include <cmath>

#include "sim/trace/aten/aten_rules.h"

namespace ridgeline::trace {
namespace {

constexpr double kApexChunk = 65536.0;  ///< elements

/// Elements a block works on, of the chunk that it could.
double share_filled(const MapContext& context) {
  if (!context.parameter_sizes) return 1.0;
  double elements = 0.0, chunks = 0.0;
  for (const std::int64_t size : *context.parameter_sizes) {
    elements += static_cast<double>(size);
    chunks += std::ceil(static_cast<double>(size) / kApexChunk);
  }
  return chunks > 0.0 ? elements / (chunks * kApexChunk) : 1.0;
}

template <MultiTensorFunction Function>
MappedOps by_blocks(const AtenCall& call, const MapContext& context) {
  std::int64_t blocks = 0;
  for (const MeasuredKernel& kernel : call.kernels) blocks += kernel.blocks;
  constexpr std::int64_t kMostBlocks = 1 << 24;
  if (blocks < 1 || blocks > kMostBlocks) return std::nullopt;
  const auto elements =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(blocks) * kApexChunk * share_filled(context)));
  const std::string& name = call.kernels.front().name;
  const DType type = name.find("BFloat16") != name.npos ? DType::bf16
                     : name.find("Half") != name.npos   ? DType::fp16
                                                        : DType::fp32;
  return one(
      {MultiTensor{Function, type, std::make_shared<const std::vector<std::int64_t>>(1, elements), false}, {}, {}});
}

}  // namespace

std::string_view apex_name_of(std::string_view kernel) {
  if (kernel.find("multi_tensor_apply_kernel<") == kernel.npos || kernel.find("at::native") != kernel.npos) return {};
  constexpr std::pair<std::string_view, std::string_view> kFunctors[] = {
      {"AdamFunctor", "apex::multi_tensor_adam"},   {"LAMBStage1Functor", "apex::multi_tensor_lamb_stage1"},
      {"SGDFunctor", "apex::multi_tensor_sgd"},     {"LAMBStage2Functor", "apex::multi_tensor_lamb_stage2"},
      {"ScaleFunctor", "apex::multi_tensor_scale"}, {"AdagradFunctor", "apex::multi_tensor_adagrad"},
      {"AxpbyFunctor", "apex::multi_tensor_axpby"}, {"L2NormFunctor", "apex::multi_tensor_l2norm"}};
  for (const auto& [functor, name] : kFunctors)
    if (kernel.find(functor) != kernel.npos) return name;
  return {};
}

void add_apex_rules(RuleTable& table) {
  add(table, "apex::multi_tensor_adam apex::multi_tensor_lamb_stage1", by_blocks<MultiTensorFunction::fused_adam>);
  add(table, "apex::multi_tensor_adagrad apex::multi_tensor_sgd", by_blocks<MultiTensorFunction::fused_sgd>);
  add(table, "apex::multi_tensor_lamb_stage2 apex::multi_tensor_axpby", by_blocks<MultiTensorFunction::add>);
  add(table, "apex::multi_tensor_scale", by_blocks<MultiTensorFunction::copy>);
  add(table, "apex::multi_tensor_l2norm", by_blocks<MultiTensorFunction::norm>);
}

}  // namespace ridgeline::trace
