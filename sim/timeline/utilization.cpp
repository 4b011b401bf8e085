#include "sim/timeline/utilization.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/units/budget.h"

namespace ridgeline {
namespace {

/// What one kernel uses of the GPU while it runs.
struct Use {
  double begin = 0.0, end = 0.0;  ///< seconds of the step
  double taken = 0.0;             ///< seconds, on average over its runs
  double times = 1.0;             ///< it runs in the step
  double alone = 1.0;             ///< share of it with nothing of an earlier stream beside it
  bool communicates = false;
  bool of_tokens = false;  ///< runs now and then between `begin` and `end`
  double sm = 0.0, tensor = 0.0, dram = 0.0, math = 0.0;
};

std::vector<Use> uses(const StepProgram& program, std::span<const KernelTime> times, const Timeline& timeline,
                      const Gpu& gpu) {
  std::vector<Use> out;
  keep_budget_for(times.size() * sizeof(Use), "the utilization of the GPU");
  out.reserve(times.size());
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const std::size_t i = out.size();
    const KernelLaunch& launch = program.launches[action.index];
    const KernelTime& time = times[i];
    const KernelSpan& span = timeline.kernels[i];
    const TokenLaunch* token = program.token_launch(action);
    Use use{span.start.value(), span.end.value(), span.taken.value(),
            static_cast<double>(token != nullptr ? token->runs : timeline.repeat.launches.times_of(i))};
    use.of_tokens = token != nullptr;
    const double duration = use.taken;
    use.communicates = launch.time_class == TimeClass::communication;
    if (span.stream != 0 && duration > 0.0) use.alone = span.exposed.value() / duration;
    if (duration > 0.0) {
      use.sm = std::min(1.0, launch.blocks() / std::max(1, gpu.sm.count));
      use.math = std::clamp(time.math_utilization, 0.0, 1.0);
      use.tensor = launch.on_tensor_cores() ? use.math : 0.0;
      const double bandwidth = gpu.dram.bandwidth.value();
      if (bandwidth > 0.0)
        use.dram = std::min(1.0, (time.dram_read_bytes + time.dram_write_bytes) / bandwidth / duration);
    }
    out.push_back(use);
  }
  return out;
}

}  // namespace

std::vector<Utilization> utilization_over_time(const StepProgram& program, std::span<const KernelTime> times,
                                               const Timeline& timeline, const Gpu& gpu, int bins) {
  std::vector<Utilization> out(static_cast<std::size_t>(std::max(1, bins)));
  const double width = timeline.step.value() / static_cast<double>(out.size());
  if (width <= 0.0) return out;
  const auto last = static_cast<double>(out.size() - 1);
  const auto add = [&](std::size_t bin, double seconds, const Use& use) {
    const double share = std::max(0.0, seconds) / width;
    out[bin].kernel_active += share;
    out[bin].sm += share * use.sm;
    out[bin].tensor += share * use.tensor;
    out[bin].dram += share * use.dram;
  };
  for (const Use& one : uses(program, times, timeline, gpu)) {
    Use use = one;
    double density = use.alone;
    // Runs that repeat are spread evenly over all of them.
    if (use.times > 1.0 || use.of_tokens) {
      const RepeatedLaunches& repeated = timeline.repeat.launches;
      const double seconds = use.times * use.taken;
      if (!use.of_tokens) {
        use.begin = timeline.kernels[repeated.begin].start.value();
        use.end = timeline.repeat.gpu_end.value();
      }
      density *= use.end > use.begin ? seconds / (use.end - use.begin) : 0.0;
    }
    const auto from = static_cast<std::size_t>(std::clamp(std::floor(use.begin / width), 0.0, last));
    const auto to = static_cast<std::size_t>(std::clamp(std::floor(use.end / width), 0.0, last));
    for (std::size_t bin = from; bin <= to; ++bin) {
      const double left = std::max(use.begin, static_cast<double>(bin) * width);
      const double right = bin == out.size() - 1 ? use.end : std::min(use.end, static_cast<double>(bin + 1) * width);
      add(bin, density * (right - left), use);
    }
  }
  return out;
}

Utilization utilization(const StepProgram& program, std::span<const KernelTime> times, const Timeline& timeline,
                        const Gpu& gpu) {
  return utilization_over_time(program, times, timeline, gpu, 1).front();
}

ExposedLatency exposed_latency(const StepProgram& program, std::span<const KernelTime> times, const Timeline& timeline,
                               const Gpu& gpu) {
  ExposedLatency out;
  for (const Use& use : uses(program, times, timeline, gpu)) {
    const double duration = use.alone * use.times * use.taken;
    if (use.communicates) {
      out.communication += Seconds(duration);
      continue;
    }
    out.math += Seconds(duration * use.math);
    out.memory += Seconds(duration * use.dram);
    out.overlapped += Seconds(duration * std::min(use.math, use.dram));
    out.in_kernels += Seconds(duration * (1.0 - std::max(use.math, use.dram)));
  }
  out.host_exposed = timeline.starved;
  out.gaps = std::max(Seconds{0}, timeline.idle - timeline.starved);
  out.host_hidden = std::max(Seconds{0}, timeline.host - timeline.starved);
  return out;
}

}  // namespace ridgeline
