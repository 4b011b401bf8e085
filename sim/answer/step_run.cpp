// From a scenario to its prediction: op trace, step program, kernel times, timeline, memory; then the reasons.
#include "sim/answer/step_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "sim/answer/generated_tokens.h"
#include "sim/answer/lengths_of_batches.h"
#include "sim/answer/parallel/communication.h"
#include "sim/answer/parallel/parallel_prediction.h"
#include "sim/answer/peak.h"
#include "sim/answer/ranges/beyond_measured.h"
#include "sim/answer/replay.h"
#include "sim/answer/step_reasons.h"
#include "sim/answer/unknown_run.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/scenario/stack_notes.h"
#include "sim/scenario/step_amount.h"
#include "sim/timing/board_spread.h"
#include "sim/trace/read_recording.h"
#include "sim/units/budget.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr const char* kPredicting = "the prediction";

HostShare share_of(const Host& host, const Timeline& timeline) {
  const Seconds without = timeline.step - timeline.starved;
  return {host.name,
          host.scale,
          host.known,
          timeline.starved,
          host.least_scale,
          host.most_scale,
          timeline.host.value() > 0.0 ? host.scale * ratio(without, timeline.host) : 0.0};
}

/// How sure the range is of the slowest of several boards.
constexpr double kLuck = 0.95;

/// Of the collectives of a cluster; none without one.
CollectiveTimer timer_of_collectives(const Scenario& scenario) {
  if (!scenario.cluster) return {};
  return [&](const Collective& collective) { return kernel_time_of_collective(scenario, collective); };
}

/// What `time` answers (run_timeline or time_of_step) of kernels of this load; `times()` are those predicted, by which
/// they slow each other.
template <typename Time, typename Times>
auto as_timed(const Time& time, const StepProgram& program, const StepLoad& load, const Times& times,
              const Scenario& scenario, const Host& host, const TokenTimes* tokens,
              const IssueOutline* outline = nullptr) {
  TimelineOptions options{.cuda_graphs = scenario.cuda_graphs, .tokens = tokens, .outline = outline};
  if (!scenario.cluster || !program.has_streams()) return time(program, load, scenario.gpu, host, options);
  const StepContention contention(program, times(), scenario);
  options.contention = &contention;
  return time(program, load, scenario.gpu, host, options);
}

}  // namespace

StepRun::StepRun(Session& session, Scenario scenario, std::string_view engine, std::shared_ptr<SharedTrace> trace)
    : session_(session), scenario_(std::move(scenario)), engine_(engine), given_trace_(std::move(trace)) {
  make_engine(engine_, scenario_.gpu);  // an unknown name is a mistake to report before anything is made
  boards_ = boards_that_wait();
  scenario_.gpu.power.board = hungriest_board(scenario_.gpu.power, boards_);
}

std::int64_t StepRun::boards_that_wait() const {
  if (!scenario_.cluster) return 1;
  if (!scenario_.recorded) return scenario_.training.parallel.gpus();
  std::int64_t most = 1;
  for (const Op& op : recording()->recording.trace.ops)
    if (const auto* collective = std::get_if<Collective>(&op)) most = std::max(most, collective->ranks);
  return most;
}

const trace::Replayable* StepRun::recording() const {
  if (!scenario_.recorded) return nullptr;
  return &recording_.get([&] { return replayable_of(scenario_, engine_); });
}

std::shared_ptr<SharedTrace> StepRun::shared_trace() const {
  return trace_.get([&] { return given_trace_ ? given_trace_ : session_.trace(scenario_, engine_); });
}
std::shared_ptr<SharedKernels> StepRun::shared_kernels() const {
  return kernels_.get([&] { return session_.kernels(scenario_.gpu, scenario_.software); });
}

const PipelineRun* StepRun::pipeline() const {
  const ParallelDescription& how = scenario_.training.parallel;
  if (scenario_.recorded || !scenario_.cluster || !how.pipelined() || how.pipeline_rank >= 0) return nullptr;
  return pipeline_.get([&] { return std::make_unique<PipelineRun>(*this); }).get();
}

const OpTrace& StepRun::trace() const {
  keep_budget(kPredicting);
  if (const PipelineRun* stages = pipeline()) return stages->shown().trace();
  return scenario_.recorded ? recording()->recording.trace : shared_trace()->trace;
}

const StepProgram& StepRun::program() const {
  if (const PipelineRun* stages = pipeline()) return stages->shown().program();
  if (assembled().program.token_kernels == nullptr) return assembled().program;
  return program_of_tokens_.get([&] { return with_token_launches(assembled().program, *timed().tokens); }).program;
}

