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

double likely_of_forms(std::span<const double> ranks) {
  if (ranks.empty()) return std::numeric_limits<double>::infinity();
  const double most = kMostSlowerForm * ranks.front();
  double sum = 0.0;
  for (std::size_t i = 0; i < kTurnsOfForms.size(); ++i)
    sum += kTurnsOfForms[i] * (i == 0 ? ranks.front() : i < ranks.size() ? std::min(ranks[i], most) : most);
  return sum;
}

double seconds_of_forms(const KernelLaunch& launch, double own, std::span<const double> others) {
  static thread_local std::vector<double> often_others;
  often_others.clear();
  double fastest = std::numeric_limits<double>::infinity();
  const auto add = [&](const KernelLaunch& form, double rank) {
    const auto* product = std::get_if<GemmWork>(&form.work);
    if (product != nullptr && product->family != GemmWork::Family::simt) often_others.push_back(rank);
    else fastest = std::min(fastest, rank);
  };
  add(launch, (own + launch.around) * launch.weight);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const OtherForm& other = (*launch.others)[i];
    add(other.launch, (others[i] + other.around) * other.weight);
  }
  std::sort(often_others.begin(), often_others.end());
  return std::min(fastest, likely_of_forms(often_others)) - launch.around;
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
