// The time of one kernel and its reasons: what every timing engine answers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/workload/op_trace.h"

namespace ridgeline {

struct KernelProfile;

enum class Limiter : std::uint8_t {
  compute,
  dram,
  l2,
  shared_memory,
  latency,
  launch,
  power,
  link
};  ///< link: what joins GPUs
std::string_view name_of(Limiter limiter);

/// A kernel counts as limited by power where the limit adds more than this share of its time.
inline constexpr double kHeldByPower = 0.02;

struct KernelTime {
  Seconds time;
  Limiter limiter = Limiter::latency;  ///< of the time at full clock
  Seconds clocked;  ///< time - held, were everything instantaneous that does not go with the clock of the SMs
  Seconds held;     ///< of `time`, what the board's power limit adds
  Hertz clock;      ///< the highest clock that limit leaves the SMs; 0 where it does not matter
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double l2_bytes = 0;                           ///< requested of the L2
  double l2_hit_rate = 0;                        ///< of the reads
  double occupancy = 0;                          ///< resident warps over the SM's maximum
  double waves = 0;                              ///< blocks over blocks resident at once
  double math_utilization = 0;                   ///< share of the peak of the kernel's pipe
  std::shared_ptr<const KernelProfile> profile;  ///< what a simulation saw inside the kernel; else null

  /// What holds it back: the board's power where that adds more than kHeldByPower of its time.
  [[nodiscard]] Limiter limited_by() const { return held > kHeldByPower * time ? Limiter::power : limiter; }
  /// The same kernel, taking `factor` times as long throughout.
  void stretch(double factor) {
    for (Seconds* part : {&time, &clocked, &held}) *part = *part * factor;
  }
};

/// What the L2 holds when a kernel starts: the share of each access that hits, in the order of reads, then writes.
/// Empty means cold and clean.
using Residency = std::span<const double>;

/// The launches of one run in their order: what the caches hold goes from each to the next. Not to be shared between
/// threads.
class TimingRun {
 public:
  virtual ~TimingRun() = default;
  /// `operands` are the storages the launch's op runs on, inputs then outputs.
  virtual KernelTime next(const KernelLaunch& launch, std::span<const Operand> operands) = 0;
};

/// Predicts kernels one by one. Implementations are immutable after construction and safe to share between threads.
class TimingEngine {
 public:
  virtual ~TimingEngine() = default;
  [[nodiscard]] virtual KernelTime time(const KernelLaunch& launch, Residency residency) const = 0;
  /// Starts a run with cold, clean caches; null where the engine keeps no caches of its own, whose caller then says
  /// what hits (L2Residency).
  [[nodiscard]] virtual std::unique_ptr<TimingRun> start_run() const { return nullptr; }
  [[nodiscard]] virtual std::string_view name() const = 0;
};

/// "roofline" (datasheet ceilings only) or "analytic". Null for an unknown name. `gpu` must outlive the engine.
std::unique_ptr<TimingEngine> make_timing_engine(std::string_view name, const Gpu& gpu);

}  // namespace ridgeline
