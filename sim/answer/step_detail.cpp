#include "sim/answer/step_detail.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ridgeline {
namespace {

bool is_number(const std::string& name) { return name.find_first_not_of("0123456789") == std::string::npos; }

/// "attention" of every block; of a block itself what holds the blocks ("layers").
std::string part_of(const OpTrace& trace, std::uint16_t module) {
  const ModuleName* one = &trace.modules[module - 1u];
  while (is_number(one->name) && one->parent != 0) one = &trace.modules[one->parent - 1u];
  return one->name;
}

/// Notes the part of the network that launches a kind.
class Parts {
 public:
  Parts(StepDetail& detail, const OpTrace& trace) : detail_(detail), trace_(trace) {}
  void note(std::uint32_t kind, std::uint16_t module) {
    if (module == 0 || !seen_.insert({kind, module}).second) return;
    std::vector<std::string>& known = detail_.kinds[kind].modules;
    std::string part = part_of(trace_, module);
    if (std::find(known.begin(), known.end(), part) == known.end()) known.push_back(std::move(part));
  }

 private:
  StepDetail& detail_;
  const OpTrace& trace_;
  std::set<std::pair<std::uint32_t, std::uint16_t>> seen_;
};

void add_spans(StepDetail& detail, const StepProgram& program, std::span<const KernelTime> times,
               const Timeline& timeline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> kinds;  // launch and op → kind
  Parts parts(detail, *program.trace);
  std::size_t i = 0;
  for (const Action& action : program.steady_step()) {
    if (action.kind != Action::Kind::launch) continue;
    LaunchSpan span{.stream = timeline.kernels[i].stream,
                    .issued = timeline.kernels[i].issued,
                    .start = timeline.kernels[i].start,
                    .end = timeline.kernels[i].end};
    std::uint32_t op = Action::kNoCall;
    std::uint16_t module = 0;
    if (action.call != Action::kNoCall) {
      const Call& call = program.trace->calls[action.call];
      op = call.op;
      span.phase = call.phase;
      span.layer = call.layer;
      module = call.module;
    }
    const auto [entry, fresh] = kinds.try_emplace({action.index, op}, static_cast<std::uint32_t>(detail.kinds.size()));
    if (fresh) {
      const KernelLaunch& launch = program.launches[action.index];
      detail.kinds.push_back(
          {launch.name, op == Action::kNoCall ? "" : shape_of(program.trace->ops[op]), launch, times[i]});
    }
    span.kind = entry->second;
    parts.note(span.kind, module);
    detail.spans.push_back(span);
    ++i;
  }
}

void add_memory(StepDetail& detail, const StepProgram& program, const MemoryResult& run) {
  const StepRange steady = program.steps.back();
  std::size_t kernel = 0;
  std::uint32_t action = steady.begin;
  std::vector<std::size_t> behind;  // of each point, the kernel that follows it
  for (const MemorySample& sample : run.samples) {
    if (sample.action < action) continue;  // a micro-batch held once, run again
    for (; action < sample.action; ++action) kernel += program.actions[action].kind == Action::Kind::launch;
    const Seconds at = kernel < detail.spans.size() ? detail.spans[kernel].start : detail.step;
    detail.memory.push_back({at, sample.allocated, sample.reserved, sample.by_category});
    behind.push_back(kernel);
  }
  if (detail.copies.empty()) return;
  const auto first_at = [&](std::size_t launch) { return std::lower_bound(behind.begin(), behind.end(), launch); };
  for (const SpanCopy& copy : detail.copies)
    for (auto at = first_at(copy.begin); at != first_at(copy.end); ++at) {
      MemoryPoint point = detail.memory[static_cast<std::size_t>(at - behind.begin())];
      point.at += copy.shift;
      detail.memory.push_back(point);
    }
  std::stable_sort(detail.memory.begin(), detail.memory.end(),
                   [](const MemoryPoint& a, const MemoryPoint& b) { return a.at < b.at; });
}

/// Further runs of equal micro-batches, at even distances.
std::vector<SpanCopy> copies_of(const Timeline& timeline) {
  std::vector<SpanCopy> copies;
  const RepeatedLaunches& held = timeline.repeat.launches;
  if (held.times <= 1 || held.end == held.begin) return copies;
  std::size_t last = held.end - 1;
  while (last > held.begin && timeline.kernels[last].stream != 0) --last;
  const Seconds period = (timeline.repeat.gpu_end - timeline.kernels[last].end) / static_cast<double>(held.times - 1);
  for (std::int64_t run = 1; run < held.times; ++run)
    copies.push_back({static_cast<std::uint32_t>(held.begin), static_cast<std::uint32_t>(held.end),
                      static_cast<double>(run) * period});
  return copies;
}

}  // namespace

std::vector<std::int64_t> runs_of_spans(const StepDetail& detail) {
  std::vector<std::int64_t> runs(detail.spans.size() + 1, 0);  // changes first
  for (const SpanCopy& copy : detail.copies) ++runs[copy.begin], --runs[copy.end];
  std::int64_t now = 1;
  for (std::int64_t& one : runs) one = now += one;
  runs.pop_back();
  return runs;
}

std::vector<LaunchSpan> every_span(const StepDetail& detail) {
  std::vector<LaunchSpan> all = detail.spans;
  for (const SpanCopy& copy : detail.copies)
    for (std::uint32_t i = copy.begin; i < copy.end; ++i) {
      LaunchSpan span = detail.spans[i];
      span.issued += copy.shift, span.start += copy.shift, span.end += copy.shift;
      all.push_back(span);
    }
  if (!detail.copies.empty())
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  return all;
}

StepDetail step_detail(const StepRun& held, bool with_memory) {
  const StepRun& run = held.every_token();
  StepDetail detail;
  detail.step = run.timeline().step;
  add_spans(detail, run.program(), run.times(), run.timeline());
  detail.copies = run.pipeline() != nullptr ? run.pipeline()->timeline().further : copies_of(run.timeline());
  detail.streams = run.trace().streams;
  if (detail.streams.empty()) detail.streams.emplace_back("kernels");
  if (with_memory && !run.program().steps.empty() && knows_allocations(run.scenario()))
    add_memory(detail, run.program(), run.memory_run());
  return detail;
}

}  // namespace ridgeline
