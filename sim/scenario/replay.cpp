#include "sim/scenario/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "sim/kernels/attention_choice.h"
#include "sim/scenario/shared_prediction.h"
#include "sim/timeline/timeline.h"

namespace ridgeline {
namespace {

/// Twenty-four of twenty-eight steps lie this close to their replays (fourteen networks beside a rented
/// NVIDIA H200, whose host changed its speed by up to two within a minute).
constexpr double kSpreadAsRecorded = 0.35;

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

/// Attention that the GPU at hand does not have, or would not choose: cuDNN's is chosen on Hopper only.
void choose_attention_anew(OpTrace& trace, const Gpu& gpu, const Software& software, std::vector<std::string>& notes) {
  std::set<std::string> said;
  for (Op& op : trace.ops) {
    auto* attention = std::get_if<Attention>(&op);
    if (attention == nullptr) continue;
    TrainingDescription training;
    training.precision = is_half(attention->type) ? Precision::bf16 : Precision::fp32;
    training.attention = AttentionRequest::sdpa;
    ModelDescription model;
    model.heads = attention->heads;
    model.hidden = attention->heads * attention->head_dim;
    const AttentionChoice choice = choose_attention(training, model, gpu, software);
    const auto backend = choice == AttentionChoice::cudnn   ? AttentionBackend::cudnn
                         : choice == AttentionChoice::flash ? AttentionBackend::flash
                                                            : AttentionBackend::efficient;
    // A recording of memory-efficient attention was made by a mask or by choice: that backend is everywhere. One of
    // FlashAttention-2 stays where it can run.
    const bool stays = attention->backend == AttentionBackend::efficient || attention->backend == backend ||
                       (attention->backend == AttentionBackend::flash && backend == AttentionBackend::cudnn);
    if (stays) continue;
    if (said.insert(name_of(op)).second)
      notes.push_back(fmt::format("{} is replaced by the backend PyTorch takes on this GPU", name_of(op)));
    attention->backend = backend;
  }
}

std::optional<Precision> precision_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Precision>, 5> kNames{{{"fp32", Precision::fp32},
                                                                          {"tf32", Precision::tf32},
                                                                          {"amp-fp16", Precision::amp_fp16},
                                                                          {"amp-bf16", Precision::amp_bf16},
                                                                          {"bf16", Precision::bf16}}};
  for (const auto& [known, precision] : kNames)
    if (known == name) return precision;
  return std::nullopt;
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
    (*entry)[static_cast<std::size_t>(program.launches[action.index].time_class)] += span.end - span.start;
  }
  return times;
}

void compare_calls(ReplayResult& result, const trace::Replayable& recorded,
                   const std::vector<std::optional<TimesByClass>>& times) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!times[i]) continue;
    const trace::RecordedCall& call = recorded.recorded[i];
    const auto [it, is_new] = index.try_emplace(call.name + (call.understood ? "" : "?"), result.ops.size());
    if (is_new) result.ops.push_back({.name = call.name, .understood = call.understood});
    ReplayedOp& op = result.ops[it->second];
    ++op.count;
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

MemoryPrediction memory_of(const trace::MeasuredStep& measured, const Scenario& scenario) {
  const MemoryOptions options = memory_options(scenario);
  MemoryPrediction m;
  m.peak_allocated = measured.peak_allocated;
  m.peak_reserved = measured.peak_reserved;
  m.context = options.context;
  m.capacity = options.capacity;
  m.needed = m.device_used = m.peak_reserved + m.context;
  const double spread = scenario.software.memory_spread;
  m.needed_low = std::llround(static_cast<double>(m.needed) * (1.0 - spread));
  m.needed_high = std::llround(static_cast<double>(m.needed) * (1.0 + spread));
  m.runs = m.needed <= m.capacity;
  m.fits = m.needed_high <= m.capacity;
  return m;
}

/// The recorded work is that of the default host, in units of a microsecond at a scale of 1.
Host host_of(const trace::Replayable& recorded, const ReplaySetting& setting) {
  Host host = setting.host;
  if (!recorded.host_measured || !setting.host_as_recorded) return host;
  host.name = "as recorded";
  host.scale *= recorded.host_slowness;
  host.known = true;
  host.spread = kSpreadAsRecorded;
  return host;
}

}  // namespace

ReplayResult predict_replay(trace::Replayable recorded, const ReplaySetting& setting) {
  if (recorded.recorded.empty()) describe_calls(recorded);
  OpTrace& trace = recorded.recording.trace;
  choose_attention_anew(trace, setting.gpu, setting.software, trace.notes);
  const StepProgram program = make_program(trace, setting.gpu, setting.software);
  Scenario scenario;
  scenario.title = recorded.recording.info.title;
  scenario.gpu = setting.gpu;
  scenario.host = host_of(recorded, setting);
  scenario.software = setting.software;
  scenario.cuda_graphs = setting.cuda_graphs;
  const auto precision = precision_of(recorded.recording.info.precision);
  scenario.training.precision = precision.value_or(Precision::fp32);
  PredictedStep step =
      predict_step(program, setting.gpu, scenario.host, setting.engine, {.cuda_graphs = setting.cuda_graphs});

  ReplayResult result;
  result.format = recorded.format;
  result.info = recorded.recording.info;
  result.measured = recorded.measured;
  result.has_measured_kernels = recorded.measured.kernels > 0;
  compare_calls(result, recorded, times_of_calls(recorded, program, step.timeline));
  result.prediction = std::move(step.prediction);
  result.prediction.scenario = result.info.title;
  StepPrediction& p = result.prediction.step;
  if (p.time.value() > 0) {
    if (precision)  // else it is not known of which peak
      p.mfu = trace.model_flops / p.time.value() / peak_of_precision(*precision, setting.gpu).value();
    p.samples_per_s = result.info.samples / p.time.value();
    p.tokens_per_s = result.info.tokens / p.time.value();
  }
  if (recorded.memory_known) {
    result.prediction.memory = predict_memory(program, scenario);
    result.memory_predicted = true;
  } else if (recorded.measured.peak_reserved > 0) {
    result.memory_as_recorded = memory_of(recorded.measured, scenario);
  }
  result.defects = std::move(recorded.defects);
  return result;
}

}  // namespace ridgeline
