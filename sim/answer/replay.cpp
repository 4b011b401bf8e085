#include "sim/answer/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "sim/answer/carried_time.h"
#include "sim/answer/recorded_conditions.h"
#include "sim/hardware/resource.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/kernels/attention/attention_choice.h"
#include "sim/scenario/driver_names.h"
#include "sim/scenario/stack_notes.h"
#include "sim/trace/read_recording.h"
#include "sim/units/user_error.h"
#include "sim/workload/repeated_range.h"

namespace ridgeline {
namespace {

/// The time class in which a call spends most.
std::size_t main_class(const std::array<Seconds, kTimeClasses>& times) {
  return static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
}

/// For recordings without calls of their own: each call of the trace is one.
void describe_calls(trace::Replayable& recorded) {
  const OpTrace& trace = recorded.recording.trace;
  recorded.recorded.reserve(trace.calls.size());
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const Op& op = trace.ops[trace.calls[i].op];
    recorded.recorded.push_back({name_of(op), 0.0, 0, !std::holds_alternative<UnknownOp>(op)});
    recorded.origin.push_back(static_cast<std::uint32_t>(i));
  }
}

std::string_view name_of_backend(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::flash: return "flash";
    case AttentionBackend::cudnn: return "cudnn";
    case AttentionBackend::efficient: return "efficient";
    case AttentionBackend::math: return "math";
  }
  return "?";
}

/// Attention that the GPU at hand does not have, or would not choose: cuDNN's is chosen on Hopper only.
void choose_attention_anew(OpTrace& trace, const Gpu& gpu, const Software& software, std::vector<std::string>& notes) {
  std::set<std::string> said;
  for (Op& op : trace.ops) {
    auto* attention = std::get_if<Attention>(&op);
    if (attention == nullptr) continue;
    const AttentionBackend backend = choose_backend(*attention, gpu, software);
    // Recordings of memory-efficient and of math attention were made by a mask or by choice: those are everywhere. One
    // of FlashAttention-2 stays where it can run.
    const bool stays = attention->backend == AttentionBackend::efficient ||
                       attention->backend == AttentionBackend::math || attention->backend == backend ||
                       (attention->backend == AttentionBackend::flash && backend == AttentionBackend::cudnn);
    if (stays) continue;
    if (said.insert(std::string(name_of_backend(attention->backend))).second)
      notes.push_back(fmt::format(
          "{}_attention and its backward pass are replaced by {}_attention, which PyTorch takes on this GPU",
          name_of_backend(attention->backend), name_of_backend(backend)));
    attention->backend = backend;
  }
}

/// Share of the recorded GPU time that nothing but that time is known of.
double share_without_rule(const trace::Replayable& recorded) {
  double all = 0.0, without = 0.0;
  for (const trace::RecordedCall& call : recorded.recorded) {
    all += call.measured;
    if (!call.understood) without += call.measured;
  }
  return all > 0.0 ? without / all : 0.0;
}

/// Times of a GPU that nobody knows cannot be carried over: a few stay as they are, a step of them is no prediction.
void mind_unknown_gpu(const RecordedWorkload& workload, trace::Replayable& recorded) {
  constexpr double kMostKept = 0.5;
  const std::string on = undescribed_gpu(workload);
  if (on.empty()) return;
  const double share = share_without_rule(recorded);
  if (share > kMostKept)
    throw UserError(
        fmt::format("{}: {:.0f} % of its GPU time is of kernels without shapes, recorded on {}; recorded_on "
                    "(--recorded-on) has to name a GPU of hw/ or a file that describes it",
                    workload.file->path(), 100.0 * share, on));
  recorded.recording.trace.notes.push_back(fmt::format(
      "recorded on {}: operations with shapes are predicted anew{}, the other {:.1f} % of its GPU time stay as "
      "recorded "
      "there; recorded_on (--recorded-on) names a GPU of hw/",
      on, workload.file->gpu().hip ? " in NVIDIA's kernels (its own, of HIP, are not read)" : "", 100.0 * share));
}

/// An op trace has no times of its own: what ranks exchange takes as long as links let it.
void mind_missing_links(const Scenario& s, const OpTrace& trace) {
  if (s.cluster) return;
  for (const Op& op : trace.ops)
    if (const auto* collective = std::get_if<Collective>(&op))
      throw UserError(
          fmt::format("{}: the recorded step exchanges data among {} GPUs ({}): --cluster (a name of hw/clusters/ or a "
                      "path) has to say over which links",
                      s.recorded->file->path(), collective->ranks, name_of(collective->kind)));
}

/// Kernels are those of the software asked for, whatever ran when the step was recorded.
void note_other_cuda(const RecordedWorkload& workload, const Software& software, std::vector<std::string>& notes) {
  const double recorded = workload.file->cuda();
  if (recorded <= 0.0 || std::floor(recorded) == std::floor(software.cuda)) return;
  notes.push_back(
      fmt::format("recorded with CUDA {:.1f}, whose libraries have other kernels than those predicted, of {}", recorded,
                  software.title));
}

