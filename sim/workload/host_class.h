// What the host spends its time on: classes of one Python-visible operation or one autograd node.
//
// A forward class covers the call from Python to Python, with the launches inside; a backward class one node of the
// autograd engine with its dispatch. The cost of each class is a property of the host (hw/hosts/*.yaml), under the
// enumerator's name. The microseconds beside them are means measured with PyTorch 2.11 on the host of an H200.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ridgeline {

enum class HostClass : std::uint8_t {
  // Forward, on the main thread.
  linear,              ///< 27
  linear_autocast,     ///< 45: casts weight, bias and input first
  matmul,              ///< 22: batched product; each operand that must be copied first adds a `matmul_copy`
  matmul_copy,         ///< 12
  layer_norm,          ///< 19
  layer_norm_module,   ///< 45: inside a HuggingFace module, with the Python around it
  attention_cudnn,     ///< 59
  attention_fused,     ///< 32: flash or memory-efficient
  pointwise,           ///< 15
  dropout,             ///< 18
  dropout_off,         ///< 1.8: probability 0, nothing launched
  softmax,             ///< 15
  masked_fill,         ///< 29
  contiguous,          ///< 12
  view,                ///< 2.6
  transpose,           ///< 4.5
  split,               ///< 9.5
  embedding,           ///< 44
  cross_entropy,       ///< 110
  loss_division,       ///< 39
  cast,                ///< 12: a cast of its own, outside linear
  concatenate,         ///< 16
  backward_call,       ///< 150: from backward() until the engine runs
  checkpoint_segment,  ///< entering a checkpointed block: RNG state, saved-tensor hooks
  // Backward, on the autograd thread.
  addmm_backward,             ///< 41
  mm_backward,                ///< 35
  bmm_backward,               ///< 32
  view_backward,              ///< 3.3: any node that launches nothing
  view_backward_copy,         ///< 11
  fan_in_add,                 ///< 6: gradients of two uses added in place
  accumulate_grad,            ///< 2.9
  accumulate_grad_add,        ///< 10
  cast_backward,              ///< 10.6
  layer_norm_backward,        ///< 22
  attention_cudnn_backward,   ///< 54
  attention_fused_backward,   ///< 54
  pointwise_backward,         ///< 12
  add_backward,               ///< 3.6
  softmax_backward,           ///< 20
  masked_fill_backward,       ///< 29
  split_backward,             ///< 16
  embedding_backward,         ///< 28: the path without a sort
  embedding_backward_sorted,  ///< 143
  nll_backward,               ///< 47
  log_softmax_backward,       ///< 23
  checkpoint_recompute,       ///< starting to recompute a segment
  // Once a step, and once a parameter tensor.
  clip_fixed,             ///< 300
  per_parameter_clip,     ///< 7.5
  unscale_fixed,          ///< 250: GradScaler unscale_, step and update
  per_parameter_unscale,  ///< 2
  foreach_fixed,          ///< 80
  per_parameter_foreach,  ///< 9.3: AdamW
  per_parameter_foreach_sgd,
  fused_fixed,               ///< 100
  per_parameter_fused,       ///< 3
  per_parameter_for_loop,    ///< 67
  optimizer_op,              ///< 6.8: one operation of an optimizer's own loop over tensors, without autograd
  per_parameter_zero_grad,   ///< 0.6
  per_parameter_accumulate,  ///< 7.4: each micro-batch after the first
  python_fixed,              ///< 1: microseconds of Python that belong to no operation
  // torch.compile.
  compiled_forward,                 ///< 670: entering the forward graph: guards, runtime wrappers
  compiled_backward,                ///< 1377
  generated_kernel,                 ///< 5.8: one launch of a Triton kernel with what is allocated for it
  compiled_call,                    ///< 7.5: one library call from generated code
  per_parameter_compiled_forward,   ///< 5.9
  per_parameter_compiled_backward,  ///< 8.0
  // Convolutional networks, from recorded traces.
  convolution,
  convolution_backward,
  batch_norm,
  batch_norm_backward,
  other
};

/// What a class's cost is made of besides its launch calls. Adds up to 1.
struct HostMix {
  double python = 0.0, dispatcher = 0.0, autograd = 0.0, allocation = 0.0;
};
/// Estimated: beside an NVIDIA H200 a module's call costs 0.77 us, a view 1.1, an empty tensor 0.8 (on the device 2.0)
/// and the engine 1.5 a node; the shares are what an operation has of each. They matter where a host's parts differ.
HostMix mix_of(HostClass host_class);

/// Names of all classes in the order of the enumerators.
std::span<const std::string_view> host_class_names();
std::string_view name_of(HostClass host_class);

}  // namespace ridgeline
