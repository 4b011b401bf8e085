#include "sim/hierarchy/kernel_simulation.h"

#include <algorithm>
#include <cmath>

#include "sim/hierarchy/grid_plan.h"
#include "sim/hierarchy/residency.h"
#include "sim/timing/analytic_engine.h"
#include "sim/timing/attention/attention_law.h"
#include "sim/timing/clock_law.h"
#include "sim/timing/kernel_profile.h"
#include "sim/timing/memory_bound/achieved_bandwidth.h"
#include "sim/timing/products/gemm_law.h"

namespace ridgeline {
namespace {

class Timer {
 public:
  Timer(const KernelLaunch& launch, const KernelTraffic& traffic, const Gpu& gpu)
      : launch_(launch), traffic_(traffic), total_(traffic.total()), gpu_(gpu) {
    result_ = AnalyticEngine(gpu).time(launch, traffic.hit_shares);
    waits(Stall::drain) = gpu.launch.kernel_fixed.value();
  }

  void operator()(const GemmWork& work) {
    if (work.reduces_splits) no_faster_than_the_dram();
    if (work.reduces_splits || work.gathering.role != Gathering::Role::none) return evenly();
    const GemmConstants& constants = gemm_constants(gemm_class_of(work, gpu_));
    const double wanted = launch_.read_bytes(), written = launch_.written_bytes();
    GemmTime law = GemmLaw(work, gpu_, constants, wanted > 0.0 ? std::min(1.0, total_.dram_read / wanted) : 1.0,
                           written > 0.0 ? std::min(1.0, total_.dram_write / written) : 1.0)
                       .time(tile_of(work), work.split_k);
    // The law's own guess of what is read more than once gives way to what was.
    const double refetched =
        (total_.dram_read - law.dram_read) / (achieved_bandwidth(gpu_).dram_read * constants.read_share);
    const KernelParts parts{law.fixed, law.fill, std::max(0.0, law.memory + refetched)};
    // Time is that of the law over the kernels that are likely, with the traffic that was: events, which hand out whole
    // blocks of one kernel, tell its course.
    const GemmMisses missed = gemm_misses(launch_, traffic_.hit_shares);
    const GemmTime guess = GemmLaw(work, gpu_, constants, missed.read, missed.write).time(tile_of(work), work.split_k);
    const double again =
        (total_.dram_read - guess.dram_read) / (achieved_bandwidth(gpu_).dram_read * constants.read_share);
    // Both under the board's limit: what the DRAM takes longer is free where the clock of the SMs holds the kernel
    // back.
    const auto limited = [&](double seconds, double dram) {
      return power_limited(gpu_, launch_.pipe, launch_.type, launch_.flops_in_type(), dram, Seconds{seconds},
                           Seconds{guess.clocked})
          .time;
    };
    const Seconds guessed = limited(guess.total, guess.dram_read + guess.dram_write),
                  found = limited(guess.total_with(std::max(0.0, guess.memory + again)),
                                  total_.dram_read + total_.dram_write);
    result_.stretch(std::max(0.5, ratio(found, guessed)));
    no_faster_than_the_dram();
    in_events(plan_of(work, law, parts, traffic_, gpu_), parts, law.compute, 0.0, false);
    const double pipe = law.activity * law.compute;
    const double loads = work.family == GemmWork::Family::wgmma
                             ? std::max(0.0, std::max(law.shared, law.port) - law.math)
                             : std::min(law.shared, law.compute - pipe);
    waits(Stall::math_pipe_throttle) += pipe;
    waits(Stall::mio_throttle) += loads;
    waits(Stall::barrier) += std::max(0.0, law.compute - pipe - loads);
  }
  void operator()(const AttentionWork& work) {
    if (work.part != AttentionWork::Part::forward && work.part != AttentionWork::Part::backward) return evenly();
    const AttentionConstants& constants = attention_constants(attention_class_of(work));
    const AttentionTime law =
        fused_attention_time(work, gpu_, constants, total_.dram_read, std::min(total_.dram_write, total_.l2_write));
    const KernelParts parts{law.fixed, law.fill, std::max(0.0, law.memory)};
    total_.dram_read += law.floor.refetched;
    // Time is that of the law over the forms that the library has, with the traffic that was; events tell its course.
    in_events(plan_of(work, attention_blocks(work, gpu_, constants), law.clock, parts, traffic_, gpu_), parts,
              law.compute, law.floor.most(), false);
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
    // What it wrote back for kernels before it passes through the DRAM in its time too.
    const double least = (total_.dram_read + total_.dram_write) / gpu_.dram.bandwidth.value();
    if (result_.time.value() < least) {
      result_.time = Seconds{least};
      result_.limiter = Limiter::dram;
    }
    result_.dram_read_bytes = total_.dram_read;
    result_.dram_write_bytes = total_.dram_write;
    result_.l2_bytes = total_.lookups;
    result_.l2_hit_rate = total_.lookups > 0.0 ? total_.hits / total_.lookups : 0.0;
    result_.profile = profile_of(launch_, traffic_, std::move(course_), result_, waits_, gpu_);
    result_.occupancy = result_.profile->achieved_occupancy;
    return result_;
  }

 private:
  /// Blocks as events. `timed`: they also say how long the kernel takes, no less than `floor` seconds; the board's
  /// power limit lengthens the whole.
  void in_events(const GridPlan& plan, const KernelParts& parts, double compute, double floor = 0.0,
                 bool timed = true) {
    const GridRun run = run_grid(plan, gpu_.dram);
    const double alone = std::max(seconds_of(run.end), floor);
    if (parts.memory > compute && parts.memory > parts.fixed) result_.limiter = Limiter::dram;
    else if (result_.limiter == Limiter::dram) result_.limiter = Limiter::latency;
    if (timed) {
      result_.time = Seconds{alone};
      result_.clocked = Seconds{parts.fixed + compute};
      result_.dram_read_bytes = total_.dram_read;
      result_.dram_write_bytes = total_.dram_write;
      limit_power(result_, launch_, gpu_);
    }
    course_ = course_of(plan, run, traffic_, ticks_of(parts.fill), result_.time.value() / static_cast<double>(run.end));
    waits(Stall::long_scoreboard) += parts.fill + std::max(0.0, alone - parts.fixed - parts.fill - compute);
    waits(Stall::drain) += parts.fixed;
  }
  /// The traffic that was may be more than the law's.
  void no_faster_than_the_dram() {
    const double least = (total_.dram_read + total_.dram_write) / gpu_.dram.bandwidth.value();
    if (result_.time.value() < least) result_.stretch(least / result_.time.value());
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
    std::vector<double> ends;
    for (const TrafficStep& step : traffic_.steps) {
      done += all > 0.0 ? (step.l2_read + step.l2_write) / all : 1.0 / static_cast<double>(traffic_.steps.size());
      ends.push_back(result_.time.value() * std::min(1.0, done));
    }
    course_ = course_of(launch_, traffic_, ends, gpu_);
  }

  double& waits(Stall stall) { return waits_[static_cast<std::size_t>(stall)]; }

  const KernelLaunch& launch_;
  const KernelTraffic& traffic_;
  TrafficStep total_;
  const Gpu& gpu_;
  KernelTime result_;
  KernelCourse course_;
  std::array<double, kStalls> waits_{};  ///< seconds
};

}  // namespace

KernelTime simulated_time(const KernelLaunch& launch, const KernelTraffic& traffic, const Gpu& gpu) {
  Timer timer(launch, traffic, gpu);
  std::visit([&](const auto& work) { timer(work); }, launch.work);
  return timer.take();
}

}  // namespace ridgeline
