// When everything of a training step happens: the host runs ahead and issues kernels, the GPU works them off in order.
//
//   host:  t += cost of the operation's class, spread over its launches
//   GPU:   start = max(end of the kernel before + gap, return of the launch call + start latency)
//
// At most `queue_depth` launches may be issued and not started; then the host waits. A wait point lets the host go on
// when the GPU is done. The steady step is repeated until its time does. In a CUDA graph the host launches once a step.
//
// With several GPUs there are several streams (stream_recurrence.h); all ranks do the same.
//
// On an H200 the recurrence with measured busy times gives GPU-bound steps within 0.4 % in the median; host-bound
// ones are as good as the host's costs, which move by 12 % between runs on one kind of machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"
#include "sim/program/step_program.h"
#include "sim/timeline/issue_plan.h"
#include "sim/timeline/power.h"
#include "sim/timeline/recurrence.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

struct TokenTimes;

/// How kernels that run beside each other on streams of their own slow each other. Entries count launches of the steady
/// step.
class Contention {
 public:
  virtual ~Contention() = default;
  /// Time of `kernel` while `collective` runs, over its time alone; at least 1.
  [[nodiscard]] virtual double of_kernel(std::size_t kernel, std::size_t collective) const = 0;
  /// Time of `collective` while kernels like `kernel` run, over its time alone; at least 1.
  [[nodiscard]] virtual double of_collective(std::size_t collective, std::size_t kernel) const = 0;
  /// What `collective` waits for a place where `kernel` has run for `elapsed`.
  [[nodiscard]] virtual Seconds wait_for_room(std::size_t collective, std::size_t kernel, Seconds elapsed) const = 0;
};

struct TimelineOptions {
  bool cuda_graphs = false;
  int most_steps = 12;                     ///< repetitions of the steady step, the last of which is reported
  const Contention* contention = nullptr;  ///< null: what runs beside each other does not slow
  const TokenTimes* tokens = nullptr;      ///< of the program, where it does not write all of them out
  const IssueOutline* outline = nullptr;   ///< of the program; null: worked out anew
  bool throttle = true;  ///< lower the clock where the step would draw more than the board's limit on average
};

struct KernelSpan {
  Seconds issued;      ///< the launch call returned
  Seconds start, end;  ///< on the GPU; all relative to the step's begin on the GPU
  Seconds held;        ///< of `taken`, what the board's power limit adds
  Seconds exposed;     ///< of `taken`, while no stream before its own is busy: the step is longer for it
  std::uint8_t stream = 0;
  Seconds taken;              ///< end - start; of what runs more than once on average over its runs, as `exposed` is
  Seconds most_exposed;       ///< of one run
  std::size_t worst_run = 0;  ///< the first that is exposed as much as any
};

/// Launches [begin, end) of a steady micro-batch held once, with the spans of its first run.
struct RepeatedSpans {
  RepeatedLaunches launches;
  Seconds host_end, gpu_end;  ///< when host and GPU are done with the last run; relative as the spans are
};

struct Timeline {
  Seconds step;        ///< from the end of one steady step to the end of the next
  Seconds host;        ///< work of the host for one step, without waiting
  Seconds host_issue;  ///< to issue a step, averaged over ten from an idle device, as a profiler-free program sees it
  Seconds gpu_busy;    ///< in which a kernel runs: the sum of what each adds
  Seconds idle;        ///< step less gpu_busy
  Seconds starved;     ///< of it, spent waiting for the host; the rest is gaps between kernels
  Seconds host_begin;  ///< when the host began this step, relative to its begin on the GPU
  std::vector<KernelSpan> kernels;          ///< one a launch of the steady step, in order
  RepeatedSpans repeat;                     ///< which of them run more than once
  std::int64_t further_runs_of_tokens = 0;  ///< of launches that stand for those of tokens
  Hertz clock;                ///< of the SMs: the highest the power limit leaves, averaged over the kernels
  Hertz settled;              ///< what it leaves to kernels that it does not hold back on their own
  Seconds held;               ///< what the limit adds to the kernels
  Seconds contention;         ///< what collectives beside them add to the kernels of the default stream
  Watts power;                ///< average draw of the step
  double sm_utilization = 0;  ///< SM-seconds with a thread block over SM-seconds of the step
  bool host_bound = false;    ///< the GPU waits for the host for more than a tenth of the step
  int steps_run = 0;

  [[nodiscard]] std::int64_t kernel_count() const {
    return static_cast<std::int64_t>(kernels.size()) + further_runs_of_tokens +
           (repeat.launches.times - 1) * static_cast<std::int64_t>(repeat.launches.end - repeat.launches.begin);
  }
  [[nodiscard]] double active_fraction() const { return step.value() > 0 ? ratio(gpu_busy, step) : 0.0; }
};

/// Of each span, the seconds in which none of a stream before its own runs: what it adds to the step.
std::vector<double> exposed_spans(const IssuePlan& plan, std::span<const Recurrence::Span> spans);

/// Durations of a steady step's launches as they slow each other where it is run alone; repeated launches run once.
std::vector<double> contended_durations(const IssuePlan& plan, std::span<const double> alone, const Gpu& gpu,
                                        const Contention& contention, int most_steps);

/// `times` has one entry a launch of the steady step (time_kernels).
Timeline run_timeline(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu, const Host& host,
                      const TimelineOptions& options);
/// The same of kernels whose load is known already.
Timeline run_timeline(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                      const TimelineOptions& options);
/// Its `step` alone.
Seconds time_of_step(const StepProgram& program, const StepLoad& load, const Gpu& gpu, const Host& host,
                     const TimelineOptions& options);

}  // namespace ridgeline
