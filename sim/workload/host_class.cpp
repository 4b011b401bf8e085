#include "sim/workload/host_class.h"

#include "sim/units/word_list.h"

namespace ridgeline {
namespace {

constexpr auto kHostClassNames = split_words<static_cast<std::size_t>(HostClass::other) + 1>(
    "linear linear_autocast matmul matmul_copy layer_norm layer_norm_module attention_cudnn attention_fused "
    "pointwise dropout dropout_off softmax masked_fill contiguous view transpose split embedding cross_entropy "
    "loss_division cast concatenate backward_call backward_first checkpoint_segment addmm_backward mm_backward "
    "bmm_backward view_backward view_backward_copy fan_in_add accumulate_grad accumulate_grad_add cast_backward "
    "layer_norm_backward attention_cudnn_backward attention_fused_backward pointwise_backward add_backward "
    "softmax_backward masked_fill_backward split_backward embedding_backward embedding_backward_sorted "
    "nll_backward log_softmax_backward checkpoint_recompute clip_fixed per_parameter_clip unscale_fixed "
    "per_parameter_unscale foreach_fixed per_parameter_foreach per_parameter_foreach_sgd fused_fixed "
    "per_parameter_fused per_parameter_for_loop optimizer_op per_parameter_zero_grad per_parameter_accumulate "
    "python_fixed compiled_forward compiled_backward generated_kernel compiled_call "
    "per_parameter_compiled_forward per_parameter_compiled_backward convolution convolution_backward batch_norm "
    "batch_norm_backward collective ddp_forward thread_products ddp_hook ddp_copy_back ddp_compression ddp_unused "
    "zero_broadcast fsdp_hooks fsdp_gather fsdp_copy_out fsdp_reduce per_parameter_shard tensor_boundary "
    "tensor_boundary_backward megatron_linear megatron_linear_backward megatron_function "
    "megatron_function_backward main_gradient_hook dtensor_op dtensor_op_backward dtensor_redistribute "
    "pipeline_chunk pipeline_exchange pipeline_split offload_pack offload_unpack host_update_fused "
    "host_update_for_loop host_addition other");
static_assert(kHostClassNames[static_cast<std::size_t>(HostClass::backward_call)] == "backward_call");
static_assert(kHostClassNames[static_cast<std::size_t>(HostClass::clip_fixed)] == "clip_fixed");
static_assert(kHostClassNames[static_cast<std::size_t>(HostClass::convolution)] == "convolution");

}  // namespace

std::span<const std::string_view> host_class_names() { return kHostClassNames; }
HostMix mix_of(HostClass host_class) {
  constexpr HostMix kForward{0.3, 0.5, 0.1, 0.1}, kNode{0.0, 0.5, 0.35, 0.15}, kPython{1.0, 0.0, 0.0, 0.0},
      kLists{0.4, 0.5, 0.0, 0.1}, kCompiledGraph{0.8, 0.2, 0.0, 0.0}, kCompiledCall{0.7, 0.1, 0.0, 0.2};
  if (host_class == HostClass::python_fixed || host_class == HostClass::checkpoint_segment ||
      host_class == HostClass::loss_division)
    return kPython;
  if (host_class == HostClass::convolution_backward || host_class == HostClass::batch_norm_backward ||
      (host_class >= HostClass::backward_call && host_class <= HostClass::checkpoint_recompute))
    return kNode;
  if (host_class >= HostClass::clip_fixed && host_class < HostClass::python_fixed) return kLists;
  if (host_class == HostClass::compiled_forward || host_class == HostClass::compiled_backward) return kCompiledGraph;
  if (host_class > HostClass::python_fixed && host_class <= HostClass::per_parameter_compiled_backward)
    return kCompiledCall;
  return kForward;
}
bool in_backward_thread(HostClass host_class) {
  switch (host_class) {
    case HostClass::compiled_backward:
    case HostClass::per_parameter_compiled_backward:
    case HostClass::convolution_backward:
    case HostClass::batch_norm_backward:
    case HostClass::tensor_boundary_backward:
    case HostClass::megatron_linear_backward:
    case HostClass::megatron_function_backward:
    case HostClass::main_gradient_hook:
    case HostClass::offload_unpack:
    case HostClass::dtensor_op_backward: return true;
    default: return host_class >= HostClass::backward_call && host_class <= HostClass::checkpoint_recompute;
  }
}
std::string_view name_of(HostClass host_class) { return kHostClassNames[static_cast<std::size_t>(host_class)]; }

}  // namespace ridgeline