using TimesByClass = std::array<Seconds, kTimeClasses>;

/// Predicted times of the recorded calls of the steady step; calls outside it stay without an entry.
std::vector<std::optional<TimesByClass>> times_of_calls(const trace::Replayable& recorded, const StepProgram& program,
                                                        const Timeline& timeline) {
  std::vector<std::optional<TimesByClass>> times(recorded.recorded.size());
  const OpTrace& trace = *program.trace;
  const std::size_t begin = trace.steps.empty() ? 0 : trace.steps.back().begin;
  const std::size_t end = trace.steps.empty() ? trace.records.size() : trace.steps.back().end;
  for (std::size_t i = begin; i < end; ++i)
    if (trace.records[i].kind == Record::Kind::op) times[recorded.origin[trace.records[i].index]].emplace();
  std::size_t launch = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    const KernelSpan& span = timeline.kernels[launch++];
    if (action.call == Action::kNoCall) continue;
    auto& entry = times[recorded.origin[action.call]];
    if (!entry) entry.emplace();
    (*entry)[static_cast<std::size_t>(program.launches[action.index].time_class)] +=
        static_cast<double>(program.times_of(action)) * span.taken;
  }
  return times;
}

void compare_calls(ReplayResult& result, const trace::Replayable& recorded,
                   const std::vector<std::optional<TimesByClass>>& times) {
  std::unordered_map<std::string, std::size_t> index;
  const RepeatedCalls repeated = repeated_calls(recorded.recording.trace);
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!times[i]) continue;
    const trace::RecordedCall& call = recorded.recorded[i];
    const auto [it, is_new] = index.try_emplace(call.name + (call.understood ? "" : "?"), result.ops.size());
    if (is_new) result.ops.push_back({.name = call.name, .understood = call.understood});
    ReplayedOp& op = result.ops[it->second];
    op.count += repeated.times_of(i);  // such traces have an entry a call
    const std::size_t in_class = main_class(*times[i]);
    for (std::size_t c = 0; c < kTimeClasses; ++c)
      op.predicted += (*times[i])[c], op.predicted_by_class[c] += (*times[i])[c];
    op.measured += Seconds(call.measured);
    op.measured_by_class[in_class] += Seconds(call.measured);
    result.measured_by_class[in_class] += Seconds(call.measured);
  }
  Coverage& coverage = result.coverage;
  for (const ReplayedOp& op : result.ops) {
    const Seconds time = result.has_measured_kernels ? op.measured : op.predicted;
    coverage.calls += op.count;
    coverage.gpu_time += time;
    if (op.understood) coverage.understood_calls += op.count, coverage.understood_gpu_time += time;
  }
  std::sort(result.ops.begin(), result.ops.end(), [](const ReplayedOp& a, const ReplayedOp& b) {
    return std::max(a.predicted, a.measured) > std::max(b.predicted, b.measured);
  });
}

/// Which of two halves of a recording's calls this one is in.
bool in_first_half(std::size_t call) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // Knuth's multiplicative hash: 2^64 over the golden ratio
  return (call * kOdd) >> 63 == 0;
}

Seconds sum_of(const TimesByClass& times) { return std::accumulate(times.begin(), times.end(), Seconds{}); }

/// Predicted times of calls on the scenario's GPU at a lower clock.
std::vector<std::optional<TimesByClass>> times_at_lower_clock(const StepRun& run, const trace::Replayable& recorded) {
  Scenario slowed = run.scenario();
  slowed.gpu = with_more(slowed.gpu, Resource::core_clock, kSlowedClock);
  slowed.gpu.name += " at a lower clock";
  const StepRun other(run.session(), std::move(slowed), run.engine());
  return times_of_calls(recorded, other.program(), other.timeline());
}

ComparedPart compared_part(const trace::Replayable& recorded, const std::vector<std::optional<TimesByClass>>& times,
                           const std::vector<std::optional<TimesByClass>>& slowed, Seconds fixed) {
  ComparedPart part;
  double understood = 0.0, shared = 0.0;
  std::vector<ComparableCall> calls;
  std::map<std::pair<std::string_view, double>, std::size_t> alike;  // by name and prediction
  std::map<std::string_view, std::size_t> names;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const trace::RecordedCall& call = recorded.recorded[i];
    if (!times[i] || !call.understood || call.measured <= 0.0) continue;
    const Seconds predicted = sum_of(*times[i]);
    const std::size_t like = alike.try_emplace({call.name, predicted.value()}, alike.size()).first->second;
    const std::size_t name = names.try_emplace(call.name, names.size()).first->second;
    calls.push_back({.name = name,
                     .like = like,
                     .kernels = call.kernels,
                     .measured = Seconds(call.measured),
                     .beside = Seconds(call.beside),
                     .predicted = predicted,
                     .slowed = i < slowed.size() && slowed[i] ? sum_of(*slowed[i]) : predicted,
                     .asked = in_first_half(i)});
    understood += call.measured;
    if (!calls.back().alone()) shared += call.measured;
  }
  if (understood > 0.0) part.beside = shared / understood;
  const RecordedConditions conditions = recorded_conditions(calls, fixed);
  part.added = conditions.added;
  part.clock = conditions.clock;
  for (const ComparableCall& call : calls) {
    if (!call.alone() || call.asked) continue;
    part.measured += call.measured;
    part.predicted += conditions.of(call);
  }
  return part;
}

}  // namespace

