// The microkernels of hw/probe as workloads of the simulator: each point of a measured curve as the kernels that were
// launched for it, one file a kind, each beside the .cu it describes by name.
//
// A measured time is the period of those kernels repeated in a CUDA graph. Any timing engine predicts it:
//   period = Σ (T(kernel) - T(empty kernel) + launch.graph_period)
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/study/probe_result.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// What is repeated at one point of a curve.
struct MicrokernelRun {
  std::vector<KernelLaunch> launches;
  double footprint = 0.0;  ///< bytes touched from one repetition to the next, which decides what the L2 still holds
  /// What the curve counts a second of (bytes, FLOPs) or, where it shows cycles of an SM, the loads it divides them by.
  double amount = 0.0;
  enum class Shows : unsigned char { rate, microseconds, cycles } shows = Shows::rate;
};

struct Microkernel {
  std::string_view curve;   ///< of the probe result
  std::string_view source;  ///< file in hw/probe
  MicrokernelRun (*describe)(const ProbePoint& point, const Gpu& gpu);
};

/// All that are described, in the order of the probe result.
std::span<const Microkernel> microkernels();

struct MicrokernelPrediction {
  Seconds time;        ///< of one repetition
  double value = 0.0;  ///< in the curve's unit
};

MicrokernelPrediction predict_microkernel(const Microkernel& kernel, const ProbePoint& point, const Gpu& gpu,
                                          const TimingEngine& engine);

/// A launch of `kernel`: grid of `blocks`, `passes` of its loop a block.
KernelLaunch code_launch(CodeKernel kernel, double blocks, int threads, int registers, double passes);
/// Adds an operand of `bytes` that blocks together ask `requested` bytes of (0: each byte once).
void reads(KernelLaunch& launch, double bytes, double requested = 0.0);
void writes(KernelLaunch& launch, double bytes);

MicrokernelRun describe_graph_period(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_dram_read(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_dram_write(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_dram_copy(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_dram_triad(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_reread_clean(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_reread_dirty(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_latency(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_bank_conflicts(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_wave_staircase(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_occupancy(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_gemm_naive(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_gemm_shared(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_gemm_tensor(const ProbePoint& point, const Gpu& gpu);

}  // namespace ridgeline
