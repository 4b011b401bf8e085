// A pipeline being answered: one run a class of its ranks, and the play over all of them.
//
// Ranks of one class hold the same parts of the network and run them in one order; of more than eight ranks
// those between the first and the last are one class, whose memory is that of its fullest. Each class has a StepRun of
// its own, so that its op trace, kernels and memory are made once and shared as everything else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/answer/prediction.h"
#include "sim/timeline/pipeline_timeline.h"
#include "sim/units/lazy.h"

namespace ridgeline {

class StepRun;

class PipelineRun {
 public:
  /// Of a scenario whose pipeline has several ranks; `whole` must outlive it.
  explicit PipelineRun(const StepRun& whole);
  ~PipelineRun();
  PipelineRun(const PipelineRun&) = delete;
  PipelineRun& operator=(const PipelineRun&) = delete;

  /// As predicted; kernels are placed of the busiest class. Played when it is first asked for: memory needs no time.
  [[nodiscard]] const PipelineTimeline& timeline() const;
  /// The same with the kernels of all ranks.
  [[nodiscard]] PipelineTimeline with_every_rank() const;
  [[nodiscard]] const StepRun& run_of_class(std::size_t number) const { return *classes_[number].run; }
  /// Step of kernels that take so many times as long, on another host.
  [[nodiscard]] Seconds step_with(const Host& host, double kernel_factor) const;
  /// The class whose kernels are shown, and the one that needs most memory.
  [[nodiscard]] const StepRun& shown() const { return *classes_[busiest()].run; }
  [[nodiscard]] const StepRun& fullest() const;
  /// Each with its step and memory, in the order of the stages.
  [[nodiscard]] std::vector<RankClass> rank_classes() const;

 private:
  struct Class {
    std::unique_ptr<StepRun> run;
    std::vector<std::size_t> ranks;
    std::string name;
    std::size_t traced = 0;  ///< rank that `run` is of
    std::int32_t most = 0;   ///< micro-batches that it holds at once
  };
  void make_classes();
  [[nodiscard]] std::size_t busiest() const;
  [[nodiscard]] PipelineTimeline play(const Host& host, double kernel_factor, bool every_rank = false) const;

  const StepRun& whole_;
  parallel::PipelineShape shape_;
  std::vector<Class> classes_;
  std::vector<std::size_t> class_of_;  ///< by rank
  Lazy<std::size_t> busiest_;
  Lazy<PipelineTimeline> timeline_;
};

}  // namespace ridgeline