const StepProgram& StepRun::written_program() const {
  if (const PipelineRun* stages = pipeline()) return stages->shown().program();
  return assembled().program;
}

const StepRun::Assembled& StepRun::assembled() const {
  return program_.get([&] {
    const OpTrace& made_of = trace();
    keep_budget(kPredicting);
    Assembled made;
    LoweredOps& ops = shared_kernels()->ops;
    if (scenario_.recorded) {
      made.program = make_program(made_of, ops);
    } else {
      made.program = make_program(made_of, shared_trace()->called(), ops, [&](const LayoutKey& key) {
        made.layout = shared_trace()->layout(key);
        return made.layout->program;
      });
    }
    name_collectives(made.program, scenario_);
    if (scenario_.training.parallel.split > 1) look_at_fullest_device(made.program, scenario_);
    return made;
  });
}

const IssueOutline* StepRun::outline() const {
  const std::shared_ptr<const SharedLayout>& layout = assembled().layout;
  return layout ? &layout->outline : nullptr;
}

const std::vector<KernelTime>& StepRun::times() const {
  if (const PipelineRun* stages = pipeline()) return stages->shown().times();
  return times_.get([&] { return timed().listed(); });
}

const StepTimes& StepRun::timed() const {
  if (const PipelineRun* stages = pipeline()) return stages->shown().timed();
  return timed_.get([&] {
    const StepProgram& made = written_program();
    keep_budget(kPredicting);
    KernelTimes* known = shared_kernels()->times_of(engine_);
    std::shared_ptr<const StepResidency> residency;
    if (known != nullptr && !scenario_.recorded && made.token_kernels == nullptr) {
      const L2Spec& l2 = scenario_.gpu.l2;
      const std::vector<std::uint64_t> accesses = accesses_of_launches(made);
      residency = shared_trace()->residencies.get(
          residency_key(accesses, assembled().layout->sequence, l2),
          [&] {
            const std::shared_ptr<KnownStretches> stretches = session_.stretches(l2);
            const ResidencyInputs inputs{accesses, shared_trace()->lists(), assembled().layout->repeats.get()};
            return std::make_shared<const StepResidency>(residency_of_step(made, l2, inputs, *stretches));
          },
          [](const StepResidency& held) { return held.bytes(); });
    }
    StepTimes times = time_step(made, *make_engine(engine_, scenario_.gpu), scenario_.gpu, known,
                                timer_of_collectives(scenario_), residency.get());
    if (scenario_.recorded) leave_out_carried_traffic(times, made, *recording());
    return times;
  });
}

const Timeline& StepRun::timeline() const {
  if (const PipelineRun* stages = pipeline()) return stages->timeline().shown;
  return timeline_.get([&] {
    const StepLoad& kernels = load();
    keep_budget(kPredicting);
    const auto listed = [&]() -> const std::vector<KernelTime>& { return times(); };
    constexpr Timeline (*kTimeline)(const StepProgram&, const StepLoad&, const Gpu&, const Host&,
                                    const TimelineOptions&) = run_timeline;
    return as_timed(kTimeline, program(), kernels, listed, scenario_, scenario_.host, timed().tokens.get(), outline());
  });
}

const StepLoad& StepRun::load() const {
  return load_.get([&] { return StepLoad(program(), timed(), scenario_.gpu); });
}

std::vector<double> StepRun::factors(double kernel_factor) const {
  std::vector<double> factors(timed().size(), kernel_factor);
  if (!scenario_.cluster) return factors;
  const std::vector<LaunchedKernel> kernels = launched_kernels(program());
  // Which boards there are is a matter of luck: kernels at the limit take at most as much more as their energy.
  double board = 1.0;
  if (boards_ > 1 && kernel_factor != 1.0)
    board = hungriest_board(scenario_.gpu.power, boards_, kernel_factor < 1.0 ? 1.0 - kLuck : kLuck) /
            scenario_.gpu.power.board;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto* collective = std::get_if<Collective>(kernels[i].op);
    if (collective == nullptr) {
      if (times()[i].held > Seconds{}) factors[i] *= board;
      continue;
    }
    const CollectiveTime alone = time_of_collective(scenario_, *collective);
    factors[i] = alone.time.value() > 0.0 ? ratio(kernel_factor < 1.0 ? alone.low : alone.high, alone.time) : 1.0;
  }
  return factors;
}

