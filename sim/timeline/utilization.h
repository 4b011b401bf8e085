// How busy a step keeps its GPU, by four meanings of the word, and how much latency is left exposed.
//
//   kernel_active  a kernel runs: what nvidia-smi calls utilisation
//   sm             SMs with a thread block
//   tensor         the tensor cores' pipe issues
//   dram           bytes moved over what the datasheet's bandwidth could move
//
// T = T_math + T_memory - overlapped + latency: each kernel's math and memory time run beside each other, what it takes
// longer than the longer of both is latency inside it; gaps and waiting for the host lie between kernels.
#pragma once

#include <span>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/program/step_program.h"
#include "sim/timeline/timeline.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Shares of time, 0 to 1.
struct Utilization {
  double kernel_active = 0, sm = 0, tensor = 0, dram = 0;
};

struct ExposedLatency {
  Seconds math;           ///< pipes at their peak
  Seconds memory;         ///< DRAM at its peak
  Seconds overlapped;     ///< of both, the time they share inside kernels
  Seconds in_kernels;     ///< kernels, beyond the longer of their math and memory
  Seconds gaps;           ///< between kernels that were already issued
  Seconds communication;  ///< collectives with no kernel beside them
  Seconds host_exposed;   ///< the GPU waits for the host
  Seconds host_hidden;    ///< work of the host while the GPU has work
  [[nodiscard]] Seconds latency() const { return in_kernels + gaps + host_exposed; }
  /// math + memory - overlapped + latency + communication: the step.
  [[nodiscard]] Seconds total() const { return math + memory - overlapped + latency() + communication; }
};

/// `times` as run_timeline took them.
Utilization utilization(const StepProgram& program, std::span<const KernelTime> times, const Timeline& timeline,
                        const Gpu& gpu);
/// The same over `bins` equal stretches of the step; their mean is the above.
std::vector<Utilization> utilization_over_time(const StepProgram& program, std::span<const KernelTime> times,
                                               const Timeline& timeline, const Gpu& gpu, int bins);
ExposedLatency exposed_latency(const StepProgram& program, std::span<const KernelTime> times, const Timeline& timeline,
                               const Gpu& gpu);

}  // namespace ridgeline
