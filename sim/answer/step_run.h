// One question being answered: how long the steady step of a scenario takes, how much memory, and why.
//
// Each part of the answer is made when it is first asked for, once, and kept, so that reports, pages, advice and
// studies that read the same part see the same value. Safe to share between threads. Tested by
// tests/answer/step_run_test.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/parallel/pipeline_run.h"
#include "sim/answer/prediction.h"
#include "sim/answer/ranges/busy_range.h"
#include "sim/answer/session.h"
#include "sim/timeline/token_times.h"
#include "sim/trace/replayable.h"
#include "sim/units/lazy.h"

namespace ridgeline {

/// A timeline holds so many kernels one by one: about 3 GB of text, 1.1 GB of memory.
inline constexpr std::int64_t kMostKernelsShown = 1'500'000;

class StepRun {
 public:
  /// Engine "roofline", "analytic" or "simulate"; throws UserError for another. What follows is worked out on demand:
  /// it throws UserError for a scenario that cannot run (an attention backend the GPU lacks), and what keep_budget()
  /// throws. `session` must outlive the run. `trace`: in the place of the scenario's own op trace.
  StepRun(Session& session, Scenario scenario, std::string_view engine, std::shared_ptr<SharedTrace> trace = nullptr);

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const std::string& engine() const { return engine_; }
  [[nodiscard]] Session& session() const { return session_; }

  [[nodiscard]] const OpTrace& trace() const;
  [[nodiscard]] const StepProgram& program() const;
  /// One entry a launch of the steady step, as all that follow.
  [[nodiscard]] const std::vector<KernelTime>& times() const;
  /// The same, each different time once.
  [[nodiscard]] const StepTimes& timed() const;
  [[nodiscard]] const Timeline& timeline() const;
  /// Time with its range, rates, energy; without what it is made of.
  [[nodiscard]] const StepPrediction& step() const;
  [[nodiscard]] const MemoryPrediction& memory() const;
  /// The allocator's run on the scenario's device with its samples and its history; throws UserError where
  /// knows_allocations(scenario()) is false.
  [[nodiscard]] const MemoryResult& memory_run() const;
  /// Said before anything is asked: memory_run() will be. Then memory() reads it where it can and runs nothing itself.
  void expect_memory_run() { expects_memory_run_ = true; }
  /// All of it with its reasons. Advice, sensitivity and what would fit are empty: asking for them takes other runs.
  [[nodiscard]] const Prediction& prediction() const;
  /// The recording of a recorded step, made ready for the scenario's GPU and software; null for others.
  [[nodiscard]] const trace::Replayable* recording() const;

  /// The same with sequences of the longest length alone, whose memory is this step's (Scenario::lengths).
  [[nodiscard]] const StepRun& longest() const;
  /// The same with every token of a generation written out, for what shows kernels one by one; itself where all are.
  /// Throws UserError where there are more than are worth it.
  [[nodiscard]] const StepRun& every_token() const;

  /// The classes of a pipeline's ranks; null without one. Trace, program, times and memory_run() are those of the class
  /// that is shown, memory() is that of the fullest.
  [[nodiscard]] const PipelineRun* pipeline() const;
  /// `times()`, kernels so many times as long, collectives as long as measured ones took at least or at most.
  [[nodiscard]] std::vector<KernelTime> scaled_times(double factor) const;

  /// Time of the step beside another host: timeline().step of a scenario that names it, to the bit.
  [[nodiscard]] Seconds step_beside(const Host& host) const;

 private:
  /// Boards of the step that wait for each other: all ranks, or those of a recording's largest collective.
  [[nodiscard]] std::int64_t boards_that_wait() const;
  struct Step {
    StepPrediction step;
    std::vector<std::string> notes;  ///< of the range and the software stack
  };
  struct Assembled {
    StepProgram program;
    std::shared_ptr<const SharedLayout> layout;  ///< none of a recording
  };
  [[nodiscard]] const Step& described_step() const;
  [[nodiscard]] const Assembled& assembled() const;
  [[nodiscard]] const StepProgram& written_program() const;  ///< without launches that stand for those of tokens
  [[nodiscard]] const IssueOutline* outline() const;         ///< of the layout; null without one
  [[nodiscard]] std::shared_ptr<SharedTrace> shared_trace() const;
  [[nodiscard]] std::shared_ptr<SharedKernels> shared_kernels() const;
  [[nodiscard]] const StepLoad& load() const;
  /// How far the busy time may be off.
  [[nodiscard]] BusyRange kernels_range() const;
  /// Of each kernel's time, where kernels take so many times as long: collectives as scaled_times() says.
  [[nodiscard]] std::vector<double> factors(double kernel_factor) const;
  [[nodiscard]] Seconds step_with(const Host& host, double kernel_factor, double host_factor) const;

  Session& session_;
  Scenario scenario_;
  std::string engine_;
  std::shared_ptr<SharedTrace> given_trace_;
  bool expects_memory_run_ = false;
  std::int64_t boards_ = 1;  ///< boards_that_wait()
  Lazy<trace::Replayable> recording_;
  Lazy<std::unique_ptr<PipelineRun>> pipeline_;
  Lazy<std::shared_ptr<SharedTrace>> trace_;
  Lazy<std::shared_ptr<SharedKernels>> kernels_;
  Lazy<Assembled> program_;
  Lazy<ProgramOfTokens> program_of_tokens_;
  Lazy<StepTimes> timed_;
  Lazy<std::vector<KernelTime>> times_;
  Lazy<StepLoad> load_;
  Lazy<Timeline> timeline_;
  Lazy<Step> step_;
  Lazy<MemoryPrediction> memory_;
  Lazy<MemoryResult> memory_run_;
  Lazy<Prediction> prediction_;
  Lazy<std::unique_ptr<StepRun>> every_token_, longest_;
};

/// The prediction of a run that shares nothing. Throws as StepRun does.
Prediction predict(const Scenario& scenario, std::string_view engine);

/// Time of the steady step of a trace that is the scenario's own, shared with nothing.
Seconds step_time(const OpTrace& trace, const Scenario& scenario, std::string_view engine);

}  // namespace ridgeline
