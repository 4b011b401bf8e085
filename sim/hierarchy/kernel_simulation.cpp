#include "sim/hierarchy/kernel_simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/hierarchy/grid_plan.h"
#include "sim/hierarchy/residency.h"
#include "sim/timing/achieved_bandwidth.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/attention_law.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/gemm_law.h"
#include "sim/timing/kernel_profile.h"

namespace ridgeline {
namespace {

/// What a kernel's blocks need, apart from the memory's answer.
struct Needs {
  double fixed = 0, fill = 0;  ///< seconds before the main loop, of which nothing overlaps
  double compute = 0;          ///< seconds of the blocks' own work on the fullest SM
  double memory = 0;           ///< seconds of the DRAM for all of its traffic
  double overlap = 3;          ///< exponent p of (compute^p + memory^p)^(1/p) of a cohort
};

/// End of every step in seconds after the kernel's start. A cohort's loads run ahead of its arithmetic, so that the two
/// overlap within the cohort and not beyond it.
std::vector<double> step_ends(const KernelTraffic& traffic, const Needs& needs) {
  std::vector<double> ends(traffic.steps.size());
  double now = needs.fixed + needs.fill;
  const TrafficStep total = traffic.total();
  // The laws count what is read from the DRAM and what the kernel itself writes.
  const double bytes = std::max(1.0, total.dram_read + total.l2_write);
  std::size_t first = 0;
  while (first < traffic.steps.size()) {
    std::size_t last = first;
    double compute = 0.0, memory = 0.0;
    const auto memory_of = [&](const TrafficStep& step) {
      return needs.memory * (step.dram_read + step.l2_write) / bytes;
    };
    for (; last < traffic.steps.size() && traffic.steps[last].cohort == traffic.steps[first].cohort; ++last) {
      compute += needs.compute * traffic.steps[last].work;
      memory += memory_of(traffic.steps[last]);
    }
    const double most = std::max(compute, memory);
    const double time =
        most > 0.0 ? most * std::pow(std::pow(compute / most, needs.overlap) + std::pow(memory / most, needs.overlap),
                                     1.0 / needs.overlap)
                   : 0.0;
    const double parts = compute + memory;
    for (std::size_t i = first; i < last; ++i) {
      const TrafficStep& step = traffic.steps[i];
      now += parts > 0.0 ? time * (needs.compute * step.work + memory_of(step)) / parts
                         : time / static_cast<double>(last - first);
      ends[i] = now;
    }
    first = last;
  }
  return ends;
}

class Timer {
 public:
  Timer(const KernelLaunch& launch, const KernelTraffic& traffic, const Gpu& gpu)
      : launch_(launch), traffic_(traffic), total_(traffic.total()), gpu_(gpu) {
    result_ = AnalyticEngine(gpu).time(launch, traffic.hit_shares);
    waits(Stall::drain) = gpu.launch.kernel_fixed.value();
  }

  void operator()(const GemmWork& work) {
    if (work.reduces_splits) return evenly();
    const GemmConstants& constants = gemm_constants(gemm_class_of(work, gpu_));
    const double wanted = launch_.read_bytes();
    const GemmTime law = GemmLaw(work, gpu_, constants, wanted > 0.0 ? std::min(1.0, total_.dram_read / wanted) : 1.0)
                             .time(tile_of(work), work.split_k);
    // The law's own guess of what is read more than once gives way to what was.
    const double refetched =
        (total_.dram_read - law.dram_read) / (achieved_bandwidth(gpu_).dram_read * constants.read_share);
    const KernelParts parts{law.fixed, law.fill, std::max(0.0, law.memory + refetched)};
    if (std::getenv("OLD"))
    in_cohorts({.fixed = law.fixed,
                .fill = law.fill,
                .compute = law.compute,
                .memory = std::max(0.0, law.memory + refetched),
                .overlap = 4.0});
    else in_events(plan_of(work, law, parts, traffic_, gpu_), parts, law.compute);
    waits(Stall::math_pipe_throttle) += law.math;
    waits(Stall::mio_throttle) += std::max(0.0, std::max(law.shared, law.port) - law.math);
    waits(Stall::barrier) += std::max(0.0, law.latency - std::max(law.math, std::max(law.shared, law.port)));
  }
  void operator()(const AttentionWork& work) {
    if (work.part != AttentionWork::Part::forward && work.part != AttentionWork::Part::backward) return evenly();
    const AttentionConstants& constants = attention_constants(attention_class_of(work));
    const AttentionTime law =
        fused_attention_time(work, gpu_, constants, total_.dram_read, std::min(total_.dram_write, total_.l2_write));
    const KernelParts parts{law.fixed, law.fill, std::max(0.0, law.memory)};
    if (std::getenv("OLD"))
    in_cohorts({.fixed = law.fixed,
                .fill = law.fill,
                .compute = law.compute,
                .memory = std::max(0.0, law.memory),
                .overlap = 4.0});
    else in_events(plan_of(work, attention_blocks(work, gpu_, constants), law.clock, parts, traffic_, gpu_), parts, law.compute);
    const double tile = std::max(1.0, law.math + law.softmax + law.latency);
    waits(Stall::math_pipe_throttle) += law.compute * law.math / tile;
    waits(Stall::mio_throttle) += law.compute * law.softmax / tile;
    waits(Stall::barrier) += law.compute * law.latency / tile;
  }
  template <typename Work>
  void operator()(const Work&) {
    evenly();
  }

