#include "sim/trace/aten/library_kernel.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace ridgeline::trace {
namespace {

using Instructions = LibraryKernel::Instructions;

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "128x64" at the front of the text, which is then shortened by it.
struct Pair {
  std::int64_t first = 0, second = 0;
};
std::optional<Pair> take_pair(std::string_view& text) {
  Pair pair;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, pair.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != 'x') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, pair.second);
  if (second.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(second.ptr - text.data()));
  return pair;
}

/// The first pair of numbers from `begin` on that no digit or letter stands in front of.
std::optional<Pair> find_pair(std::string_view& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i]) || (i > 0 && text[i - 1] != '_' && text[i - 1] != 'e')) continue;  // "_128x", "tilesize128x"
    std::string_view rest = text.substr(i);
    if (const auto pair = take_pair(rest)) {
      text = rest;
      return pair;
    }
  }
  return std::nullopt;
}

Instructions instructions_of(std::string_view name) {
  if (has(name, "nvjet") || has(name, "warpgroupsize")) return Instructions::wgmma;
  if (!has(name, "gemm") || has(name, "splitKreduce")) return Instructions::none;
  // fp32 kernels of sm80_xmma (ffma) are left to the choice, which times them better than their tile does (a
  // BERT-large's busy time on an H200: 0.9 against 4.1 %).
  if (has(name, "_sgemm_") || has(name, "simt")) return Instructions::simt;
  for (const std::string_view part : {"tensorop", "s884gemm", "h884gemm", "s1688gemm", "h1688gemm", "s16816gemm",
                                      "h16816gemm", "tensor16x8x", "tensor8x8x"})
    if (has(name, part)) return Instructions::mma_sync;
  return Instructions::none;
}

constexpr std::int64_t kLargestSide = 512, kSideUnit = 8;

bool is_tile(const Pair& pair) {
  const auto is_side = [](std::int64_t side) { return side > 0 && side <= kLargestSide && side % kSideUnit == 0; };
  return is_side(pair.first) && is_side(pair.second);
}

double pieces(std::int64_t side, std::int64_t tile) {
  return std::ceil(static_cast<double>(side) / static_cast<double>(tile));
}

/// How often `tiles` are in the blocks of a launch; some kernels round a side of their grid up. 0: not known.
std::int64_t splits_of(std::int64_t blocks, double tiles) {
  const double times = static_cast<double>(blocks) / tiles;
  if (times >= 1.0 && times < 2.0) return 1;
  return times >= 2.0 && times == std::floor(times) ? static_cast<std::int64_t>(times) : 0;
}

/// Of cuDNN's names: of the same makers as products' and of its own.
Instructions instructions_of_convolution(std::string_view name) {
  if (has(name, "warpgroupsize")) return Instructions::wgmma;
  for (const std::string_view part : {"tensorop", "s884cudnn", "s1688cudnn", "s16816", "tensor16x8x", "tensor8x8x"})
    if (has(name, part)) return Instructions::mma_sync;
  for (const std::string_view part :
       {"scudnn", "ffma", "f32f32_f32f32", "implicit_convolve_sgemm", "grad_alg0_engine", "grad_engine", "grad2d_alg1"})
    if (has(name, part)) return Instructions::simt;
  return Instructions::none;
}

RecordedConvolution convolution_of(std::string_view name) {
  RecordedConvolution ran;
  if (has(name, "winograd_nonfused") || has(name, "fft2d")) {
    ran.transformed = true;
    return ran;
  }
  if (has(name, "winograd") || has(name, "nchwToNhwc") || has(name, "nhwcToNchw")) return ran;  // no form of ours
  ran.instructions = instructions_of_convolution(name);
  return ran;
}

}  // namespace

LibraryKernel library_kernel_of(std::string_view name) {
  LibraryKernel kernel;
  const Instructions instructions = instructions_of(name);
  if (instructions == Instructions::none) return kernel;
  // CUTLASS's names stand twice in their kernels' ("cutlass::Kernel2<cutlass_80_...>(cutlass_80_...)"): once is enough.
  std::string_view rest = name.substr(0, name.find('>'));
  if (const auto tile_size = rest.find("tilesize"); tile_size != rest.npos) rest.remove_prefix(tile_size);
  const auto tile = find_pair(rest);
  if (!tile || !is_tile(*tile)) return kernel;
  if (!rest.empty() && rest.front() == 'x') {  // "tilesize128x128x64", "128x64x8"
    std::from_chars(rest.data() + 1, rest.data() + rest.size(), kernel.k);
    if (const auto stages = rest.find("stage"); stages != rest.npos && !has(rest.substr(stages), "stages"))
      std::from_chars(rest.data() + stages + 5, rest.data() + rest.size(), kernel.stages);
  } else if (const auto depth = find_pair(rest)) {  // "64x6": k and stages; nothing of the kind in older names
    kernel.k = depth->first;
    kernel.stages = depth->second;
  }
  if (kernel.stages == 1) return {};
  kernel.instructions = instructions;
  kernel.m = tile->second;
  kernel.n = tile->first;
  return kernel;
}

LibraryKernel kernel_that_ran(const std::vector<MeasuredKernel>& kernels, std::int64_t batch, std::int64_t m,
                              std::int64_t n) {
  LibraryKernel longest;
  const MeasuredKernel* ran = nullptr;
  bool summed = false;
  for (const MeasuredKernel& kernel : kernels) {
    summed = summed || has(kernel.name, "splitKreduce");
    if (kernel.seconds <= (ran != nullptr ? ran->seconds : 0.0)) continue;
    const LibraryKernel named = library_kernel_of(kernel.name);
    if (named.instructions == Instructions::none) continue;
    longest = named;
    ran = &kernel;
  }
  if (ran == nullptr) return longest;
  longest.summed = summed;
  if (longest.instructions != Instructions::wgmma && batch > 0 && m > 0 && n > 0)
    longest.splits = splits_of(ran->blocks, static_cast<double>(batch) * pieces(m, longest.m) * pieces(n, longest.n));
  return longest;
}

RecordedConvolution convolution_that_ran(const std::vector<MeasuredKernel>& kernels, bool weights) {
  RecordedConvolution longest;
  double seconds = 0.0;
  for (const MeasuredKernel& kernel : kernels) {
    if ((has(kernel.name, "wgrad") || has(kernel.name, "Wgrad")) != weights || kernel.seconds <= seconds) continue;
    const RecordedConvolution named = convolution_of(kernel.name);
    if (!named.known()) continue;
    longest = named;
    seconds = kernel.seconds;
  }
  return longest;
}

}  // namespace ridgeline::trace
