// From a scenario to its prediction: op trace, step program, kernel times, timeline, memory; then the reasons.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <unordered_map>

#include "sim/hardware/keys.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/assumed_kernels.h"
#include "sim/kernels/attention_choice.h"
#include "sim/scenario/prediction.h"
#include "sim/scenario/profile_sum.h"
#include "sim/scenario/residual_ranges.h"
#include "sim/scenario/shared_prediction.h"
#include "sim/scenario/stack_notes.h"
#include "sim/timeline/step_times.h"
#include "sim/timeline/timeline.h"
#include "sim/units/user_error.h"
#include "sim/workload/training_step.h"

namespace ridgeline {
namespace {

/// Launches of the steady step with the call each belongs to.
struct LaunchedKernel {
  const KernelLaunch* launch;
  const Op* op;
  std::uint32_t op_index;
};
std::vector<LaunchedKernel> launched_kernels(const StepProgram& program) {
  static const Op kNone = UnknownOp{};
  std::vector<LaunchedKernel> out;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const bool of_call = action.call != Action::kNoCall;
    const std::uint32_t op = of_call ? program.trace->calls[action.call].op : 0;
    out.push_back(
        {&program.launches[action.index], of_call ? &program.trace->ops[op] : &kNone, of_call ? op : Action::kNoCall});
  }
  return out;
}

/// Share of the variance of a kernel's error that all kernels of its family have in common: shapes of one step lie
/// close together, where one law errs one way. Chosen so that nine of ten of the 52 eager steps measured on an H200 lie
/// inside.
constexpr double kSharedError = 0.6;

/// Why a step of kernels that were not measured, or of a chip that was not, has the range it has.
std::string why_not_validated(const ChipRanges& ranges) {
  if (ranges.nearest() == nullptr) return "nothing was measured: the range is a guess";
  if (ranges.distance() == 0.0)
    return "no kernels of this kind and size were measured on this GPU: the range is that of others of its kernels, or "
           "of other GPUs";
  return fmt::format(
      "no GPU with these numbers was measured; nearest is {}, at a distance of {:.2f} (one number doubled is 0.69): "
      "the "
      "range is wider for it",
      ranges.nearest()->name, ranges.distance());
}

/// Read once, the first time that they are needed.
const ResidualRanges& residual_ranges() {
  static const ResidualRanges ranges = ResidualRanges::load();
  return ranges;
}

/// Uncertainty of the sum of kernel times: errors of one op's kernels are taken as equal wherever it occurs; of the
/// errors of different ops a part is shared within the family, and the rest independent.
struct BusyRange {
  double low = 1.0, high = 1.0;  ///< factors on the busy time
  bool validated = true;
  std::string why_not;  ///< a note, where it is not
};
BusyRange busy_range(std::span<const LaunchedKernel> kernels, std::span<const KernelTime> times, const Gpu& gpu,
                     std::string_view engine) {
  const ChipRanges ranges(residual_ranges(), gpu);
  struct Part {
    double time = 0, low = 0, high = 0;
    std::string_view family;
  };
  std::unordered_map<std::uint32_t, Part> parts;
  double total = 0, unvalidated = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const double t = times[i].time.value();
    Part& part = parts[kernels[i].op_index];
    if (part.time == 0) {
      const Range range = ranges.of_kernel(*kernels[i].op, times[i].time, engine);
      part.low = range.low;
      part.high = range.high;
      part.family = family_of(*kernels[i].op);
      if (!range.validated) part.low = -range.low;  // remembered by its sign until the sums are done
    }
    part.time += t;
    total += t;
  }
  double below = 0, above = 0;
  std::map<std::string_view, Part> families;
  for (auto& [op, part] : parts) {
    if (part.low < 0) {
      unvalidated += part.time;
      part.low = -part.low;
    }
    const double short_by = part.time * std::max(0.0, 1.0 - part.low),
                 over_by = part.time * std::max(0.0, part.high - 1.0);
    below += (1.0 - kSharedError) * short_by * short_by;
    above += (1.0 - kSharedError) * over_by * over_by;
    Part& family = families[part.family];
    family.low += short_by;
    family.high += over_by;
  }
  for (const auto& [name, family] : families) {
    below += kSharedError * family.low * family.low;
    above += kSharedError * family.high * family.high;
  }
  if (total <= 0) return {};
  const bool validated = ranges.distance() == 0.0 && unvalidated < 0.2 * total;
  return {std::max(0.05, 1.0 - std::sqrt(below) / total), 1.0 + std::sqrt(above) / total, validated,
          validated ? "" : why_not_validated(ranges)};
}