  KernelTime take() {
    result_.dram_read_bytes = total_.dram_read;
    result_.dram_write_bytes = total_.dram_write;
    result_.l2_bytes = total_.lookups;
    result_.l2_hit_rate = total_.lookups > 0.0 ? total_.hits / total_.lookups : 0.0;
    result_.profile = profile_of(launch_, traffic_, ends_, result_, waits_, gpu_);
    result_.occupancy = result_.profile->achieved_occupancy;
    return result_;
  }

 private:
  /// Cohort after cohort; the board's power limit lengthens the whole.
  void in_cohorts(const Needs& needs) {
    ends_ = step_ends(traffic_, needs);
    const double alone = ends_.empty() ? needs.fixed : ends_.back();
    const Seconds limited = power_limited(gpu_, launch_.pipe, launch_.type, launch_.flops,
                                          total_.dram_read + total_.dram_write, Seconds{alone});
    for (double& end : ends_) end *= limited.value() / alone;
    result_.time = limited;
    waits(Stall::long_scoreboard) += needs.fill + std::max(0.0, alone - needs.fixed - needs.fill - needs.compute);
    waits(Stall::drain) += needs.fixed;
    if (needs.memory > needs.compute && needs.memory > needs.fixed) result_.limiter = Limiter::dram;
    else if (result_.limiter == Limiter::dram) result_.limiter = Limiter::latency;
  }
  void in_events(const GridPlan& plan, const KernelParts& parts, double compute) {
    const GridRun run = run_grid(plan, gpu_.dram);
    const double alone = seconds_of(run.end);
    const Seconds limited = power_limited(gpu_, launch_.pipe, launch_.type, launch_.flops,
                                          total_.dram_read + total_.dram_write, Seconds{alone});
    std::vector<std::size_t> first;
    std::size_t i = 0;
    for (const auto& row : plan.cohorts) {
      first.push_back(i);
      i += row.size();
    }
    std::vector<Ticks> ends(traffic_.steps.size(), 0);
    for (const GridRun::Ran& ran : run.ran) {
      Ticks& end = ends[first[static_cast<std::size_t>(ran.cohort)] + static_cast<std::size_t>(ran.phase)];
      end = std::max(end, ran.end);
    }
    ends_.clear();
    Ticks now = 0;
    for (const Ticks end : ends) {
      now = std::max(now, end);
      ends_.push_back(seconds_of(now) * limited.value() / alone);
    }
    result_.time = limited;
    waits(Stall::long_scoreboard) += parts.fill + std::max(0.0, alone - parts.fixed - parts.fill - compute);
    waits(Stall::drain) += parts.fixed;
    if (parts.memory > compute && parts.memory > parts.fixed) result_.limiter = Limiter::dram;
    else if (result_.limiter == Limiter::dram) result_.limiter = Limiter::latency;
  }
  /// A steady stream: the law's time, a step as long as its share of the traffic.
  void evenly() {
    const double all = total_.l2_read + total_.l2_write, seconds = result_.time.value();
    const AchievedBandwidth achieved = achieved_bandwidth(gpu_);
    const double memory = std::max(total_.dram_read / achieved.dram_read + total_.dram_write / achieved.dram_write,
                                   total_.l2_read / achieved.l2_read + total_.l2_write / achieved.l2_write);
    const double body = std::max(0.0, seconds - waits(Stall::drain));
    const bool issues = result_.limiter == Limiter::compute;
    waits(Stall::long_scoreboard) += std::min(memory, body);
    waits(issues ? Stall::math_pipe_throttle : Stall::barrier) += std::max(0.0, body - memory);
    double done = 0.0;
    ends_.clear();
    for (const TrafficStep& step : traffic_.steps) {
      done += all > 0.0 ? (step.l2_read + step.l2_write) / all : 1.0 / static_cast<double>(traffic_.steps.size());
      ends_.push_back(result_.time.value() * std::min(1.0, done));
    }
  }

  double& waits(Stall stall) { return waits_[static_cast<std::size_t>(stall)]; }

  const KernelLaunch& launch_;
  const KernelTraffic& traffic_;
  TrafficStep total_;
  const Gpu& gpu_;
  KernelTime result_;
  std::vector<double> ends_;
  std::array<double, kStalls> waits_{};  ///< seconds
};

}  // namespace

KernelTime simulated_time(const KernelLaunch& launch, const KernelTraffic& traffic, const Gpu& gpu) {
  Timer timer(launch, traffic, gpu);
  std::visit([&](const auto& work) { timer(work); }, launch.work);
  return timer.take();
}

}  // namespace ridgeline
