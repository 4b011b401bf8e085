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

}  // namespace ridgeline