HostShare share_of(const Host& host, const Timeline& timeline) {
  const Seconds without = timeline.step - timeline.starved;
  return {host.name, host.scale, host.known, timeline.starved,
          timeline.host.value() > 0.0 ? host.scale * ratio(without, timeline.host) : 0.0};
}

Seconds step_with(const StepProgram& program, std::span<const KernelTime> times, const Gpu& gpu, Host host,
                  const TimelineOptions& options, double kernel_factor, double host_factor) {
  std::vector<KernelTime> scaled(times.begin(), times.end());
  for (KernelTime& t : scaled) t.stretch(kernel_factor);
  host.scale *= host_factor;
  return run_timeline(program, scaled, gpu, host, options).step;
}

void explain_time(Prediction& p, std::span<const LaunchedKernel> kernels, std::span<const KernelTime> times,
                  const Timeline& timeline, const KernelClasses& classes) {
  std::map<std::pair<std::string, std::uint32_t>, KernelGroup> groups;
  std::map<std::pair<std::string, std::uint32_t>, ProfileSum> profiles;
  // Every launch finds the group of the one before of its kind without looking for its name.
  struct Known {
    std::uint32_t op_index;
    KernelGroup* group;
  };
  std::unordered_map<const KernelLaunch*, Known> known;
  known.reserve(kernels.size());
  double busy = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Seconds t = timeline.kernels[i].end - timeline.kernels[i].start;  // with the clock the step leaves
    busy += t.value();
    const KernelLaunch& launch = *kernels[i].launch;
    p.time_by_class[static_cast<std::size_t>(launch.time_class)] += t;
    const Seconds held = timeline.kernels[i].held;
    p.limited_by[static_cast<std::size_t>(Limiter::power)] += held;
    p.limited_by[static_cast<std::size_t>(times[i].limiter)] += t - held;
    Known& its = known[&launch];
    if (its.group == nullptr || its.op_index != kernels[i].op_index)
      its = {kernels[i].op_index, &groups[{launch.name, kernels[i].op_index}]};
    KernelGroup& group = *its.group;
    if (group.count == 0) {
      group.name = launch.name;
      group.shape = kernels[i].op_index == Action::kNoCall ? "" : shape_of(*kernels[i].op);
      group.op = kernels[i].op_index == Action::kNoCall ? "" : name_of(*kernels[i].op);
      group.kernel_class = classes.of(*kernels[i].op, launch.time_class);
      group.limiter = held > kHeldByPower * t ? Limiter::power : times[i].limiter;
      group.on_tensor_cores = launch.on_tensor_cores();
    }
    group.flops += launch.flops;
    group.read_bytes += launch.read_bytes();
    group.written_bytes += launch.written_bytes();
    group.dram_bytes += times[i].dram_read_bytes + times[i].dram_write_bytes;
    group.l2_bytes += times[i].l2_bytes;
    group.l2_hit_bytes += times[i].l2_bytes * times[i].l2_hit_rate;
    group.occupied_s += t.value() * times[i].occupancy;
    if (classes.writes_scores(*kernels[i].op)) group.score_bytes += launch.written_bytes();
    if (times[i].profile) profiles[{launch.name, kernels[i].op_index}].add(*times[i].profile, t);
    ++group.count;
    group.time += t;
  }
  p.idle = Seconds{std::max(0.0, p.step.time.value() - busy)};
  p.limited_by[static_cast<std::size_t>(Limiter::launch)] += p.idle;
  for (const auto& [key, sum] : profiles) groups[key].profile = std::make_shared<const KernelProfile>(sum.mean());
  for (auto& [key, group] : groups) p.kernels.push_back(std::move(group));
  std::sort(p.kernels.begin(), p.kernels.end(),
            [](const KernelGroup& a, const KernelGroup& b) { return a.time > b.time; });
}

}  // namespace

