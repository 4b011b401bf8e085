#include "fit/kernel_name.h"

#include <array>
#include <charconv>

namespace ridgeline::fit {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The numbers of "AxB", "AxBxC" ... at the beginning of `text`; whether one more character follows says that the last
/// one is whole.
template <std::size_t N>
std::size_t numbers_at(std::string_view text, std::array<int, N>& out) {
  std::size_t count = 0;
  while (count < N && !text.empty()) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out[count]);
    if (read.ec != std::errc{}) break;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    if (text.empty()) break;  // perhaps cut off
    ++count;
    if (text.front() != 'x' && text.front() != '_') break;
    text.remove_prefix(1);
  }
  return count;
}

/// nvjet_sm90_tst_192x32_64x7_4x1_v_bz_splitK_TNT: n x m, k x stages, cluster.
std::optional<NamedGemm> nvjet(std::string_view name) {
  for (std::size_t at = name.find("nvjet_sm90_"); at < name.size(); at = name.find('_', at + 1)) {
    std::array<int, 4> tile{};
    if (numbers_at(name.substr(at + 1), tile) == 4 && tile[1] > 0)
      return NamedGemm{.family = GemmWork::Family::wgmma,
                       .m = tile[1],
                       .n = tile[0],
                       .k = tile[2],
                       .stages = tile[3],
                       .split = has(name, "splitK")};
  }
  return std::nullopt;
}

/// sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_...: m x n x k.
std::optional<NamedGemm> xmma(std::string_view name) {
  constexpr std::string_view kTile = "tilesize", kStage = "_stage";
  std::array<int, 3> tile{};
  const std::size_t at = name.find(kTile);
  if (at == std::string_view::npos || numbers_at(name.substr(at + kTile.size()), tile) != 3) return std::nullopt;
  NamedGemm result{.m = tile[0], .n = tile[1], .k = tile[2], .split = has(name, "split_k")};
  if (const std::size_t stage = name.find(kStage); stage != std::string_view::npos) {
    std::array<int, 1> stages{};
    if (numbers_at(name.substr(stage + kStage.size()), stages) == 1) result.stages = stages[0];
  }
  result.shares_steps = has(name, "segment_k_on");
  result.family = has(name, "warpgroupsize") ? GemmWork::Family::wgmma
                  : has(name, "_ffma")       ? GemmWork::Family::simt
                                             : GemmWork::Family::mma_sync;
  return result;
}

/// cutlass_80_tensorop_s1688gemm_128x256_32x3_nt_align1: n x m, k x stages. Those of Turing may leave out k and stages:
/// 32 of them, two buffers.
std::optional<NamedGemm> cutlass(std::string_view name) {
  if (has(name, "wmma_tensorop")) return std::nullopt;  // small tiles
  std::size_t at = name.find("gemm_");
  for (; at < name.size(); at = name.find('_', at + 1)) {
    std::string_view rest = name.substr(at);
    if (const std::size_t bar = rest.find('_'); bar != std::string_view::npos) rest.remove_prefix(bar + 1);
    std::array<int, 4> tile{};
    const std::size_t count = numbers_at(rest, tile);
    if (count < 2) continue;
    if (count == 3 || (count == 2 && !has(name, "cutlass_75_"))) return std::nullopt;  // cut off
    return NamedGemm{.family = has(name, "simt") ? GemmWork::Family::simt : GemmWork::Family::mma_sync,
                     .m = tile[1],
                     .n = tile[0],
                     .k = count == 4 ? tile[2] : 32,
                     .stages = count == 4 ? tile[3] : 2};
  }
  return std::nullopt;
}

}  // namespace

std::optional<NamedGemm> gemm_of_name(std::string_view name) {
  if (has(name, "nvjet_sm90_")) return nvjet(name);
  if (has(name, "_xmma_gemm_")) return xmma(name);
  if (has(name, "cutlass_80_") || has(name, "cutlass_75_")) return cutlass(name);
  return std::nullopt;
}

}  // namespace ridgeline::fit
