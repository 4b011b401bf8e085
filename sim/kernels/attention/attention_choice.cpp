#include "sim/kernels/attention/attention_choice.h"

#include <fmt/format.h>

#include <string>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

/// The properties of a call that the backends' constraints are about.
struct SdpaCall {
  bool half = false, bf16 = false;
  std::int64_t head_dim = 0;
  bool masked = false, grouped = false, dropout = false, causal_oblong = false, one_key = false;
};

/// A call of the model without a mask, whose keys are expanded where a backend cannot group them.
SdpaCall call_of(const TrainingDescription& t, const ModelDescription& model) {
  const Precision precision = t.compute_precision();
  return {.half = precision != Precision::fp32 && precision != Precision::tf32,
          .bf16 = precision == Precision::bf16 || precision == Precision::amp_bf16,
          .head_dim = model.head_dim(),
          .dropout = model.attention_dropout > 0.0};
}

SdpaCall call_of(const Attention& op) {
  return {.half = is_half(op.type),
          .bf16 = op.type == DType::bf16,
          .head_dim = op.head_dim,
          .masked = op.bias,
          .grouped = op.kv_heads != op.heads,
          .dropout = op.dropout,
          .causal_oblong = op.causal && op.seq_q != op.seq_k,
          .one_key = op.seq_k == 1};
}

/// Why a backend cannot run; empty when it can.
std::string obstacle_to_cudnn(const SdpaCall& call, const Gpu& gpu, const Software& software) {
  if (!software.has_flash_attention) return fmt::format("{} has no fused attention", software.name);
  if (gpu.compute_major < 8) return "cuDNN attention needs compute capability 8.0";
  if (!call.half) return "cuDNN attention takes fp16 and bf16 only";
  const std::int64_t largest = gpu.sm.warpgroup_mma ? 256 : 128;
  if (call.head_dim % 8 != 0 || call.head_dim > largest)
    return fmt::format("cuDNN attention takes head dimensions up to {} in steps of 8 here, not {}", largest,
                       call.head_dim);
  if (call.one_key) return "cuDNN attention takes more than one key";
  return "";
}
std::string obstacle_to_flash(const SdpaCall& call, const Gpu& gpu, const Software& software) {
  if (!software.has_flash_attention) return fmt::format("{} has no fused attention", software.name);
  if (gpu.compute_major < 8)
    return fmt::format("FlashAttention-2 needs compute capability 8.0; {} has {}.{}", gpu.name, gpu.compute_major,
                       gpu.compute_minor);
  if (!call.half) return "FlashAttention-2 takes fp16 and bf16 only";
  const bool small_shared = (gpu.compute_major == 8 && gpu.compute_minor != 0) || gpu.compute_major == 12;
  const bool without_dropout = small_shared && !call.dropout && call.head_dim > 224;
  const std::int64_t largest = small_shared && !without_dropout ? 192 : 256;
  if (call.head_dim > largest)
    return fmt::format("FlashAttention-2 trains head dimensions up to {} here, not {}", largest, call.head_dim);
  if (call.masked) return "FlashAttention-2 takes no mask";
  if (call.causal_oblong) return "FlashAttention-2 takes is_causal where there are as many keys as queries";
  return "";
}
std::string obstacle_to_efficient(const SdpaCall& call, const Gpu& gpu, const Software& software) {
  if (!software.has_flash_attention) return fmt::format("{} has no fused attention", software.name);
  if (gpu.compute_major < 8 && call.bf16)
    return fmt::format(
        "memory-efficient attention takes bf16 from compute capability 8.0 on, and {} has {}.{}; take precision "
        "amp-fp16 "
        "or attention math",
        gpu.name, gpu.compute_major, gpu.compute_minor);
  const std::int64_t alignment = call.half ? 8 : 4;
  if (call.head_dim % alignment != 0)
    return fmt::format("memory-efficient attention needs head dimensions in steps of {}, not {}", alignment,
                       call.head_dim);
  if (call.grouped) return "memory-efficient attention takes a key head for each query head";
  return "";
}

AttentionChoice chosen_for(const SdpaCall& call, const Gpu& gpu, const Software& software) {
  const bool hopper = gpu.compute_major == 9 || gpu.compute_major == 10;
  if (hopper && software.prefers_cudnn_attention_on_hopper && obstacle_to_cudnn(call, gpu, software).empty())
    return AttentionChoice::cudnn;
  if (obstacle_to_flash(call, gpu, software).empty()) return AttentionChoice::flash;
  if (obstacle_to_efficient(call, gpu, software).empty()) return AttentionChoice::efficient;
  return AttentionChoice::math;
}

}  // namespace

AttentionChoice choose_attention(const TrainingDescription& t, const ModelDescription& model, const Gpu& gpu,
                                 const Software& software) {
  const SdpaCall call = call_of(t, model);
  const auto insist = [](AttentionChoice choice, const std::string& obstacle) {
    if (!obstacle.empty()) throw UserError("training.attention: " + obstacle);
    return choice;
  };
  if (!t.packed_lengths.empty()) {
    if (const std::string obstacle = obstacle_to_flash(call, gpu, software); !obstacle.empty())
      throw UserError("training.packed_lengths: " + obstacle);
    return AttentionChoice::flash;
  }
  switch (t.attention) {
    case AttentionRequest::eager: return AttentionChoice::eager;
    case AttentionRequest::math: return AttentionChoice::math;
    case AttentionRequest::cudnn: return insist(AttentionChoice::cudnn, obstacle_to_cudnn(call, gpu, software));
    case AttentionRequest::flash: return insist(AttentionChoice::flash, obstacle_to_flash(call, gpu, software));
    case AttentionRequest::efficient:
      return insist(AttentionChoice::efficient, obstacle_to_efficient(call, gpu, software));
    case AttentionRequest::sdpa: break;
  }
  const AttentionChoice choice = chosen_for(call, gpu, software);
  if (choice == AttentionChoice::math && t.parallel.context > 1)
    throw UserError("training.parallel.context: PyTorch's context_parallel takes fused attention, but: " +
                    obstacle_to_efficient(call, gpu, software));
  return choice;
}

AttentionBackend choose_backend(const Attention& op, const Gpu& gpu, const Software& software) {
  switch (chosen_for(call_of(op), gpu, software)) {
    case AttentionChoice::cudnn: return AttentionBackend::cudnn;
    case AttentionChoice::flash: return AttentionBackend::flash;
    case AttentionChoice::efficient: return AttentionBackend::efficient;
    default: return AttentionBackend::math;
  }
}

}  // namespace ridgeline