FlopsPerSecond peak_of_precision(Precision precision, const Gpu& gpu) {
  const MathRates& r = gpu.sm.rates;
  double tensor = 0;
  switch (precision) {
    case Precision::fp32: break;
    case Precision::tf32: tensor = r.tensor_tf32; break;
    case Precision::apex_o2:
    case Precision::amp_fp16: tensor = r.tensor_fp16; break;
    case Precision::amp_bf16:
    case Precision::bf16: tensor = r.tensor_bf16; break;
  }
  return tensor > 0 ? gpu.tensor_peak(tensor) : gpu.peak(r.fp32);
}

Seconds step_time(const OpTrace& trace, const Scenario& s, std::string_view engine_name) {
  const auto engine = make_engine(engine_name, s.gpu);
  const StepProgram program = make_program(trace, s.gpu, s.software);
  const std::vector<KernelTime> times = time_kernels(program, *engine, s.gpu);
  return run_timeline(program, times, s.gpu, s.host, {.cuda_graphs = s.cuda_graphs}).step;
}

StepRun run_step(const Scenario& s, std::string_view engine_name) {
  const auto engine = make_engine(engine_name, s.gpu);
  StepRun run{make_scenario_program(s), {}, {.cuda_graphs = s.cuda_graphs}, {}};
  run.times = time_kernels(run.built.program, *engine, s.gpu);
  run.timeline = run_timeline(run.built.program, run.times, s.gpu, s.host, run.options);
  return run;
}

namespace {

std::int64_t tokens_of_step(const TrainingDescription& t) {
  if (!t.inference) return t.micro_batch * t.gradient_accumulation * t.sequence_length;
  return t.inference->sequences * (t.inference->new_tokens > 0 ? t.inference->new_tokens : t.sequence_length);
}

std::optional<Generation> generation_of(const Scenario& s, Seconds whole, std::string_view engine) {
  if (!s.training.inference || s.training.inference->new_tokens == 0) return std::nullopt;
  const InferenceDescription& inference = *s.training.inference;
  Scenario first = s;
  first.training.inference->new_tokens = 1;
  Generation result;
  result.first_token = inference.new_tokens > 1 ? step_time(trace_of(first), first, engine) : whole;
  if (inference.new_tokens > 1)
    result.per_token = (whole - result.first_token) / static_cast<double>(inference.new_tokens - 1);
  const std::int64_t kept = s.training.sequence_length + inference.new_tokens - 1;
  if (inference.cache != KeyValueCache::none)
    result.cache_bytes = 2 * s.model.layers * s.training.micro_batch * s.model.key_value_count() * kept *
                         s.model.head_dim() *
                         (s.training.precision == Precision::fp32 || s.training.precision == Precision::tf32 ? 4 : 2);
  return result;
}

}  // namespace

Prediction predict(const Scenario& s, std::string_view engine_name) {
  make_engine(engine_name, s.gpu);  // an unknown name is a mistake to report before anything is made
  // Reading them takes as long as timing a step: once, beside the op trace.
  static const std::shared_future<void> ranges = std::async(std::launch::async, [] { residual_ranges(); });
  const ScenarioProgram built = make_scenario_program(s);
  ranges.get();
  // Memory knows no time: it runs beside the timing.
  std::future<MemoryPrediction> memory =
      std::async(std::launch::async, [&] { return predict_memory(built.program, s); });
  Prediction p = predict_time(built.program, s, engine_name, Reasons::yes);
  p.memory = memory.get();
  return p;
}

