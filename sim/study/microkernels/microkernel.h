// The microkernels of hw/probe as workloads of the simulator: each point of a measured curve as the kernels that were
// launched for it, one file a kind, each beside the .cu it describes by name.
//
// A measured time is the period of those kernels repeated in a CUDA graph. Any timing engine predicts it:
//   period = Σ max( T(kernel) - 0.26 us, launch.graph_period )
// In a stream it is T(kernel) + launch.gap, of a memset T(memset), and of a copy that the host waits for the host's
// call
// + launch.start_latency + T(copy).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/launch/kernel_launch.h"
#include "sim/study/calibration/probe_result.h"
#include "sim/timing/code_kernels.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// What is repeated at one point of a curve.
struct MicrokernelRun {
  std::vector<KernelLaunch> launches;
  double footprint = 0.0;  ///< bytes touched from one repetition to the next, which decides what the L2 still holds
  bool in_order =
      false;  ///< reads alone, 16 KiB a block: it holds more than of kernels that write or of smaller blocks
  /// What the curve counts a second of (bytes, FLOPs, additions) or, where it shows cycles of an SM, the loads it
  /// divides them by, or the bytes that it divides by them.
  double amount = 0.0;
  enum class Shows : unsigned char { rate, microseconds, cycles, bytes_a_cycle } shows = Shows::rate;
  enum class Launched : unsigned char { in_graph, in_stream, alone } launched = Launched::in_graph;
};

struct Microkernel {
  std::string_view curve;   ///< of the probe result
  std::string_view source;  ///< file in hw/probe
  MicrokernelRun (*describe)(const ProbePoint& point, const Gpu& gpu);
  /// Points that are described; null: all.
  bool (*covers)(const ProbePoint& point, const Gpu& gpu) = nullptr;
  /// A constant of its law was set with a second run's points in view, between those of the first too.
  bool every_point_seen = false;
};
inline bool covers(const Microkernel& kernel, const ProbePoint& point, const Gpu& gpu) {
  return !kernel.covers || kernel.covers(point, gpu);
}

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
void writes(KernelLaunch& launch, double bytes, double requested = 0.0);

MicrokernelRun describe_stream_period(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_memset_period(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_host_copy(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_read_write_mix(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_l2_read(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_l2_write(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_l1_read(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_shared_read(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_shared_latency(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_atomic_add(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_async_copy(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_cuda_cores(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_mma_sync(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_wgmma(const ProbePoint& point, const Gpu& gpu);
MicrokernelRun describe_sustained_rate(const ProbePoint& point, const Gpu& gpu);
bool pinned(const ProbePoint& point, const Gpu& gpu);
bool fits_l1(const ProbePoint& point, const Gpu& gpu);
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