std::vector<KernelTime> StepRun::scaled_times(double kernel_factor) const {
  std::vector<KernelTime> scaled = times();
  const std::vector<double> by = factors(kernel_factor);
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i].stretch(by[i]);
  return scaled;
}

Seconds StepRun::step_with(const Host& host, double kernel_factor, double host_factor) const {
  keep_budget(kPredicting);
  Host other = host;
  other.scale *= host_factor;
  if (const PipelineRun* stages = pipeline()) return stages->step_with(other, kernel_factor);
  const auto listed = [&]() -> const std::vector<KernelTime>& { return times(); };
  const StepLoad stretched =
      scenario_.cluster ? load().stretched(factors(kernel_factor)) : load().stretched(kernel_factor);
  return as_timed(time_of_step, program(), stretched, listed, scenario_, other, timed().tokens.get(), outline());
}

Seconds StepRun::step_beside(const Host& host) const {
  keep_budget(kPredicting);
  if (const PipelineRun* stages = pipeline()) return stages->step_with(host, 1.0);
  const auto listed = [&]() -> const std::vector<KernelTime>& { return times(); };
  return as_timed(time_of_step, program(), load(), listed, scenario_, host, timed().tokens.get(), outline());
}

BusyRange StepRun::kernels_range() const {
  const ChipRanges& ranges = shared_kernels()->ranges();
  const bool recorded_here = scenario_.recorded && scenario_.recorded->recorded_on &&
                             scenario_.recorded->recorded_on->name == scenario_.gpu.name;
  return busy_range(launched_kernels(program()), timed(), ranges, engine_, recorded_here);
}

const StepRun::Step& StepRun::described_step() const {
  return step_.get([&] {
    const Scenario& s = scenario_;
    const Timeline& line = timeline();
    const Host& host = s.host;
    const BusyRange range = kernels_range();
    Step result;
    StepPrediction& step = result.step;
    step.time = line.step;
    step.host_time = line.host;
    step.gpu_busy = line.gpu_busy;
    step.kernel_count = line.kernel_count();
    step.sm_utilization = line.sm_utilization;
    step.kernel_active_fraction = line.active_fraction();
    step.validated = range.validated;
    if (!range.validated) result.notes.push_back(range.why_not);
    step.low = std::min(step.time, step_with(host, range.low, host.least_factor()));
    step.high =
        std::max(step.time, step_with(host, range.high, host.most_factor())) + unproven_overlap(program(), line, s);
    widen_for_unknown_run(step, s);
    spread_over_lengths(step, *this);
    step.host = share_of(host, line);
    step.clock = line.clock;
    step.held = line.held;
    step.energy = step_energy(line.power, step.time, step.low, step.high, s.gpu);
    if (step.time > Seconds{}) step.power = step.energy.energy / step.time;
    if (const double seconds = step.time.value(); seconds > 0.0) {
      const StepAmount amount = amount_of_step(s);
      step.samples_per_s = amount.samples / seconds;
      step.tokens_per_s = amount.tokens / seconds;
      if (!s.recorded || s.recorded->precision)  // else it is not known of which peak
        step.mfu =
            trace().model_flops / seconds / peak_of_step(program(), s.training.compute_precision(), s.gpu).value();
    }
    const StackNotes stack = notes_of_stack(s);
    if (!stack.exists) step.validated = false;
    if (!s.recorded && s.training.activation_offload == ActivationOffload::pageable) step.validated = false;
    if (!s.recorded && !s.training.packed_lengths.empty()) step.validated = false;
    result.notes.insert(result.notes.end(), stack.notes.begin(), stack.notes.end());
    const std::vector<std::string> beyond = beyond_measured(s, residual_ranges());
    if (!beyond.empty()) step.validated = false;
    result.notes.insert(result.notes.end(), beyond.begin(), beyond.end());
    return result;
  });
}

const StepPrediction& StepRun::step() const { return described_step().step; }

