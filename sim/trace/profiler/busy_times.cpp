#include "sim/trace/profiler/busy_times.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

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

MeasuredStep measured_step(const ProfilerEvents& events, const std::vector<std::size_t>& items,
                           const StepWindow& window) {
  MeasuredStep m;
  m.gpu = events.gpu_name;
  m.which_step = window.name;
  if (events.gpus.size() > 1) {
    m.gpus = events.gpus;
    m.which_step += fmt::format(", of GPU {} of {}", events.gpu[items.front()].device, events.gpus.size());
  } else if (events.ranks > 1) m.which_step += fmt::format(", of the first of {} ranks in the file", events.ranks);
  std::vector<std::pair<double, double>> spans;
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const std::size_t g : items) {
    const GpuEvent& item = events.gpu[g];
    spans.emplace_back(item.begin, item.end);
    first = std::min(first, item.begin), last = std::max(last, item.end);
    m.kernel_sum += (item.end - item.begin) * 1e-6;
    ++m.kernels;
  }
  m.busy = union_of(std::move(spans)) * 1e-6;
  m.span = (last - first) * 1e-6;
  m.step = (window.marked ? window.end - window.begin : std::max(last, window.end) - window.begin) * 1e-6;
  if (events.predicted_step > 0.0) m.step = events.predicted_step * 1e-6;  // of a graph the host's mark is its launch
  for (const MemoryEvent& event : events.memory) {
    if (!window.contains(event.at)) continue;
    m.peak_allocated = std::max(m.peak_allocated, event.allocated);
    m.peak_reserved = std::max(m.peak_reserved, event.reserved);
  }
  return m;
}

std::vector<FormatUse> formats_of(const ProfilerEvents& events, const std::vector<std::size_t>& items) {
  std::vector<FormatUse> formats{{"fp8", 89}, {"fp4", 100}};
  for (const std::size_t g : items) {
    const GpuEvent& item = events.gpu[g];
    const std::string& name = events.names[item.name];
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    const bool fp4 = has("e2m1") || has("fp4"), fp8 = has("e4m3") || has("e5m2") || has("fp8");
    if (item.kind != GpuEvent::Kind::kernel || !(fp4 || fp8)) continue;
    FormatUse& use = formats[fp4 ? 1 : 0];
    ++use.kernels;
    use.seconds += (item.end - item.begin) * 1e-6;
  }
  std::erase_if(formats, [](const FormatUse& use) { return use.kernels == 0; });
  return formats;
}

std::size_t devices_of(const ProfilerEvents& events, const std::vector<std::size_t>& items) {
  std::set<std::int64_t> devices;
  for (const std::size_t g : items)
    if (events.gpu[g].kind == GpuEvent::Kind::kernel) devices.insert(events.gpu[g].device);
  return devices.size();
}

}  // namespace ridgeline::trace
