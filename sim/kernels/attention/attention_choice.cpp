#include "sim/kernels/attention/attention_choice.h"

#include <fmt/format.h>

#include <string>

#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

bool is_16_bit(Precision precision) {
  return precision == Precision::amp_fp16 || precision == Precision::amp_bf16 || precision == Precision::bf16 ||
         precision == Precision::apex_o2;
}

/// Why a backend cannot run; empty when it can.
std::string obstacle_to_cudnn(const TrainingDescription& t, std::int64_t head_dim, const Gpu& gpu,
                              const Software& software) {
  if (!software.has_flash_attention) return fmt::format("{} has no fused attention", software.name);
  if (gpu.compute_major < 8) return "cuDNN attention needs compute capability 8.0";
  if (!is_16_bit(t.compute_precision())) return "cuDNN attention takes fp16 and bf16 only";
  const std::int64_t largest = gpu.sm.warpgroup_mma ? 256 : 128;
  if (head_dim % 8 != 0 || head_dim > largest)
    return fmt::format("cuDNN attention takes head dimensions up to {} in steps of 8 here, not {}", largest, head_dim);
  return "";
}
std::string obstacle_to_flash(const TrainingDescription& t, std::int64_t head_dim, const Gpu& gpu,
                              const Software& software) {
  if (!software.has_flash_attention) return fmt::format("{} has no fused attention", software.name);
  if (gpu.compute_major < 8)
    return fmt::format("FlashAttention-2 needs compute capability 8.0; {} has {}.{}", gpu.name, gpu.compute_major,
                       gpu.compute_minor);
  if (!is_16_bit(t.compute_precision())) return "FlashAttention-2 takes fp16 and bf16 only";
  const bool small_shared = gpu.compute_major == 8 && gpu.compute_minor != 0;
  const std::int64_t largest = small_shared ? 192 : 256;
  if (head_dim > largest)
    return fmt::format("FlashAttention-2 trains head dimensions up to {} here, not {}", largest, head_dim);
  return "";
}
std::string obstacle_to_efficient(const TrainingDescription& t, std::int64_t head_dim, const Gpu& gpu,
                                  const Software& software) {
  if (!software.has_flash_attention) return fmt::format("{} has no fused attention", software.name);
  if (gpu.compute_major < 8 &&
      (t.compute_precision() == Precision::bf16 || t.compute_precision() == Precision::amp_bf16))
    return fmt::format(
        "memory-efficient attention takes bf16 from compute capability 8.0 on, and {} has {}.{}; take precision "
        "amp-fp16 "
        "or attention math",
        gpu.name, gpu.compute_major, gpu.compute_minor);
  const std::int64_t alignment = is_16_bit(t.compute_precision()) ? 8 : 4;
  if (head_dim % alignment != 0)
    return fmt::format("memory-efficient attention needs head dimensions in steps of {}, not {}", alignment, head_dim);
  return "";
}

}  // namespace

AttentionChoice choose_attention(const TrainingDescription& t, const ModelDescription& model, const Gpu& gpu,
                                 const Software& software) {
  const std::int64_t head_dim = model.head_dim();
  const auto insist = [](AttentionChoice choice, const std::string& obstacle) {
    if (!obstacle.empty()) throw UserError("training.attention: " + obstacle);
    return choice;
  };
  if (!t.packed_lengths.empty()) {
    if (const std::string obstacle = obstacle_to_flash(t, head_dim, gpu, software); !obstacle.empty())
      throw UserError("training.packed_lengths: " + obstacle);
    return AttentionChoice::flash;
  }
  switch (t.attention) {
    case AttentionRequest::eager: return AttentionChoice::eager;
    case AttentionRequest::math: return AttentionChoice::math;
    case AttentionRequest::cudnn: return insist(AttentionChoice::cudnn, obstacle_to_cudnn(t, head_dim, gpu, software));
    case AttentionRequest::flash: return insist(AttentionChoice::flash, obstacle_to_flash(t, head_dim, gpu, software));
    case AttentionRequest::efficient:
      return insist(AttentionChoice::efficient, obstacle_to_efficient(t, head_dim, gpu, software));
    case AttentionRequest::sdpa: break;
  }
  const bool hopper = gpu.compute_major == 9 || gpu.compute_major == 10;
  if (hopper && software.prefers_cudnn_attention_on_hopper && obstacle_to_cudnn(t, head_dim, gpu, software).empty())
    return AttentionChoice::cudnn;
  if (obstacle_to_flash(t, head_dim, gpu, software).empty()) return AttentionChoice::flash;
  if (obstacle_to_efficient(t, head_dim, gpu, software).empty()) return AttentionChoice::efficient;
  if (t.parallel.context > 1)
    throw UserError("training.parallel.context: PyTorch's context_parallel takes fused attention, but: " +
                    obstacle_to_efficient(t, head_dim, gpu, software));
  return AttentionChoice::math;
}

}  // namespace ridgeline
