// The collectives of a scenario's step on its cluster: how long each takes, and the memory their communicators hold.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/answer/memory_prediction.h"
#include "sim/network/collective_time.h"
#include "sim/network/overlap.h"
#include "sim/program/step_program.h"
#include "sim/scenario/scenario.h"
#include "sim/timeline/timeline.h"
#include "sim/timing/kernel_time.h"

namespace ridgeline {

/// Where the ranks of a group of this kind stand. Sharded ranks are neighbours, replicas of shards lie apart.
Placement placement_of(const Scenario& scenario, const Collective& collective);

/// Of what one stage of a pipeline hands to another, a micro-batch; and from one rank of the pipeline to another, where
/// all that stand beside these do the same.
std::int64_t bytes_between_stages(const Scenario& scenario);
CollectiveTime time_between_stages(const Scenario& scenario, std::size_t from, std::size_t to, std::int64_t bytes);

/// Alone, all ranks ready. The scenario has a cluster.
CollectiveTime time_of_collective(const Scenario& scenario, const Collective& collective);
KernelTime kernel_time_of_collective(const Scenario& scenario, const Collective& collective);

/// How the collectives of a program's steady step and the kernels beside them slow each other. The program, the times
/// and the scenario must outlive it.
class StepContention final : public Contention {
 public:
  StepContention(const StepProgram& program, std::span<const KernelTime> times, const Scenario& scenario);
  StepContention(const StepContention&) = delete;
  StepContention& operator=(const StepContention&) = delete;
  [[nodiscard]] double of_kernel(std::size_t kernel, std::size_t collective) const override;
  [[nodiscard]] double of_collective(std::size_t collective, std::size_t kernel) const override;
  [[nodiscard]] Seconds wait_for_room(std::size_t collective, std::size_t kernel, Seconds elapsed) const override;

 private:
  struct Launch {
    KernelBesides kernel;
    const CollectiveTime* collective = nullptr;  ///< else a kernel
  };
  const Gpu& gpu_;
  std::vector<std::optional<CollectiveTime>> collectives_;  ///< beside the program's launches: one is one collective
  std::vector<Launch> launches_;
};

/// Collectives of a program get the names, thread blocks and threads that NCCL gives them on this cluster.
void name_collectives(StepProgram& program, const Scenario& scenario);

/// Time of collectives that other kernels cover, where overlap was not measured (the H200's is): what the step may be
/// longer if nothing covered them.
Seconds unproven_overlap(const StepProgram& program, const Timeline& timeline, const Scenario& scenario);

/// NCCL's work holds what it sent until a thread that looks every 100 ms has seen it done and the next collective
/// begins. In the second step of DistributedDataParallel a rank may so hold the buckets of the first beside the new
/// ones. The fullest rank is taken to, as 29 of 33 measured runs had one that did, but where
/// TrainingDescription::holds_first_buckets denies it; this widens the range of memory by the other case. Compressed
/// buckets are made anew in every step (which takes `step`): the trace holds those of the step before, and this adds
/// those of the steps before it that still wait for the thread.
void allow_for_held_buckets(MemoryPrediction& memory, const Scenario& scenario, const OpTrace& trace, Seconds step);

/// Whether the step sends buckets that a hook has compressed.
bool compresses_gradients(const Scenario& scenario);

/// Of device memory, outside the allocator: 0 without a cluster of several GPUs.
std::int64_t communicator_bytes(const Scenario& scenario);

}  // namespace ridgeline
