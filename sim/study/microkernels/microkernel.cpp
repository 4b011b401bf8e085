#include "sim/study/microkernels/microkernel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/timing/l2_residency.h"

namespace ridgeline {
namespace {

constexpr std::array kMicrokernels{
    Microkernel{"graph_period", "launch_period.cu", describe_graph_period},
    Microkernel{"dram_read", "dram_stream.cu", describe_dram_read},
    Microkernel{"dram_write", "dram_stream.cu", describe_dram_write},
    Microkernel{"dram_copy", "dram_stream.cu", describe_dram_copy},
    Microkernel{"dram_triad", "dram_stream.cu", describe_dram_triad},
    Microkernel{"l2_reread_clean", "l2_residency.cu", describe_reread_clean},
    Microkernel{"l2_reread_dirty", "l2_residency.cu", describe_reread_dirty},
    Microkernel{"global_latency", "latency_chase.cu", describe_latency},
    Microkernel{"bank_conflicts", "bank_conflicts.cu", describe_bank_conflicts},
    Microkernel{"wave_staircase", "wave_staircase.cu", describe_wave_staircase},
    Microkernel{"occupancy_bandwidth", "occupancy_bandwidth.cu", describe_occupancy},
    Microkernel{"gemm_naive", "gemm_naive.cu", describe_gemm_naive},
    Microkernel{"gemm_shared", "gemm_shared.cu", describe_gemm_shared},
    Microkernel{"gemm_tensor", "gemm_tensor.cu", describe_gemm_tensor},
};

}  // namespace

std::span<const Microkernel> microkernels() { return kMicrokernels; }

KernelLaunch code_launch(CodeKernel kernel, double blocks, int threads, int registers, double passes) {
  KernelLaunch launch;
  launch.name = code_constants(kernel).name;
  launch.grid = {static_cast<std::int64_t>(std::llround(blocks)), 1, 1};
  launch.threads_per_block = threads;
  launch.registers_per_thread = registers;
  StreamWork work;
  work.kernel_class = static_cast<int>(kernel);
  work.active_blocks = blocks;
  work.iterations = passes;
  launch.work = work;
  return launch;
}

void reads(KernelLaunch& launch, double bytes, double requested) {
  launch.reads.push_back({static_cast<int>(launch.reads.size()), bytes, requested});
}

void writes(KernelLaunch& launch, double bytes) {
  launch.writes.push_back({static_cast<int>(launch.reads.size() + launch.writes.size()), bytes, 0.0});
}

MicrokernelPrediction predict_microkernel(const Microkernel& kernel, const ProbePoint& point, const Gpu& gpu,
                                          const TimingEngine& engine) {
  const MicrokernelRun run = kernel.describe(point, gpu);
  const Seconds empty = engine.time(code_launch(CodeKernel::empty, 1, 32, 16, 0), {}).time;
  const double hit = L2Residency(gpu.l2).hit_share(run.footprint);
  Seconds total;
  const auto own = [&](const KernelLaunch& launch) {
    const std::vector<double> residency(launch.reads.size() + launch.writes.size(), hit);
    return engine.time(launch, residency).time - empty;
  };
  for (const KernelLaunch& launch : run.launches) total += own(launch) + gpu.launch.graph_period;
  MicrokernelPrediction result{total, 0.0};
  switch (run.shows) {
    case MicrokernelRun::Shows::rate: result.value = run.amount / total.value(); break;
    case MicrokernelRun::Shows::microseconds: result.value = in_microseconds(total); break;
    case MicrokernelRun::Shows::cycles: {
      // The SM's clock runs inside the loop: what twice the loop takes more.
      KernelLaunch twice = run.launches.front();
      std::get<StreamWork>(twice.work).iterations *= 2.0;
      std::get<StreamWork>(twice.work).reread_bytes *= 2.0;
      for (Access& access : twice.reads) access.requested *= 2.0;
      const Seconds loop = own(twice) - own(run.launches.front());
      result.value = loop.value() * gpu.clock.sustained.value() / run.amount;
      break;
    }
  }
  return result;
}

}  // namespace ridgeline
