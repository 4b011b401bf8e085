// An eager session: the recorder, the tape and the modes that PyTorch keeps for a thread.
#pragma once

#include <deque>
#include <optional>

#include "sim/workload/eager/autocast.h"
#include "sim/workload/eager/checkpoint.h"
#include "sim/workload/eager/recorder.h"
#include "sim/workload/eager/tape.h"
#include "sim/workload/eager/tensor.h"
#include "sim/workload/training.h"

namespace ridgeline::eager {

class Eager {
 public:
  explicit Eager(OpTrace& trace) : recorder(trace) {}

  // Destroyed from the last to the first: handles before the recorder that counts them.
  Recorder recorder;
  std::deque<CheckpointFrame> frames;  ///< checkpointed blocks of the running step
  Autocast autocast;
  Tape tape;
  bool gradients_enabled = true;
  bool tf32 = false;        ///< fp32 matmuls run on TF32 tensor cores
  bool cudnn_tf32 = false;  ///< fp32 convolutions run on TF32 tensor cores
  /// Under torch.compile backward formulas are traced while autocast is on: batched fp32 products in them are cast.
  std::optional<DType> backward_product_type;
  ScaledLinear scaled_linear = ScaledLinear::none;  ///< of linear layers that say so
  bool sparse_weights = false;                      ///< linear layers inside blocks multiply by 2:4 sparse weights
  bool softmax_saves_input = false;                 ///< besides its result, as before PyTorch 1.11
  bool math_attention_in_fp32 = true;               ///< attention without a fused kernel casts 16 bits to fp32
  bool four_bit_keeps_input = false;                ///< linear layers of four bits save what they multiply
  bool jit_draws_by_four = false;         ///< kernels of torch.jit.script use all four random numbers of a draw
  bool whole_recomputation = false;       ///< a checkpointed block is run again to its end (reentrant checkpointing)
  bool adapters_disabled = false;         ///< linear layers do without their adapters (disable_adapter of PEFT)
  bool blocking_wait = false;             ///< the host waits for each exchange (NCCL_BLOCKING_WAIT=1)
  CheckpointFrame* promising = nullptr;   ///< the forward run of this block makes promises …
  CheckpointFrame* delivering = nullptr;  ///< … the second run of this one keeps them
  ActivationOffload offload = ActivationOffload::none;  ///< torch.autograd.graph.save_on_cpu is entered
  PackedLengths packed;                                 ///< of the sequences in each row, which fused attention is told

  /// A fresh contiguous tensor, or one with given strides.
  Tensor empty(const Dims& sizes, DType type);
  Tensor empty(const Dims& sizes, const Dims& strides, DType type);
  /// Same sizes and order of dimensions as `like`.
  Tensor empty_like(const Tensor& like) { return empty(like.sizes, preserved_strides(like), like.type); }
  Tensor empty_like(const Tensor& like, DType type) { return empty(like.sizes, preserved_strides(like), type); }

  [[nodiscard]] bool needs_node(std::initializer_list<const Tensor*> inputs) const {
    if (!gradients_enabled) return false;
    for (const Tensor* input : inputs)
      if (input->requires_gradient()) return true;
    return false;
  }
  template <typename NodeType, typename... Arguments>
  NodeType& node(std::initializer_list<const Tensor*> inputs, Arguments&&... arguments) {
    NodeType& made =
        tape.make<NodeType>(recorder.layer, recorder.module, inputs, std::forward<Arguments>(arguments)...);
    made.position = recorder.position();
    made.stream = recorder.stream;
    return made;
  }
  [[nodiscard]] DType product_type(DType type) const { return type == DType::fp32 && tf32 ? DType::tf32 : type; }
  [[nodiscard]] DType convolution_type(DType type) const {
    return type == DType::fp32 && cudnn_tf32 ? DType::tf32 : type;
  }
  /// What a node keeps of a tensor for its backward formula.
  SavedTensor save(const Tensor& tensor);
  /// In a block that keeps results: whether it keeps those of attention, or those of the next matrix product.
  [[nodiscard]] bool keeps_results() const;
  bool keeps_product();
  /// Of an operation whose results are kept: the second run takes what the first one made; true where it did.
  bool take_kept(std::initializer_list<Tensor*> results);
  void keep(std::initializer_list<const Tensor*> results);
  /// Copies a tensor to the host and waits for it. What is left says how it lay; it has no storage.
  Tensor to_host(const Tensor& tensor);
  /// … and back, into a storage of its own.
  Tensor from_host(const Tensor& tensor);
  /// Makes `output` the (only or `number`-th) result of `node`.
  static void attach(Tensor& output, Node& node, int number = 0) {
    output.node = &node;
    output.output = static_cast<std::uint8_t>(number);
    output.leaf = false;
    node.output_sizes = output.sizes;
    node.output_type = output.type;
  }
};

}  // namespace ridgeline::eager
