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

}  // namespace ridgeline
