// When everything of a pipeline's step happens: one simulation a class of ranks, played over all of them.
//
// Ranks of one class run the same kernels; each has its own schedule. The steady step is repeated until its time is.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "sim/timeline/timeline.h"
#include "sim/workload/parallel/schedule.h"

namespace ridgeline {

/// Programs are of a ShortSchedule's steps; `times` as run_timeline takes them.
struct PipelineClass {
  const StepProgram* program = nullptr;
  std::span<const KernelTime> times;
  std::size_t rank = 0;                    ///< whose step the program is
  const Contention* contention = nullptr;  ///< null: what runs beside each other does not slow
};

struct PipelineOptions {
  TimelineOptions timeline;
  std::uint32_t longest_stretch = 64;  ///< kernels that are played as one
  bool every_rank = false;             ///< PipelineTimeline::kernels
  /// Of what goes from one rank to another; not given: as long as its kernel takes.
  std::function<Seconds(std::size_t from, std::size_t to)> transfer_time;
};

/// Of one rank.
struct StageTime {
  Seconds step, busy;         ///< `busy`: of the default stream
  Seconds starved;            ///< its default stream waits for the host
  Seconds transfers, bubble;  ///< for what is on its way; for another rank
  Seconds host_end;           ///< how long before the end of the step its host was done
};

/// A pass of a stage: "2F0" is the forward pass of stage 2 and micro-batch 0.
struct StagePass {
  parallel::StageAction action;
  Seconds start, end;  ///< relative to the begin of the step on the rank that is shown
};

/// Launches [begin, end) of a class's steady step as a rank runs them: later by `shift` than in the spans they are held
/// with.
struct LaunchRun {
  std::uint32_t begin = 0, end = 0;
  Seconds shift;
};
/// All kernels of one rank.
struct RankKernels {
  std::size_t of_class = 0;
  std::vector<KernelSpan> held;  ///< of its class; with start, end and stream alone
  std::vector<LaunchRun> runs;   ///< of `held`, each launch at least once
};

struct PipelineTimeline {
  Seconds step;  ///< of the slowest rank
  std::vector<StageTime> ranks;
  std::size_t busiest = 0;                    ///< rank whose kernels take longest
  std::vector<std::vector<StagePass>> lanes;  ///< by rank
  std::size_t shown_rank = 0;
  Timeline shown;                    ///< of one rank; exchanges stand where something moves
  std::vector<LaunchRun> further;    ///< of `shown`, beyond the one run of each launch that has a span
  std::vector<RankKernels> kernels;  ///< by rank, where they were asked for
};

/// `class_of` has an entry a rank. `shown`: rank whose kernels are placed.
PipelineTimeline run_pipeline(std::span<const PipelineClass> classes, std::span<const std::size_t> class_of,
                              const parallel::PipelineShape& shape, const Gpu& gpu, const Host& host,
                              const PipelineOptions& options, std::size_t shown);

}  // namespace ridgeline
