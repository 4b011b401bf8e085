// What the host spends its time on: classes of one Python-visible operation or one autograd node.
//
// A forward class covers the call from Python to Python, with the launches inside; a backward class one node of the
// autograd engine with its dispatch. The cost of each class is a property of the host (hw/hosts/*.yaml), under the
// enumerator's name, with what was measured or estimated there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ridgeline {

enum class HostClass : std::uint8_t {
  // Forward, on the main thread.
  linear,
  linear_autocast,  ///< casts weight, bias and input first
  matmul,           ///< batched product; each operand that must be copied first adds a `matmul_copy`
  matmul_copy,
  layer_norm,
  layer_norm_module,  ///< inside a HuggingFace module, with the Python around it
  attention_cudnn,
  attention_fused,  ///< flash or memory-efficient
  pointwise,
  dropout,
  dropout_off,  ///< probability 0, nothing launched
  softmax,
  masked_fill,
  contiguous,
  view,
  transpose,
  split,
  embedding,
  cross_entropy,
  loss_division,
  cast,  ///< a cast of its own, outside linear
  concatenate,
  backward_call,       ///< from backward() until the engine runs
  backward_first,      ///< besides, one operation of a step's first forward pass, up to kColdOperations: the engine's
                       ///< thread has slept, and nothing of its work is cached
  checkpoint_segment,  ///< entering a checkpointed block: RNG state, saved-tensor hooks
  // Backward, on the autograd thread.
  addmm_backward,
  mm_backward,
  bmm_backward,
  view_backward,  ///< any node that launches nothing
  view_backward_copy,
  fan_in_add,  ///< gradients of two uses added in place
  accumulate_grad,
  accumulate_grad_add,
  cast_backward,
  layer_norm_backward,
  attention_cudnn_backward,
  attention_fused_backward,
  pointwise_backward,
  add_backward,
  softmax_backward,
  masked_fill_backward,
  split_backward,
  embedding_backward,  ///< the path without a sort
  embedding_backward_sorted,
  nll_backward,
  log_softmax_backward,
  checkpoint_recompute,  ///< starting to recompute a segment
  // Once a step, and once a parameter tensor.
  clip_fixed,
  per_parameter_clip,
  unscale_fixed,  ///< GradScaler unscale_, step and update
  per_parameter_unscale,
  foreach_fixed,
  per_parameter_foreach,  ///< AdamW
  per_parameter_foreach_sgd,
  fused_fixed,
  per_parameter_fused,
  per_parameter_for_loop,
  optimizer_op,  ///< one operation of an optimizer's own loop over tensors, without autograd
  per_parameter_zero_grad,
  per_parameter_accumulate,  ///< each micro-batch after the first
  python_fixed,              ///< microseconds of Python that belong to no operation
  // torch.compile.
  compiled_forward,  ///< entering the forward graph: guards, runtime wrappers
  compiled_backward,
  generated_kernel,  ///< one launch of a Triton kernel with what is allocated for it
  compiled_call,     ///< one library call from generated code
  per_parameter_compiled_forward,
  per_parameter_compiled_backward,
  // Convolutional networks, from recorded traces.
  convolution,
  convolution_backward,
  batch_norm,
  batch_norm_backward,
  // Several GPUs.
  collective,           ///< one call of torch.distributed, from Python or the reducer, up to NCCL's launch
  ddp_forward,          ///< DistributedDataParallel around a forward pass
  thread_products,      ///< a plan of cuDNN for one shape of attention in a new thread
  ddp_hook,             ///< its hook for one gradient, with the copy into the bucket
  ddp_copy_back,        ///< one gradient out of its bucket
  ddp_compression,      ///< a hook in Python that compresses a bucket
  ddp_unused,           ///< looking for one parameter that the graph does not reach
  zero_broadcast,       ///< one tensor that ZeroRedundancyOptimizer sends, besides the collective
  fsdp_hooks,           ///< hooks of fully_shard around one pass of a group
  fsdp_gather,          ///< copies of shards and what starts gathering a group
  fsdp_copy_out,        ///< waiting for a gathered group, its copy into parameters
  fsdp_reduce,          ///< a group's gradients into order, reduction, and back to the shards
  per_parameter_shard,  ///< of an optimizer that works on sharded parameters (DTensor)
  tensor_boundary,      ///< an autograd function in Python around a collective of a split layer
  tensor_boundary_backward,
  megatron_linear,  ///< Megatron-LM's linear layer: an autograd function in Python around one product
  megatron_linear_backward,
  megatron_function,  ///< a fused kernel of Megatron-LM or apex, with the autograd function around it
  megatron_function_backward,
  main_gradient_hook,  ///< a parameter's gradient into Megatron-LM's gradient buffer
  dtensor_op,          ///< dispatch of one operation on DTensors: its sharding looked up, its local operation called
  dtensor_op_backward,
  dtensor_redistribute,  ///< a change of a DTensor's placement, besides its collective
  pipeline_chunk,        ///< a pipeline's Python around one pass of a stage
  pipeline_exchange,     ///< one batch of sends and receives, up to NCCL's launch
  pipeline_split,        ///< a node of the graph that is looked at to part gradients of inputs and weights
  offload_pack,          ///< a saved tensor's hook in Python: an empty tensor of the host and the copy into it
  offload_unpack,        ///< … and back, in the backward pass
  host_update_fused,     ///< kHostElements of Adam in the host's memory, in one pass
  host_update_for_loop,  ///< … operation by operation
  host_addition,         ///< as many added to others there
  other
};

/// Numbers in the host's memory that one count of a host_… class is for.
inline constexpr std::int64_t kHostElements = 65536;

/// Operations after which a longer forward pass makes the first backward pass of a step no slower. Estimated: the
/// distinct operations of a network, whose code is fetched anew.
inline constexpr std::int64_t kColdOperations = 40;

/// What a class's cost is made of besides its launch calls. Adds up to 1.
struct HostMix {
  double python = 0.0, dispatcher = 0.0, autograd = 0.0, allocation = 0.0;
};
/// Estimated: beside an NVIDIA H200 a module's call costs 0.77 us, a view 1.1, an empty tensor 0.8 (on the device 2.0)
/// and the engine 1.5 a node; the shares are what an operation has of each. They matter where a host's parts differ.
HostMix mix_of(HostClass host_class);

/// Whether the thread of the backward pass does it.
bool in_backward_thread(HostClass host_class);
/// Whether a slower host takes longer for it; a plan of attention took as long where the host was half as fast.
constexpr bool moves_with_the_host(HostClass host_class) { return host_class != HostClass::thread_products; }

/// Names of all classes in the order of the enumerators.
std::span<const std::string_view> host_class_names();
std::string_view name_of(HostClass host_class);

}  // namespace ridgeline