const MemoryPrediction& StepRun::memory() const {
  if (const PipelineRun* stages = pipeline()) return stages->fullest().memory();
  if (scenario_.lengths) return longest().memory();
  return memory_.get([&] {
    if (!knows_allocations(scenario_)) return memory_as_recorded(recording()->measured, scenario_);
    const StepProgram& made = written_program();
    keep_budget(kPredicting);
    if (scenario_.recorded) return predict_memory(made, scenario_);
    // A layout does not know which device is looked at.
    std::uint64_t allocations = made.device ? hash_of_allocations(made) : assembled().layout->allocations;
    if (made.token_kernels != nullptr) allocations ^= hash_of_temporaries(*made.token_kernels);
    const SharedTrace::MemoryKey key{allocations, scenario_.allocator};
    const std::shared_ptr<SharedTrace> shared = shared_trace();
    // A generation's run costs most: one on the scenario's device often says all.
    std::optional<MemoryResult> run;
    if (made.token_kernels != nullptr && !expects_memory_run_ && shared->memories.find(key) == nullptr) {
      MemoryOptions options = memory_options(scenario_);
      options.counts = Counts::held;
      run = run_memory(made, options);
      if (run->fits && (run->statistics.retries > 0 || run->statistics.device_frees > 0))
        return predict_memory(made, options, scenario_.software, nullptr, std::move(run));
    }
    const auto roomy = shared->memories.get(key, [&] {
      std::optional<RoomyMemory> known;
      if (run || expects_memory_run_) known = roomy_memory_of(run ? *run : memory_run(), made, scenario_);
      return std::make_shared<const RoomyMemory>(known ? std::move(*known) : run_roomy_memory(made, scenario_));
    });
    MemoryPrediction memory = predict_memory(made, scenario_, *roomy, std::move(run));
    const Seconds step = compresses_gradients(scenario_) ? timeline().step : Seconds{};
    allow_for_held_buckets(memory, scenario_, trace(), step);
    return memory;
  });
}

const StepRun& StepRun::longest() const {
  return *longest_.get([&] {
    auto run = std::make_unique<StepRun>(session_, with_one_length(scenario_, scenario_.lengths->longest()), engine_);
    run->expects_memory_run_ = expects_memory_run_;
    return run;
  });
}

const MemoryResult& StepRun::memory_run() const {
  if (const PipelineRun* stages = pipeline()) return stages->shown().memory_run();
  if (scenario_.lengths) return longest().memory_run();
  return memory_run_.get([&] {
    if (!knows_allocations(scenario_))
      throw UserError(fmt::format(
          "{} is a {}, which does not say when tensors are born and freed; tools/ridgeline_record.py records that",
          scenario_.recorded->file->path(), trace::name_of(scenario_.recorded->file->format())));
    MemoryOptions options = memory_options(scenario_);
    options.record_samples = options.record_history = true;
    const StepProgram& made = written_program();
    keep_budget(kPredicting);
    return run_memory(made, options);
  });
}

const Prediction& StepRun::prediction() const {
  return prediction_.get([&] {
    // Ranges of a GPU that was not measured take longer than timing a step: once, beside the op trace.
    std::future<void> ranges =
        std::async(std::launch::async, with_same_budget([&] { (void)shared_kernels()->ranges(); }));
    (void)written_program();
    ranges.get();
    // Memory knows no time: it runs beside the timing.
    std::future<void> memory_made = std::async(std::launch::async, with_same_budget([&] { (void)memory(); }));
    Prediction p;
    p.scenario = scenario_.title;
    p.hardware = scenario_.gpu.name;
    p.engine = engine_;
    p.step = step();
    keep_budget(kPredicting);
    explain_step(p, program(), times(), timeline(), scenario_.gpu);
    const std::vector<std::string>& notes = described_step().notes;
    p.notes.insert(p.notes.end(), notes.begin(), notes.end());
    if (!scenario_.recorded) p.generation = generation_of(*this);
    memory_made.get();
    p.memory = memory();
    p.parallel = parallel_prediction(*this);
    return p;
  });
}

Prediction predict(const Scenario& scenario, std::string_view engine) {
  Session session;
  return StepRun(session, scenario, engine).prediction();
}

Seconds step_time(const OpTrace& trace, const Scenario& s, std::string_view engine_name) {
  const auto engine = make_engine(engine_name, s.gpu);
  const StepProgram program = make_program(trace, s.gpu, s.software);
  const StepTimes times = time_step(program, *engine, s.gpu, nullptr, timer_of_collectives(s));
  const auto listed = [&] { return times.listed(); };
  if (times.tokens != nullptr) {
    const ProgramOfTokens whole = with_token_launches(program, *times.tokens);
    return as_timed(time_of_step, whole.program, StepLoad(whole.program, times, s.gpu), listed, s, s.host,
                    times.tokens.get());
  }
  return as_timed(time_of_step, program, StepLoad(program, times, s.gpu), listed, s, s.host, nullptr);
}

}  // namespace ridgeline
