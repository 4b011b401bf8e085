#include "sim/study/microkernels/microkernel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/hardware/load_host.h"
#include "sim/study/calibration/calibration.h"
#include "sim/timing/l2_residency.h"
#include "sim/workload/host_class.h"

namespace ridgeline {
namespace {

/// A microkernel in a graph starts while the one before still ends: an H200's empty ones of 0.75 us follow each other
/// every 0.49. Checked on an H100: its curves are met better with this than with the difference of its own two numbers
/// (kernel_fixed - graph_period). Kernels of a step follow each other after launch.graph_gap (timeline/issue_plan.h).
constexpr Seconds kGraphOverlap{0.262e-6};

constexpr std::array kMicrokernels{
    Microkernel{"stream_period", "launch_period.cu", describe_stream_period},
    Microkernel{"graph_period", "launch_period.cu", describe_graph_period},
    Microkernel{"memset_period", "launch_period.cu", describe_memset_period},
    Microkernel{"dram_read", "dram_stream.cu", describe_dram_read},
    Microkernel{"dram_write", "dram_stream.cu", describe_dram_write},
    Microkernel{"dram_copy", "dram_stream.cu", describe_dram_copy},
    Microkernel{"dram_triad", "dram_stream.cu", describe_dram_triad},
    Microkernel{"read_write_mix", "read_write_mix.cu", describe_read_write_mix, nullptr, true},
    Microkernel{"l2_read", "l2_bandwidth.cu", describe_l2_read},
    Microkernel{"l2_write", "l2_bandwidth.cu", describe_l2_write},
    Microkernel{"l2_reread_clean", "l2_residency.cu", describe_reread_clean},
    Microkernel{"l2_reread_dirty", "l2_residency.cu", describe_reread_dirty},
    Microkernel{"l1_read", "l1_shared_bandwidth.cu", describe_l1_read, fits_l1},
    Microkernel{"shared_read", "l1_shared_bandwidth.cu", describe_shared_read},
    Microkernel{"global_latency", "latency_chase.cu", describe_latency},
    Microkernel{"shared_latency", "latency_chase.cu", describe_shared_latency},
    Microkernel{"bank_conflicts", "bank_conflicts.cu", describe_bank_conflicts},
    Microkernel{"wave_staircase", "wave_staircase.cu", describe_wave_staircase, nullptr, true},
    Microkernel{"occupancy_bandwidth", "occupancy_bandwidth.cu", describe_occupancy},
    Microkernel{"atomic_add", "atomics.cu", describe_atomic_add, nullptr, true},
    Microkernel{"async_copy", "async_copy.cu", describe_async_copy},
    Microkernel{"gemm_naive", "gemm_naive.cu", describe_gemm_naive},
    Microkernel{"gemm_shared", "gemm_shared.cu", describe_gemm_shared},
    Microkernel{"gemm_tensor", "gemm_tensor.cu", describe_gemm_tensor},
    Microkernel{"host_copy", "host_copies.cu", describe_host_copy, pinned},
    Microkernel{"cuda_core_peak", "math_peak.cu", describe_cuda_cores},
    Microkernel{"mma_sync_peak", "math_peak.cu", describe_mma_sync},
    Microkernel{"wgmma_peak", "wgmma_peak.cu", describe_wgmma},
    Microkernel{"sustained_rate", "sustained_load.cu", describe_sustained_rate},
};

}  // namespace

std::span<const Microkernel> microkernels() { return kMicrokernels; }

namespace {

/// From the begin of one launch to that of the next, which takes `own` itself.
Seconds around(Seconds own, const KernelLaunch& launch, MicrokernelRun::Launched launched, const Gpu& gpu) {
  if (launched == MicrokernelRun::Launched::in_stream) return own + gpu.launch.gap;
  if (launched == MicrokernelRun::Launched::alone) {
    static const Host host = load_host("default", host_class_names());
    return own + host.launch_call * host.scale + gpu.launch.start_latency;
  }
  // Work of the copy engines and memsets waits for what was before.
  const bool kernel = !std::holds_alternative<FixedWork>(launch.work);
  return std::max(kernel ? own - kGraphOverlap : own, gpu.launch.graph_period);
}

}  // namespace

KernelLaunch code_launch(CodeKernel kernel, double blocks, int threads, int registers, double passes) {
  KernelLaunch launch;
  launch.name = code_constants(kernel).name;
  launch.grid = {static_cast<std::int64_t>(std::llround(blocks)), 1, 1};
  launch.threads_per_block = threads;
  launch.registers_per_thread = registers;
  MemoryBoundWork work;
  work.kernel_class = static_cast<int>(kernel);
  work.active_blocks = blocks;
  work.iterations = passes;
  launch.work = work;
  return launch;
}

void reads(KernelLaunch& launch, double bytes, double requested) {
  launch.reads.push_back({static_cast<int>(launch.reads.size()), bytes, requested});
}

void writes(KernelLaunch& launch, double bytes, double requested) {
  launch.writes.push_back({static_cast<int>(launch.reads.size() + launch.writes.size()), bytes, requested});
}

MicrokernelPrediction predict_microkernel(const Microkernel& kernel, const ProbePoint& point, const Gpu& gpu,
                                          const TimingEngine& engine) {
  const MicrokernelRun run = kernel.describe(point, gpu);
  L2Spec l2 = gpu.l2;
  if (run.in_order) {
    l2.resident_full /= kMixedFull;
    l2.resident_none /= kMixedNone;
  }
  const double hit = L2Residency(l2).hit_share(run.footprint);
  Seconds total;
  const auto whole = [&](const KernelLaunch& launch) {
    const std::vector<double> residency(launch.reads.size() + launch.writes.size(), hit);
    return engine.time(launch, residency).time;
  };
  for (const KernelLaunch& launch : run.launches) total += around(whole(launch), launch, run.launched, gpu);
  MicrokernelPrediction result{total, 0.0};
  switch (run.shows) {
    case MicrokernelRun::Shows::rate: result.value = run.amount / total.value(); break;
    case MicrokernelRun::Shows::microseconds: result.value = in_microseconds(total); break;
    case MicrokernelRun::Shows::cycles:
    case MicrokernelRun::Shows::bytes_a_cycle: {
      // The SM's clock runs inside the loop: what twice the loop takes more.
      KernelLaunch twice = run.launches.front();
      std::get<MemoryBoundWork>(twice.work).iterations *= 2.0;
      std::get<MemoryBoundWork>(twice.work).reread_bytes *= 2.0;
      for (Access& access : twice.reads) {
        access.requested *= 2.0;
        access.bytes = std::max(access.bytes, std::min(run.footprint, 2.0 * access.bytes));
      }
      const Seconds loop = whole(twice) - whole(run.launches.front());
      const double cycles = loop.value() * gpu.clock.sustained.value();
      result.value = run.shows == MicrokernelRun::Shows::cycles ? cycles / run.amount
                     : cycles > 0.0                             ? run.amount / cycles
                                                                : 0.0;
      break;
    }
  }
  return result;
}

}  // namespace ridgeline
