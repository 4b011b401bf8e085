// Programs of the ranks of a made-up pipeline: a kernel or more for each pass of a stage, one for each exchange.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/timeline/pipeline_timeline.h"
#include "tests/support/step_program_builder.h"

namespace ridgeline::testing_support {

/// What one action of a rank gives the GPU: actions of the program without calls; an exchange has a launch of its own.
struct MadeAction {
  std::vector<Action> actions;
  std::vector<double> us;  ///< of each launch
  std::vector<std::int64_t> blocks;
};

class MadeRank {
 public:
  using Of = std::function<MadeAction(const parallel::StageAction&)>;

  /// The rank's step, in which further rounds of micro-batches are held once; `first` and `last` around its actions.
  MadeRank(const parallel::PipelineShape& shape, std::size_t rank, const MadeAction& first, const Of& of,
           const MadeAction& last) {
    trace_.streams.resize(3);
    trace_.events = 8;
    trace_.ops.push_back(Collective{.kind = CollectiveKind::send_recv, .group = GroupKind::pipeline, .ranks = 2});
    trace_.calls.push_back({});
    const parallel::ShortSchedule shorter = parallel::shorten(shape);
    parallel::PipelineShape traced = shape;
    traced.micro_batches = shorter.micro_batches;
    program_.trace = &trace_;
    add(first, false);
    const std::vector<parallel::RankActions> ranks = parallel::make_schedule(traced);
    for (const parallel::StageAction& action : ranks[rank]) {
      const std::uint32_t begin = here();
      add(of(action), action.kind == parallel::StageAction::Kind::exchange);
      program_.stage_actions.push_back({begin, here()});
    }
    add(last, false);
    program_.steps.push_back({0, here()});
    const parallel::ShortSchedule::Rank round = shorter.ranks[rank];
    if (shorter.times > 1)
      program_.repeats.push_back(
          {{program_.stage_actions[round.begin].begin, program_.stage_actions[round.end - 1].end}, shorter.times});
    own_ = {&program_, times_, rank, nullptr};
  }
  MadeRank(const MadeRank&) = delete;
  MadeRank& operator=(const MadeRank&) = delete;

  [[nodiscard]] const PipelineClass& own_class() const { return own_; }
  [[nodiscard]] const StepProgram& program() const { return program_; }
  [[nodiscard]] const std::vector<KernelTime>& times() const { return times_; }

 private:
  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(program_.actions.size()); }
  void add(const MadeAction& made, bool exchange) {
    std::size_t next = 0;
    for (Action action : made.actions) {
      if (action.kind == Action::Kind::launch) {
        KernelLaunch launch;
        launch.grid = {made.blocks[next], 1, 1};
        launch.work = MemoryBoundWork{};
        KernelTime time;
        time.time = microseconds(made.us[next++]);
        time.dram_read_bytes = 1e4 * static_cast<double>(times_.size() + 1);
        action.index = static_cast<std::uint32_t>(program_.launches.size());
        if (exchange) action.call = 0;
        program_.launches.push_back(launch);
        times_.push_back(time);
      }
      program_.actions.push_back(action);
    }
  }

  OpTrace trace_;
  StepProgram program_;
  std::vector<KernelTime> times_;
  PipelineClass own_;
};

}  // namespace ridgeline::testing_support
