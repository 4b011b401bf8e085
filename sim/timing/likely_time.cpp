#include "sim/timing/likely_time.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace ridgeline {

double likely_of(std::span<const double> ranks, bool often_others) {
  if (ranks.empty()) return std::numeric_limits<double>::infinity();
  if (!often_others) return ranks.front();
  const double most = kMostSlower * ranks.front();
  double sum = 0.0;
  for (std::size_t i = 0; i < kTurns.size(); ++i)
    sum += kTurns[i] * (i < ranks.size() ? std::min(ranks[i], most) : most);
  return sum;
}

double dislike_of_form(const GemmWork& work) {
  constexpr double kRounded = 1.2, kSplit = 1.15;
  if (work.family == GemmWork::Family::simt) return 1.0;
  return (work.family == GemmWork::Family::mma_sync && work.type == DType::tf32 ? kRounded : 1.0) *
         (work.split_k > 1 ? kSplit : 1.0);
}

double seconds_of_forms(const KernelLaunch& launch, double own, std::span<const double> others) {
  static thread_local std::vector<double> often_others;
  often_others.clear();
  double fastest = std::numeric_limits<double>::infinity();
  const auto add = [&](const KernelLaunch& form, double seconds) {
    const auto* product = std::get_if<GemmWork>(&form.work);
    const bool on_tensor_cores = product != nullptr && product->family != GemmWork::Family::simt;
    if (on_tensor_cores) often_others.push_back(seconds * dislike_of_form(*product));
    else fastest = std::min(fastest, seconds);
  };
  add(launch, own + launch.around);
  for (std::size_t i = 0; i < others.size(); ++i)
    add((*launch.others)[i].launch, others[i] + (*launch.others)[i].around);
  std::sort(often_others.begin(), often_others.end());
  return std::min(fastest, likely_of(often_others, true)) - launch.around;
}

namespace {

double seconds_among(const GemmWork& work, const GemmLaw& law, std::span<const LikelyKernels::Kernel> kernels) {
  std::array<double, LikelyKernels::kMost> ranks{};
  GemmWork one{.family = work.family};
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const LikelyKernels::Kernel& kernel = kernels[i];
    one.tile_m = kernel.tile_m;
    one.tile_n = kernel.tile_n;
    one.tile_k = kernel.tile_k;
    one.stages = kernel.stages;
    one.first_stages = kernel.first_stages;
    one.blocks_per_sm = kernel.blocks_per_sm;
    one.stream_k = kernel.stream_k;
    ranks[i] = law.seconds(tile_of(one), kernel.split_k) * static_cast<double>(kernel.weight);
  }
  std::sort(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(kernels.size()));
  return likely_of({ranks.data(), kernels.size()}, work.likely.often_others);
}

}  // namespace

double likely_seconds(const GemmWork& work, const Gpu& gpu, const GemmLaw& law, double read_miss, double write_miss) {
  const LikelyKernels& likely = work.likely;
  const auto of = [&](GemmWork::Family family, std::span<const LikelyKernels::Kernel> kernels) {
    if (kernels.empty()) return std::numeric_limits<double>::infinity();
    if (family == work.family) return seconds_among(work, law, kernels);
    GemmWork other = work;
    other.family = family;
    return seconds_among(other, GemmLaw(other, gpu, gemm_constants(gemm_class_of(other, gpu)), read_miss, write_miss),
                         kernels);
  };
  if (likely.older == 0) return of(work.family, {likely.of_newer.data(), likely.newer});
  const double newer = of(GemmWork::Family::wgmma, {likely.of_newer.data(), likely.newer}),
               older = of(GemmWork::Family::mma_sync, {likely.of_older.data(), likely.older});
  return of_generations(newer, older, static_cast<double>(likely.older_share));
}

}  // namespace ridgeline
