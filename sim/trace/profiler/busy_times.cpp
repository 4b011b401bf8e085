#include "sim/trace/profiler/busy_times.h"

#include <algorithm>
#include <limits>

#include "sim/units/budget.h"

namespace ridgeline::trace {

double union_of(std::vector<std::pair<double, double>> spans) {
  std::sort(spans.begin(), spans.end());
  double total = 0.0, end = -std::numeric_limits<double>::infinity();
  for (const auto& [from, to] : spans) {
    total += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return total;
}

std::vector<double> times_beside_others(const std::vector<GpuEvent>& gpu) {
  std::vector<double> beside(gpu.size(), 0.0);
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    if (gpu[i].kind != GpuEvent::Kind::kernel) continue;
    for (std::size_t j = i + 1; j < gpu.size() && gpu[j].begin < gpu[i].end; ++j) {
      keep_budget_often("comparing the kernels of a recording");
      const bool other = gpu[j].kind == GpuEvent::Kind::kernel && gpu[j].stream != gpu[i].stream;
      if (!other || gpu[j].device != gpu[i].device) continue;
      const double both = std::min(gpu[i].end, gpu[j].end) - gpu[j].begin;
      beside[i] += both, beside[j] += both;
    }
  }
  for (std::size_t i = 0; i < gpu.size(); ++i) beside[i] = std::min(beside[i], gpu[i].end - gpu[i].begin);
  return beside;
}

}  // namespace ridgeline::trace
