#include "sim/kernels/attention/attention_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/timing/attention/attention_law.h"
#include "sim/units/ceil_div.h"

namespace ridgeline {
namespace {

int rounded_up(std::int64_t value, std::initializer_list<int> sizes) {
  for (const int size : sizes)
    if (value <= size) return size;
  return 0;
}

double compute_capability(const Gpu& gpu) { return gpu.compute_major + 0.1 * gpu.compute_minor; }
/// What the libraries' kernels of a generation were built for: SMs of up to 100 KB of shared memory (sm86, sm89, those
/// before sm80), of 164 (sm80), or of 228 (from sm90). By generation, as kernels are compiled, not by the chip at hand:
/// more shared memory alone changes no tile.
enum class Shared : std::uint8_t { small, middle, large };
Shared shared_of(const Gpu& gpu) {
  const double capability = compute_capability(gpu);
  if (capability > 7.95 && capability < 8.05) return Shared::middle;
  return capability > 8.95 && capability < 11.5 ? Shared::large : Shared::small;
}

AttentionTile flash(const Attention& op, const Gpu& gpu, Shared shared) {
  if (!is_half(op.type))
    throw std::invalid_argument("FlashAttention takes fp16 and bf16 only; use efficient attention for fp32");
  if (compute_capability(gpu) < 8.0)
    throw std::invalid_argument(fmt::format(
        "FlashAttention needs compute capability 8.0 or later; {} has {}.{}: use efficient attention, in fp16 or fp32",
        gpu.name, gpu.compute_major, gpu.compute_minor));
  const int d = rounded_up(op.head_dim, {32, 64, 96, 128, 192, 256});
  if (d == 0)
    throw std::invalid_argument(fmt::format("FlashAttention takes head dimensions up to 256, got {}", op.head_dim));
  const bool small = shared == Shared::small;
  AttentionTile tile{.head_dim = d};
  if (!op.backward) {
    if (d <= 64) {
      tile.q = 128;
      tile.k = op.dropout && d == 64 ? 64 : 128;
    } else if (d == 96) {
      tile.q = small && op.causal ? 64 : 128;
      tile.k = 64;
    } else if (d == 128) {
      tile.q = small && op.causal && !op.dropout ? 64 : 128;
      tile.k = op.dropout ? 32 : small && !op.causal ? 32 : 64;
    } else {
      // 256: two blocks of 64 queries an SM where its shared memory holds them (Hopper), else one of 128.
      tile.q = small || (d == 256 && shared == Shared::large) ? 64 : 128;
      tile.k = 64;
    }
    tile.threads = 32 * flash_forward_warps(tile.q, d);
    tile.shared_bytes = (tile.q + 2 * tile.k) * d * 2;
    tile.registers = 255;
    return tile;
  }
  if (d <= 64) {
    tile.q = small && d == 64 ? 64 : 128;
    tile.k = 128;
  } else if (d <= 128) {
    tile.q = 64;
    tile.k = small && d == 128 ? 64 : 128;
  } else {
    tile.q = tile.k = 64;
  }
  tile.threads = 256;
  tile.registers = 255;
  tile.shared_bytes = small      ? 90 * 1024
                      : d <= 32  ? 98304
                      : d == 96  ? 94208
                      : d == 192 ? 139264
                      : d == 256 ? 180224
                                 : 147456;
  return tile;
}

AttentionTile cudnn(const Attention& op, const Gpu& gpu) {
  if (!is_half(op.type))
    throw std::invalid_argument("cuDNN attention takes fp16 and bf16 only; use efficient attention for fp32");
  if (compute_capability(gpu) < 8.0)
    throw std::invalid_argument(fmt::format(
        "cuDNN attention needs compute capability 8.0 or later; {} has {}.{}: use efficient attention, in fp16 or fp32",
        gpu.name, gpu.compute_major, gpu.compute_minor));
  const int limit = gpu.sm.warpgroup_mma ? 256 : 128;
  if (op.head_dim > limit)
    throw std::invalid_argument(
        fmt::format("cuDNN attention takes head dimensions up to {} on {}, got {}", limit, gpu.name, op.head_dim));
  const int d = rounded_up(op.head_dim, {64, 128, 192, 256});
  // Two consumer warpgroups of 64 rows each, and a producer.
  if (!op.backward)
    return {.q = 128,
            .k = 128,
            .head_dim = d,
            .threads = 384,
            .registers = 168,
            .shared_bytes = d <= 64 ? 134144 : 232448 - 8192};
  return {.q = 64,
          .k = d <= 128 ? 128 : 64,
          .head_dim = d,
          .threads = 384,
          .registers = 168,
          .shared_bytes = d <= 64    ? 152576
                          : d <= 128 ? 216064
                                     : 232448};
}

AttentionTile efficient(const Attention& op, const Gpu& gpu, Shared shared) {
  const bool half = is_half(op.type);
  if (compute_capability(gpu) < 8.0 && op.type == DType::bf16)
    throw std::invalid_argument(fmt::format(
        "attention in bf16 needs compute capability 8.0 or later; {} has {}.{}: use fp16 or fp32 (of a recorded step: "
        "record it so), or a GPU from compute capability 8.0 on",
        gpu.name, gpu.compute_major, gpu.compute_minor));
  const int d = rounded_up(op.head_dim, {32, 64, 128, 192, 256, 512, 1024});
  if (d == 0)
    throw std::invalid_argument(
        fmt::format("a head dimension of {} is too large for any attention kernel", op.head_dim));
  if (!op.backward) {
    if (d <= 64)
      return {.q = 64,
              .k = 64,
              .head_dim = d,
              .threads = 128,
              .registers = half ? 128 : 168,
              .shared_bytes = half ? 18944 : 36352};
    if (d <= 128)
      return {.q = 64,
              .k = 128,
              .head_dim = d,
              .threads = 256,
              .registers = half ? 128 : 244,
              .shared_bytes = half ? 52224 : 86016};
    // The output does not fit in registers: it is accumulated in memory.
    return {.q = 32,
            .k = 128,
            .head_dim = d,
            .threads = 128,
            .registers = half ? 122 : 168,
            .shared_bytes = half ? 51200 : 76288};
  }
  if (d <= 64)
    return {.q = 64,
            .k = 64,
            .head_dim = d,
            .threads = 128,
            .registers = half ? 162 : 232,
            .shared_bytes = half ? 42240 : 53504};
  if (half && shared != Shared::small && d <= 128)
    return {.q = 128, .k = 128, .head_dim = d, .threads = 512, .registers = 128, .shared_bytes = 133632};
  if (shared == Shared::small)
    return {.q = 64, .k = 64, .head_dim = d, .threads = 128, .registers = 232, .shared_bytes = 60000};
  if (half && d > 128)
    return {.q = 128, .k = 64, .head_dim = d, .threads = 256, .registers = 151, .shared_bytes = 60928};
  return {.q = 128, .k = 64, .head_dim = d, .threads = 256, .registers = 224, .shared_bytes = 121344};
}

}  // namespace

std::string attention_kernel_name(const Attention& op, const AttentionTile& tile, std::string_view what) {
  switch (op.backend) {
    case AttentionBackend::flash: return fmt::format("flash_{}_{}_{}x{}", what, tile.head_dim, tile.q, tile.k);
    case AttentionBackend::cudnn:
      return fmt::format("cudnn_sdpa_flash_{}_{}x{}x{}", what, tile.q, tile.k, tile.head_dim);
    case AttentionBackend::efficient:
      return fmt::format("fmha_cutlass{}_{}_{}x{}", what, name_of(op.type), tile.q, tile.k);
    case AttentionBackend::math: break;
  }
  return "attention";
}

AttentionTile attention_tile(const Attention& op, const Gpu& gpu) {
  const Shared shared = shared_of(gpu);
  switch (op.backend) {
    case AttentionBackend::flash: return flash(op, gpu, shared);
    case AttentionBackend::cudnn: return cudnn(op, gpu);
    case AttentionBackend::efficient: return efficient(op, gpu, shared);
    case AttentionBackend::math: break;
  }
  return {};
}

AttentionTile flash_split_tile(const Attention& op) {
  const int d = rounded_up(op.head_dim, {32, 64, 96, 128, 192, 256});
  const int k = d <= 64 ? 256 : d <= 128 ? 128 : 64;
  return {.q = 64, .k = k, .head_dim = d, .threads = 128, .registers = 255, .shared_bytes = (64 + 2 * k) * d * 2};
}

int most_flash_splits(double blocks, int sms, int key_blocks) {
  return blocks >= 0.8 * sms ? 1 : std::min({128, sms, key_blocks});
}

int flash_splits(double blocks, int sms, int key_blocks) {
  const int most = most_flash_splits(blocks, sms, key_blocks);
  const auto efficiency = [&](int splits) {
    if (splits > 1 && ceil_div(key_blocks, splits) == ceil_div(key_blocks, splits - 1)) return 0.0;
    const double waves = blocks * splits / sms;
    return waves / std::ceil(waves);
  };
  double best = 0.0;
  for (int splits = 1; splits <= most; ++splits) best = std::max(best, efficiency(splits));
  for (int splits = 1; splits <= most; ++splits)
    if (efficiency(splits) >= 0.85 * best) return splits;
  return 1;
}

}  // namespace ridgeline
