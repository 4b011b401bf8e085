// How a model is trained: what a scenario says under `training`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/workload/block_parts.h"
#include "sim/workload/inference.h"
#include "sim/workload/lora.h"
#include "sim/workload/parallel/parallel.h"
#include "sim/workload/preference.h"

namespace ridgeline {

enum class Precision : std::uint8_t {
  fp32,      ///< fp32 everywhere, CUDA cores
  tf32,      ///< fp32 in memory, TF32 tensor cores
  amp_fp16,  ///< autocast to fp16 with gradient scaling
  amp_bf16,  ///< autocast to bf16
  bf16,      ///< every tensor in bf16, optimizer states too
  apex_o2    ///< parameters and all of forward and backward in fp16, fp32 copies for the optimizer, loss scaling
};

/// What a scenario asks for; `sdpa` is PyTorch's own choice of a backend (sim/kernels/attention/attention_choice.h).
enum class AttentionRequest : std::uint8_t { eager, sdpa, flash, cudnn, efficient, math };

/// What runs: matmuls and softmax of the model's own code (eager) or one backend of scaled_dot_product_attention.
enum class AttentionChoice : std::uint8_t { eager, flash, cudnn, efficient, math };

enum class OptimizerKind : std::uint8_t {
  adamw,
  adam,
  sgd,
  sgd_momentum,
  adafactor,
  adamw_8bit,
  adamw_kahan,
  lion,                 ///< lists as timm has them, a tensor after the other as lion-pytorch; fused: of bitsandbytes
  lion_8bit,            ///< of bitsandbytes
  lamb,                 ///< apex's FusedLAMB
  schedule_free_adamw,  ///< AdamWScheduleFree
  muon,                 ///< torch.optim.Muon for the matrices of blocks, AdamW for all else
  none,                 ///< forward and backward alone; gradients are dropped
  bert_adam             ///< of the first BERT codes: no correction of bias, one loop of its own that clips each tensor
};
enum class OptimizerImplementation : std::uint8_t { for_loop, foreach, fused };
/// Parts of an optimizer on one GPU that lie in the host's memory, where it steps (torchao's CPUOffloadOptimizer):
/// nothing; states, with copies of weights and gradients; gradients too, which the device drops when they were copied.
enum class OptimizerOffload : std::uint8_t { none, states, gradients };
struct OptimizerDescription {
  OptimizerKind kind = OptimizerKind::adamw;
  OptimizerImplementation implementation = OptimizerImplementation::foreach;
  bool paged = false;        ///< states lie in unified memory, which PyTorch's allocator does not hold (bitsandbytes)
  bool in_backward = false;  ///< each parameter has its own, which steps when its gradient has arrived
  OptimizerOffload offload = OptimizerOffload::none;
  /// Gradients leave the device inside the backward pass.
  [[nodiscard]] bool drops_gradients() const { return in_backward || offload == OptimizerOffload::gradients; }
  /// An optimizer of bitsandbytes: states in unified memory, one kernel a tensor.
  [[nodiscard]] bool of_bitsandbytes() const {
    return kind == OptimizerKind::adamw_8bit || kind == OptimizerKind::lion_8bit ||
           (kind == OptimizerKind::adamw && paged) ||
           (kind == OptimizerKind::lion && (paged || implementation == OptimizerImplementation::fused));
  }
  /// A GradScaler hands its scale and flag to torch's own fused kernels and asks nothing before any other step.
  [[nodiscard]] bool takes_scale() const {
    return implementation == OptimizerImplementation::fused && !of_bitsandbytes() && kind != OptimizerKind::lamb &&
           kind != OptimizerKind::muon;
  }
  bool operator==(const OptimizerDescription&) const = default;
};

/// `block`: each transformer block keeps its input only and is run again in the backward pass. `selective`: only what
/// lies between the projections of attention is (Megatron-LM). `operations`: a block keeps what every second product,
/// attention and sums over ranks gave besides its input (torchtitan). `parts`: as TrainingDescription::treated_blocks
/// says of each block.
enum class ActivationCheckpointing : std::uint8_t { none, block, selective, operations, parts };

/// Where what autograd saves waits for the backward pass: on the device, or in the host's memory, which a copy can read
/// and write by itself (pinned) or through a buffer of the driver (pageable): torch.autograd.graph.save_on_cpu around
/// the forward pass.
/// `streams`: inputs of checkpointed blocks are copied beside the computation (torchtune's OffloadActivations).
enum class ActivationOffload : std::uint8_t { none, pinned, pageable, streams };

/// Linear layers of blocks that multiply in 8-bit floating point (torchao's Float8Linear): operands are cast with one
/// scale each, or with one for each row and column, which are found anew for each product.
enum class ScaledLinear : std::uint8_t { none, tensorwise, rowwise };

/// Code of a language model's loss: over the scores of all tokens; over one chunk after another, whose gradient the
/// forward pass makes (Liger's fused linear cross entropy); or over scores that the head makes in chunks, of which one
/// at a time is in fp32 (torchtune's CEWithChunkedOutputLoss).
enum class LossCode : std::uint8_t { whole, chunked, chunked_output };

/// How often the script reads the loss (loss.item(), a progress bar that prints it): the host waits for the GPU there.
enum class LossRead : std::uint8_t { never, step, micro_batch };

/// Who clips the norm of all gradients: torch.nn.utils.clip_grad_norm_, or apex's kernels over lists with the norm read
/// by the host, as NVIDIA's examples have it.
enum class GradientClipper : std::uint8_t { torch, apex };

/// Where a micro-batch comes from: it lies on the device (as in measurements of kernels), or a DataLoader without
/// workers takes it from a TensorDataset and copies it over, tensor by tensor.
enum class DataLoader : std::uint8_t { none, tensor_dataset };

/// Who exchanges gradients under parallel.strategy ddp, and what wraps a run on one GPU: torch's
/// DistributedDataParallel, nothing around one GPU; or apex's (sim/workload/parallel/apex_data_parallel.h).
enum class DataParallel : std::uint8_t { none, apex };

/// How a version of PyTorch clips: over lists in few kernels, or tensor after tensor; and whether the host waits to
/// hear if the norm is too large.
struct ClippingStyle {
  bool by_lists = true;
  bool waits = false;
  bool operator==(const ClippingStyle&) const = default;
};

struct TrainingDescription {
  std::int64_t micro_batch = 1;  ///< sequences of one forward pass
  std::int64_t sequence_length = 512;
  std::vector<std::int64_t> packed_lengths{};  ///< of the sequences in a row; none: one of sequence_length
  std::int64_t gradient_accumulation = 1;      ///< micro-batches of one optimizer step
  Precision precision = Precision::fp32;
  std::optional<DType> weight_dtype{};  ///< type in which the network is loaded, where autocast computes in another
  bool tf32 = false;                    ///< fp32 matmuls may use TF32 (torch.backends.cuda.matmul.allow_tf32)
  bool cudnn_tf32 = true;               ///< fp32 convolutions may use TF32 (torch.backends.cudnn.allow_tf32)
  ScaledLinear scaled_linear = ScaledLinear::none;
  LossCode loss_code = LossCode::whole;
  AttentionRequest attention = AttentionRequest::sdpa;
  OptimizerDescription optimizer;
  std::optional<double> gradient_clipping;  ///< largest gradient norm
  GradientClipper gradient_clipper = GradientClipper::torch;
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  std::int64_t checkpointed_every = 1;  ///< of so many blocks the last is checkpointed, the others are not
  BlockTreatments treated_blocks{};     ///< of activation_checkpointing `parts`
  ActivationOffload activation_offload = ActivationOffload::none;
  LossRead reads_loss = LossRead::never;
  DataLoader data_loader = DataLoader::none;
  DataParallel data_parallel = DataParallel::none;
  bool clears_gradients = true;  ///< false: the script has no zero_grad, each backward pass adds to the last one's
  ParallelDescription parallel;  ///< over several GPUs
  std::optional<LoraDescription> lora;                ///< the model is frozen, adapters are trained
  std::optional<InferenceDescription> inference;      ///< use instead of training: forward passes alone
  std::optional<PreferenceDescription> preference{};  ///< a micro-batch is pairs of answers
  // What follows is of the software, not of the user.
  bool keep_gradients = false;         ///< zero_grad fills gradients with zeros instead of dropping them
  bool softmax_saves_input = false;    ///< autograd keeps the input of softmax besides its result
  bool checkpoint_stops_early = true;  ///< a checkpointed block runs again no further than its backward pass reads
  bool four_bit_keeps_input = false;   ///< linear layers with weights of four bits save their input
  bool math_attention_in_fp32 = true;  ///< unfused attention casts 16 bits to fp32 and minds empty rows
  bool reorders_compiled = true;       ///< torch.compile orders kernels by the memory they leave in use
  bool jit_draws_by_four = false;      ///< kernels of torch.jit.script use all four numbers of a draw
  bool mask_always_added = false;      ///< eager attention adds a mask in fp32 to every score, of ones too
  bool mask_given = false;       ///< one of Transformers' models is compiled: nobody can look whether its mask hides
                                 ///< anything that a kernel would not hide by itself, so that fused attention gets it
  bool mask_of_padding = false;  ///< rows of a micro-batch differ in length: attention gets a mask that hides padding
  ClippingStyle clipping_style;
  int foreach_adam_lists = 1;          ///< temporaries as large as the parameters that a foreach Adam holds at once
  std::int64_t eight_bit_block = 256;  ///< elements that share a scale in the states of an 8-bit optimizer
  /// Whether fp32 matmuls run on TF32 tensor cores.
  [[nodiscard]] bool matmuls_in_tf32() const { return tf32 || precision == Precision::tf32; }
  /// True where a part of block number `block` runs again by itself, or waits on the host.
  [[nodiscard]] bool treats(std::int64_t block, BlockPart part) const {
    return activation_checkpointing == ActivationCheckpointing::parts && treated_blocks.has(block, part);
  }
  /// How weights that nobody trains are kept, of the blocks' linear layers.
  [[nodiscard]] FrozenWeights frozen_weights() const {
    if (inference) return inference->weights;
    return lora ? lora->frozen : FrozenWeights::as_stored;
  }
  /// Whether block number `block` runs again, all of it or in part.
  [[nodiscard]] bool checkpoints(std::int64_t block) const {
    return activation_checkpointing != ActivationCheckpointing::none && (block + 1) % checkpointed_every == 0;
  }
  [[nodiscard]] std::int64_t longest_sequence() const {
    return packed_lengths.empty() ? sequence_length : *std::max_element(packed_lengths.begin(), packed_lengths.end());
  }
  /// Pairs of tokens in a row whose scores attention computes, those that a causal mask hides too.
  [[nodiscard]] double scores_of_row() const {
    if (packed_lengths.empty()) return static_cast<double>(sequence_length) * static_cast<double>(sequence_length);
    double sum = 0.0;
    for (const std::int64_t length : packed_lengths) sum += static_cast<double>(length) * static_cast<double>(length);
    return sum;
  }
  /// Whether a rank has the buckets of DistributedDataParallel's first step in its second: not where the host waits for
  /// a number of the GPU in every step (a scaler asks whether gradients are finite, the script for the loss), nor (one
  /// measured run) where it compiles graphs.
  [[nodiscard]] bool holds_first_buckets() const {
    const bool waits =
        precision == Precision::amp_fp16 || precision == Precision::apex_o2 || reads_loss != LossRead::never;
    return parallel.holds_first_buckets && !parallel.compiled && !waits;
  }
  [[nodiscard]] std::optional<DType> autocast_type() const {
    if (precision == Precision::amp_fp16) return DType::fp16;
    if (precision == Precision::amp_bf16) return DType::bf16;
    return std::nullopt;
  }
  /// Hooks that save_on_cpu sets around the forward pass.
  [[nodiscard]] ActivationOffload saves_on_cpu() const {
    return activation_offload == ActivationOffload::streams ? ActivationOffload::none : activation_offload;
  }
  /// Type in which the network's parameters are stored between steps.
  [[nodiscard]] DType stored_type() const {
    return weight_dtype.value_or(precision == Precision::bf16 ? DType::bf16 : DType::fp32);
  }
  /// What forward and backward passes compute in: sharded parameters may be gathered in another type.
  [[nodiscard]] Precision compute_precision() const {
    // DeepSpeed's fp16 and bf16 hold for parameters and gradients; its fp32 copies are the optimizer's alone.
    if (parallel.deepspeed() && precision == Precision::amp_bf16) return Precision::bf16;
    if (parallel.deepspeed() && precision == Precision::amp_fp16) return Precision::apex_o2;
    if (parallel.gradient_ranks() == 1 || !parallel.shards_parameters() || !parallel.parameter_type) return precision;
    if (*parallel.parameter_type == DType::bf16) return Precision::bf16;
    return *parallel.parameter_type == DType::fp16 ? Precision::amp_fp16 : precision;
  }
  /// Of each sequence, where ranks share them.
  [[nodiscard]] std::int64_t tokens_of_rank() const { return sequence_length / parallel.context; }
  /// Of what stages of a pipeline hand on: that of the residual stream.
  [[nodiscard]] DType stage_type() const {
    if (parallel.several() && parallel.shards_parameters() && parallel.parameter_type) return *parallel.parameter_type;
    if (parallel.megatron() && precision == Precision::amp_bf16) return DType::bf16;
    if (parallel.megatron() && (precision == Precision::amp_fp16 || precision == Precision::apex_o2))
      return DType::fp16;
    return stored_type();
  }
  bool operator==(const TrainingDescription&) const = default;
};

}  // namespace ridgeline
