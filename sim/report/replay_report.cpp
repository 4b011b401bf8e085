#include "sim/report/replay_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/report/json/prediction_json.h"
#include "sim/report/text/brief_kernel_name.h"
#include "sim/report/text/memory_words.h"
#include "sim/report/text/names.h"
#include "sim/report/text/prediction_text.h"
#include "sim/report/text/sensitivity_text.h"
#include "sim/trace/profiler/operator_stacks.h"
#include "sim/trace/read_recording.h"
#include "sim/units/parse.h"

namespace ridgeline {
namespace {

using nlohmann::ordered_json;

/// How far a prediction is from what was measured; from ten times on as a factor.
std::string beside(Seconds predicted, Seconds measured) {
  if (measured.value() <= 0) return "";
  const double times = ratio(predicted, measured);
  if (times >= 10.0) return fmt::format("x{:.0f}", times);
  return fmt::format("{:+.1f} %", 100.0 * (times - 1.0));
}

std::string share_of(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

/// Predicted and measured time of what has a rule: an error of the rest would compare the recording with itself.
struct UnderstoodTimes {
  Seconds predicted{}, measured{};
  std::array<Seconds, kTimeClasses> predicted_by_class{}, measured_by_class{};
};
UnderstoodTimes understood_times(const ReplayResult& r) {
  UnderstoodTimes times;
  for (const ReplayedOp& op : r.ops) {
    if (!op.understood) continue;
    times.predicted += op.predicted;
    times.measured += op.measured;
    for (std::size_t c = 0; c < kTimeClasses; ++c) {
      times.predicted_by_class[c] += op.predicted_by_class[c];
      times.measured_by_class[c] += op.measured_by_class[c];
    }
  }
  return times;
}

void write_ops(std::string& out, const ReplayResult& r) {
  auto to = std::back_inserter(out);
  if (r.has_measured_kernels)
    fmt::format_to(to, "\n  {:>10} {:>10} {:>9} {:>6}  operation\n", "predicted", "measured", "", "count");
  else fmt::format_to(to, "\n  {:>10} {:>6}  operation\n", "predicted", "count");
  constexpr std::size_t kShown = 24;
  ReplayedOp rest;
  const auto line = [&](const ReplayedOp& op, std::string_view name) {
    const std::string error = op.understood ? beside(op.predicted, op.measured) : "carried";
    if (r.has_measured_kernels)
      fmt::format_to(to, "  {:>10} {:>10} {:>9} {:>6}  {}\n", to_string(op.predicted), to_string(op.measured), error,
                     op.count, name);
    else
      fmt::format_to(to, "  {:>10} {:>6}  {}{}\n", to_string(op.predicted), op.count, name,
                     op.understood ? "" : " (no rule)");
  };
  for (std::size_t i = 0; i < r.ops.size(); ++i) {
    if (i < kShown) {
      line(r.ops[i], r.ops[i].name.substr(0, 56));
      continue;
    }
    rest.count += r.ops[i].count;
    rest.predicted += r.ops[i].predicted;
    rest.measured += r.ops[i].measured;
  }
  if (rest.count > 0) line(rest, "all others");
  if (r.has_measured_kernels && r.coverage.understood_calls < r.coverage.calls)
    out += "  carried: no rule or no shapes; the recorded time or the bytes stand for it\n";
}

void write_classes(std::string& out, const ReplayResult& r) {
  constexpr double kNegligible = 0.005;  // of the recorded kernels: a class so short says nothing about an error
  auto to = std::back_inserter(out);
  out += "\n";
  const UnderstoodTimes understood = understood_times(r);
  Seconds all{};
  std::array<Seconds, kTimeClasses> kernels = r.prediction.time_by_class;
  // Beside other streams too, as the measured ones are: the prediction's are what each adds to the step.
  if (r.has_measured_kernels) {
    kernels = {};
    for (const ReplayedOp& op : r.ops)
      for (std::size_t i = 0; i < kTimeClasses; ++i) kernels[i] += op.predicted_by_class[i];
  }
  for (const Seconds measured : r.measured_by_class) all += measured;
  for (std::size_t i = 0; i < kTimeClasses; ++i) {
    const Seconds predicted = kernels[i], measured = r.measured_by_class[i];
    if (predicted.value() <= 0 && measured.value() <= 0) continue;
    if (r.has_measured_kernels)
      fmt::format_to(to, "  {:>10} {:>10} {:>9}         {}\n", to_string(predicted), to_string(measured),
                     ratio(understood.measured_by_class[i], all) < kNegligible
                         ? ""
                         : beside(understood.predicted_by_class[i], understood.measured_by_class[i]),
                     words(kTimeClassNames[i]));
    else fmt::format_to(to, "  {:>10}         {}\n", to_string(predicted), words(kTimeClassNames[i]));
  }
}

/// The recorded times' critical path: shares of each kind, then what takes most of it.
void write_critical_path(std::string& out, const trace::CriticalPath& path) {
  if (path.seconds <= 0.0) return;
  auto to = std::back_inserter(out);
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < trace::kPathKinds; ++i) {
    const auto kind = static_cast<trace::PathKind>(i);
    const double share = path.of(kind) / path.seconds;
    if (share >= 0.005) kinds.push_back(fmt::format("{} {:.0f} %", trace::name_of(kind), 100.0 * share));
  }
  write_wrapped(out, "  critical path ",
                fmt::format("{} of the recording: {}", to_string(Seconds(path.seconds)), fmt::join(kinds, ", ")));
  constexpr std::size_t kShown = 8;
  constexpr double kLeast = 0.01;
  for (std::size_t i = 0; i < std::min(kShown, path.parts.size()); ++i) {
    const trace::CriticalPath::Part& part = path.parts[i];
    if (part.seconds < kLeast * path.seconds) break;
    fmt::format_to(to, "  {:>10} {:>8} {:>6}  {:<10} {}\n", to_string(Seconds(part.seconds)),
                   share_of(part.seconds / path.seconds), part.count, trace::name_of(part.kind),
                   brief_kernel_name(part.name).substr(0, 56));
  }
}

void write_gpus(std::string& out, const trace::MeasuredStep& measured) {
  if (measured.gpus.size() < 2) return;
  std::vector<std::string> all;
  constexpr std::size_t kShown = 16;
  for (const trace::GpuUse& gpu : measured.gpus)
    if (all.size() < kShown) all.push_back(fmt::format("{}: {}", gpu.device, to_string(Seconds(gpu.busy))));
  write_wrapped(out, "  GPUs          ",
                fmt::format("busy over the whole recording: {}{}", fmt::join(all, ", "),
                            measured.gpus.size() > kShown ? ", ..." : ""));
}

/// Where a recording's kernels shared the GPU or take longer than they would without it, what is left of the error.
void write_compared(std::string& out, const ComparedPart& c) {
  constexpr double kShared = 0.05;
  constexpr Seconds kAdded{0.2e-6};
  if (c.measured.value() <= 0.0 || (c.beside < kShared && c.added < kAdded && c.clock >= 1.0)) return;
  std::vector<std::string> said;
  if (c.beside >= kShared)
    said.push_back(fmt::format("{} of it ran beside kernels of other streams", share_of(c.beside)));
  if (c.clock < 1.0)
    said.push_back(
        fmt::format("the GPU was recorded at about {:.0f} % of its clock, as its longer kernels tell that wait "
                    "for it",
                    100.0 * c.clock));
  if (c.added >= kAdded)
    said.push_back(
        fmt::format("the recording adds {} to each kernel (lower quartile of the short ones in half of the calls)",
                    to_string(c.added)));
  write_wrapped(out, "                ",
                fmt::format("{}; under this, of the calls alone that did not say so {}", fmt::join(said, "; "),
                            beside(c.predicted, c.measured)));
}

void write_memory_line(std::string& out, const MemoryPrediction& m) {
  const char* const recorded = m.source == MemorySource::as_recorded ? " as recorded, so" : ",";
  if (m.source == MemorySource::unknown)
    return write_wrapped(out, "  memory        ",
                         "unknown: the recording says nothing of it (profile_memory=True does)");
  write_wrapped(out, "  memory        ",
                fmt::format("{} allocated, {} reserved{} {} in nvidia-smi here; {} ({})", gib(m.peak_allocated),
                            gib(m.peak_reserved), recorded, gib(m.device_used), verdict(m), gib(m.capacity)));
}

}  // namespace

ordered_json critical_path_json(const trace::CriticalPath& path) {
  if (path.seconds <= 0.0) return nullptr;
  ordered_json kinds, parts = ordered_json::array();
  for (std::size_t i = 0; i < trace::kPathKinds; ++i) {
    const auto kind = static_cast<trace::PathKind>(i);
    kinds[std::string(trace::name_of(kind))] = path.of(kind);
  }
  constexpr std::size_t kMost = 100;
  for (std::size_t i = 0; i < std::min(kMost, path.parts.size()); ++i) {
    const trace::CriticalPath::Part& part = path.parts[i];
    parts.push_back(
        {{"kind", trace::name_of(part.kind)}, {"name", part.name}, {"time_s", part.seconds}, {"count", part.count}});
  }
  return {{"time_s", path.seconds}, {"time_by_kind", std::move(kinds)}, {"parts", std::move(parts)}};
}

std::string replay_text(const std::string& file, const ReplayResult& r, Notes notes) {
  std::string out = fmt::format("{}: {}{}\n", file, trace::name_of(r.format),
                                r.measured.gpu.empty() ? "" : fmt::format(" recorded on {}", r.measured.gpu));
  auto to = std::back_inserter(out);
  if (!r.undescribed_gpu.empty())
    out = fmt::format(
              "RECORDED ON ANOTHER KIND OF GPU: {}; {} of its GPU time (operations with shapes) is predicted anew, the "
              "rest stays as recorded there\n",
              r.undescribed_gpu, share_of(r.coverage.of_gpu_time())) +
          out;
  if (r.format == trace::Format::nsight_systems && r.coverage.of_gpu_time() < 0.5)
    out =
        fmt::format(
            "WITHOUT SHAPES: Nsight Systems records none; {} of the GPU time is carried over kernel by kernel from the "
            "GPU of the report (torch.profiler with record_shapes=True makes it predictable)\n",
            share_of(1.0 - r.coverage.of_gpu_time())) +
        out;
  else if (r.coverage.of_gpu_time() < 0.5)
    out = fmt::format(
              "UNDER HALF UNDERSTOOD: {} of the GPU time is predicted, the rest is carried over or costed by bytes\n",
              share_of(r.coverage.of_gpu_time())) +
          out;
  if (const auto lost = r.defects.counts.find(std::string(trace::kLaunchesWithoutKernel));
      lost != r.defects.counts.end() && lost->second > r.measured.kernels)
    out = fmt::format(
              "MOST KERNELS ARE NOT IN THE TRACE: of {} launches {} left none (captured into a CUDA graph, or not "
              "recorded)\n",
              lost->second + r.measured.kernels, lost->second) +
          out;
  for (const trace::FormatUse& use : r.cannot_run)
    out = fmt::format(
              "CANNOT RUN ON {}: {} kernels ({}) compute in {}, which needs compute capability {}.{}; they "
              "count as if it had it\n",
              r.prediction.hardware, use.kernels, to_string(Seconds(use.seconds)), use.format, use.capability / 10,
              use.capability % 10) +
          out;
  if (!r.info.title.empty()) fmt::format_to(to, "  {}\n", r.info.title);
  if (!r.measured.which_step.empty()) fmt::format_to(to, "  step: {}\n", r.measured.which_step);
  const StepPrediction& p = r.prediction.step;
  fmt::format_to(to, "\n  step on {}   {}  ({} to {})\n", r.prediction.hardware, to_string(p.time), to_string(p.low),
                 to_string(p.high));
  fmt::format_to(to, "  GPU busy      {}{}\n", to_string(p.gpu_busy),
                 r.has_measured_kernels ? fmt::format("; measured {}", to_string(Seconds(r.measured.busy))) : "");
  fmt::format_to(to, "  host          {}\n", to_string(p.host_time));
  fmt::format_to(to, "  kernels       {}{}\n", p.kernel_count,
                 r.has_measured_kernels ? fmt::format("; measured {}", r.measured.kernels) : "");
  if (const auto& parallel = r.prediction.parallel) {
    fmt::format_to(to, "  communication {} of {} GPUs: {} exposed, {} hidden\n",
                   to_string(parallel->exposed + parallel->hidden), parallel->gpus, to_string(parallel->exposed),
                   to_string(parallel->hidden));
    if (!parallel->limit.empty()) fmt::format_to(to, "                {}\n", parallel->limit);
  }
  if (r.measured.step > 0)
    fmt::format_to(to, "  recorded step {}, slowed by the profiler\n", to_string(Seconds(r.measured.step)));
  write_gpus(out, r.measured);
  write_critical_path(out, r.critical_path);
  write_memory_line(out, r.prediction.memory);
  fmt::format_to(to, "  understood    {} of {} operations ({}), {} of the GPU time\n", r.coverage.understood_calls,
                 r.coverage.calls, share_of(r.coverage.of_calls()), share_of(r.coverage.of_gpu_time()));
  const UnderstoodTimes understood = understood_times(r);
  if (understood.measured.value() > 0)
    fmt::format_to(to, "  of that       {}; measured {} ({})\n", to_string(understood.predicted),
                   to_string(understood.measured), beside(understood.predicted, understood.measured));
  write_compared(out, r.compared);
  write_ops(out, r);
  write_classes(out, r);
  if (r.prediction.sensitivity) out += sensitivity_table(*r.prediction.sensitivity);
  out += advice_text(r.prediction) + notes_text(r.prediction, &r, notes);
  return out;
}

ordered_json replay_json(const std::string& file, const ReplayResult& r) {
  ordered_json out = prediction_json(r.prediction);
  out["scenario"] = r.info.title.empty() ? file : r.info.title;
  out["understood"] = r.coverage.of_gpu_time();
  out["trace"] = {{"file", file},
                  {"format", trace::name_of(r.format)},
                  {"recorded_on", r.measured.gpu},
                  {"step", r.measured.which_step}};
  ordered_json measured = nullptr;
  if (r.has_measured_kernels) {
    ordered_json by_class;
    for (std::size_t i = 0; i < kTimeClasses; ++i)
      by_class[std::string(kTimeClassNames[i])] = r.measured_by_class[i].value();
    measured = {{"gpu_busy_s", r.measured.busy},
                {"kernel_time_s", r.measured.kernel_sum},
                {"kernel_count", r.measured.kernels},
                {"span_s", r.measured.span},
                {"step_s", r.measured.step},
                {"time_by_class", std::move(by_class)},
                {"peak_allocated_bytes", r.measured.peak_allocated},
                {"peak_reserved_bytes", r.measured.peak_reserved}};
  }
  out["measured"] = std::move(measured);
  out["critical_path"] = critical_path_json(r.critical_path);
  ordered_json cannot_run = ordered_json::array();
  for (const trace::FormatUse& use : r.cannot_run)
    cannot_run.push_back({{"format", use.format},
                          {"needs_compute_capability", fmt::format("{}.{}", use.capability / 10, use.capability % 10)},
                          {"kernels", use.kernels},
                          {"time_s", use.seconds}});
  out["cannot_run"] = std::move(cannot_run);
  const UnderstoodTimes understood = understood_times(r);
  out["understood_part"] = {
      {"predicted_s", understood.predicted.value()},
      {"measured_s", r.has_measured_kernels ? ordered_json(understood.measured.value()) : ordered_json()},
      {"beside_share", r.compared.beside},
      {"clock_share", r.compared.clock},
      {"added_per_kernel_s", r.compared.added.value()},
      {"alone", {{"predicted_s", r.compared.predicted.value()}, {"measured_s", r.compared.measured.value()}}}};
  ordered_json unknown = ordered_json::array(), ops = ordered_json::array();
  for (const ReplayedOp& op : r.ops) {
    ordered_json entry{{"name", op.name},
                       {"count", op.count},
                       {"understood", op.understood},
                       {"predicted_s", op.predicted.value()},
                       {"measured_s", r.has_measured_kernels ? ordered_json(op.measured.value()) : ordered_json()}};
    if (!op.understood) unknown.push_back(op.name);
    ops.push_back(std::move(entry));
  }
  out["coverage"] = {{"ops", r.coverage.of_calls()},
                     {"gpu_time", r.coverage.of_gpu_time()},
                     {"calls", r.coverage.calls},
                     {"understood_calls", r.coverage.understood_calls},
                     {"unknown", std::move(unknown)}};
  out["ops"] = std::move(ops);
  out["defects"] = r.defects.counts;
  return out;
}

}  // namespace ridgeline