std::string undescribed_gpu(const RecordedWorkload& workload) {
  const trace::Format format = workload.file->format();
  if (workload.recorded_on || (format != trace::Format::pytorch_profiler && format != trace::Format::nsight_systems))
    return "";
  const trace::RecordedGpu gpu = workload.file->gpu();
  const std::string name = gpu.name.empty() ? "a GPU that the trace does not name" : fmt::format("'{}'", gpu.name);
  if (gpu.hip) return name + (gpu.name.empty() ? " and that is no NVIDIA GPU" : ", which is no NVIDIA GPU");
  if (gpu.name.empty()) return name;
  const std::string nearest = nearest_hardware(gpu);
  return name + (nearest.empty()
                     ? ", which hw/ does not describe"
                     : fmt::format(" ({} SMs, {:.0f} GiB), which hw/ does not describe: the nearest there is {}",
                                   gpu.sms, static_cast<double>(gpu.memory) / (std::int64_t{1} << 30), nearest));
}

void leave_out_carried_traffic(StepTimes& times, const StepProgram& program, const trace::Replayable& recorded) {
  std::map<std::uint32_t, std::uint32_t> without;  // entries of times.different
  std::size_t launch = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    std::uint32_t& time = times.of_launch[launch++];
    if (action.stream == 0 || action.call == Action::kNoCall) continue;
    if (recorded.recorded[recorded.origin[action.call]].understood) continue;
    const auto [entry, is_new] = without.try_emplace(time, static_cast<std::uint32_t>(times.different.size()));
    if (is_new) {
      KernelTime idle = times.different[time];
      idle.dram_read_bytes = idle.dram_write_bytes = idle.l2_bytes = 0.0;
      times.different.push_back(idle);
    }
    time = entry->second;
  }
}

trace::Replayable replayable_of(const Scenario& s, std::string_view engine) {
  const RecordedWorkload& workload = *s.recorded;
  trace::Replayable recorded = workload.file->made_for([&](const trace::RecordedGpu&) {
    const Gpu& on = workload.recorded_on ? *workload.recorded_on : s.gpu;
    return trace::RecordedDevice{on.dram.bandwidth.value() * on.dram.read_efficiency,
                                 on.launch.kernel_fixed.value(),
                                 carried_bytes(on, s.gpu, s.software, std::string(engine)),
                                 link_bytes(on),
                                 runs_recorded_library(s),
                                 s.cluster.has_value()};
  });
  if (recorded.recorded.empty()) describe_calls(recorded);
  OpTrace& trace = recorded.recording.trace;
  mind_missing_links(s, trace);
  if (recorded.recording.info.ranks.pipelined())
    trace.notes.push_back(fmt::format("one of {} stages of a pipeline, alone: it waits for no other",
                                      recorded.recording.info.ranks.pipeline));
  mind_unknown_gpu(workload, recorded);
  note_other_cuda(workload, s.software, trace.notes);
  choose_attention_anew(trace, s.gpu, s.software, trace.notes);
  return recorded;
}

ReplayResult replay_result(const StepRun& run) {
  const trace::Replayable& recorded = *run.recording();
  ReplayResult result;
  result.format = recorded.format;
  result.info = recorded.recording.info;
  result.measured = recorded.measured;
  result.has_measured_kernels = recorded.measured.kernels > 0;
  const std::vector<std::optional<TimesByClass>> times = times_of_calls(recorded, run.program(), run.timeline());
  compare_calls(result, recorded, times);
  const Scenario& scenario = run.scenario();
  if (const auto& on = scenario.recorded->recorded_on; on && on->name == scenario.gpu.name)
    result.compared =
        compared_part(recorded, times, times_at_lower_clock(run, recorded), scenario.gpu.launch.kernel_fixed);
  result.prediction = run.prediction();
  result.defects = recorded.defects;
  result.critical_path = recorded.critical_path;
  const Gpu& gpu = run.scenario().gpu;
  for (const trace::FormatUse& use : recorded.formats)
    if (10 * gpu.compute_major + gpu.compute_minor < use.capability) result.cannot_run.push_back(use);
  result.undescribed_gpu = undescribed_gpu(*run.scenario().recorded);
  return result;
}

ReplayResult predict_replay(const Scenario& s, std::string_view engine) {
  Session session;
  return replay_result(StepRun(session, s, engine));
}

}  // namespace ridgeline