PredictedStep predict_step(const StepProgram& program, const Gpu& gpu, const Host& host, std::string_view engine_name,
                           const TimelineOptions& options, Reasons reasons) {
  const auto engine = make_engine(engine_name, gpu);
  const OpTrace& trace = *program.trace;
  const std::vector<KernelTime> times = time_kernels(program, *engine, gpu);
  PredictedStep result;
  const Timeline& timeline = result.timeline = run_timeline(program, times, gpu, host, options);
  const auto kernels = launched_kernels(program);

  Prediction& p = result.prediction;
  p.hardware = gpu.name;
  p.engine = engine->name();
  p.step.time = timeline.step;
  p.step.host_time = timeline.host;
  p.step.gpu_busy = timeline.gpu_busy;
  p.step.kernel_count = timeline.kernel_count();
  p.step.sm_utilization = timeline.sm_utilization;
  p.step.kernel_active_fraction = timeline.active_fraction();
  const BusyRange range = busy_range(kernels, times, gpu, p.engine);
  p.step.validated = range.validated;
  p.step.low = std::min(p.step.time, step_with(program, times, gpu, host, options, range.low, host.least_factor()));
  p.step.high = std::max(p.step.time, step_with(program, times, gpu, host, options, range.high, host.most_factor()));
  p.step.host = share_of(host, timeline);
  p.step.clock = timeline.clock;
  p.step.held = timeline.held;
  p.step.energy = step_energy(timeline.power, p.step.time, p.step.low, p.step.high, gpu);
  p.step.power = p.step.energy.energy / p.step.time;
  if (reasons == Reasons::no) return result;
  p.step.utilization = utilization(program, times, timeline, gpu);
  p.step.latency = exposed_latency(program, times, timeline, gpu);
  explain_time(p, kernels, times, timeline, KernelClasses(trace));

  p.notes = trace.notes;
  for (const std::string& note : assumed_kernels(gpu)) p.notes.push_back(note);
  for (const std::uint32_t op : program.approximated)
    p.notes.push_back(fmt::format("{} {} has no rule on this GPU: costed by its bytes", name_of(trace.ops[op]),
                                  shape_of(trace.ops[op])));
  if (const auto assumed = kernels_of_another(gpu.architecture); !assumed.empty()) p.notes.emplace_back(assumed);
  for (std::string& note : notes_of_units(trace, gpu)) p.notes.push_back(std::move(note));
  if (!range.validated) p.notes.push_back(range.why_not);
  return result;
}

Prediction predict_time(const StepProgram& program, const Scenario& s, std::string_view engine_name, Reasons reasons) {
  Prediction p = predict_step(program, s.gpu, s.host, engine_name, {.cuda_graphs = s.cuda_graphs}, reasons).prediction;
  p.scenario = s.title;
  const double seconds = p.step.time.value();
  const double samples =
      static_cast<double>(s.training.inference ? s.training.inference->sequences
                                               : s.training.micro_batch * s.training.gradient_accumulation);
  p.step.samples_per_s = samples / seconds;
  p.step.tokens_per_s = static_cast<double>(tokens_of_step(s.training)) / seconds;
  p.step.mfu = program.trace->model_flops / seconds / peak_of_precision(s.training.precision, s.gpu).value();
  const StackNotes stack = notes_of_stack(s);
  if (!stack.exists) p.step.validated = false;
  if (reasons == Reasons::yes) p.notes.insert(p.notes.end(), stack.notes.begin(), stack.notes.end());
  if (reasons == Reasons::yes) p.generation = generation_of(s, p.step.time, engine_name);
  return p;
}

}  // namespace ridgeline
