#include "sim/answer/step_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "sim/answer/profile_sum.h"
#include "sim/kernels/assumed_kernels.h"
#include "sim/program/launched_kernels.h"
#include "sim/scenario/stack_notes.h"

namespace ridgeline {
namespace {

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
  std::unordered_map<KernelGroup*, const Op*> last_of_tokens;
  double busy = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const double runs = kernels[i].times;
    // With the clock the step leaves; of what runs beside the default stream, what it adds to the step.
    const KernelSpan& span = timeline.kernels[i];
    const Seconds t = runs * (span.stream == 0 ? span.taken : span.exposed);
    busy += t.value();
    const KernelLaunch& launch = *kernels[i].launch;
    p.time_by_class[static_cast<std::size_t>(launch.time_class)] += t;
    p.time_by_phase[static_cast<std::size_t>(kernels[i].phase)] += t;
    const auto note_module = [&](std::uint16_t number, double share) {
      ModuleUse& module = p.modules[number];
      module.time_by_phase[static_cast<std::size_t>(kernels[i].phase)] += share * t;
      module.kernels += std::llround(share * runs);
    };
    if (p.modules.empty()) {
    } else if (kernels[i].token == nullptr) {
      note_module(kernels[i].module, 1.0);
    } else {
      for (const TokenLaunch::Share& one : *kernels[i].token->modules) note_module(one.module, one.share);
    }
    const Seconds held = runs * timeline.kernels[i].held;
    p.limited_by[static_cast<std::size_t>(Limiter::power)] += held;
    p.limited_by[static_cast<std::size_t>(times[i].limiter)] += t - held;
    const std::uint32_t of_group = kernels[i].token != nullptr ? kernels[i].token->group : kernels[i].op_index;
    Known& its = known[&launch];
    if (its.group == nullptr || its.op_index != of_group) its = {of_group, &groups[{launch.name, of_group}]};
    KernelGroup& group = *its.group;
    if (group.count == 0) {
      group.name = launch.name;
      group.shape = kernels[i].op_index == Action::kNoCall ? "" : shape_of(*kernels[i].op);
      group.op = kernels[i].op_index == Action::kNoCall ? "" : name_of(*kernels[i].op);
      group.kernel_class = classes.of(*kernels[i].op, launch.time_class);
      group.limiter = held > kHeldByPower * t ? Limiter::power : times[i].limiter;
      group.on_tensor_cores = launch.on_tensor_cores();
    }
    group.flops += runs * launch.flops;
    group.read_bytes += runs * launch.read_bytes();
    group.written_bytes += runs * launch.written_bytes();
    group.dram_bytes += runs * (times[i].dram_read_bytes + times[i].dram_write_bytes);
    group.l2_bytes += runs * times[i].l2_bytes;
    group.l2_hit_bytes += runs * times[i].l2_bytes * times[i].l2_hit_rate;
    group.occupied_s += t.value() * times[i].occupancy;
    if (classes.writes_scores(*kernels[i].op)) group.score_bytes += runs * launch.written_bytes();
    if (times[i].profile) profiles[{launch.name, of_group}].add(*times[i].profile, t, runs);
    group.count += static_cast<std::int64_t>(runs);
    group.time += t;
    if (of_group != kernels[i].op_index) last_of_tokens[&group] = kernels[i].op;
  }
  for (const auto& [group, op] : last_of_tokens) group->shape = fmt::format("{} to {}", group->shape, shape_of(*op));
  p.idle = Seconds{std::max(0.0, p.step.time.value() - busy)};
  p.limited_by[static_cast<std::size_t>(Limiter::launch)] += p.idle;
  for (const auto& [key, sum] : profiles) groups[key].profile = std::make_shared<const KernelProfile>(sum.mean());
  for (auto& [key, group] : groups) p.kernels.push_back(std::move(group));
  std::sort(p.kernels.begin(), p.kernels.end(),
            [](const KernelGroup& a, const KernelGroup& b) { return a.time > b.time; });
}

/// The note of an operation without a rule, and its share of the GPU's time.
void note_approximated(Prediction& p, const Op& op) {
  ApproximatedOp entry;
  entry.name = name_of(op);
  const std::string shape = shape_of(op);
  entry.note = fmt::format("{} {} has no rule on this GPU: costed by its bytes", entry.name, shape);
  for (const KernelGroup& group : p.kernels) {
    if (group.op != entry.name || group.shape != shape) continue;
    entry.launches += group.count;
    entry.time += group.time;
  }
  p.notes.push_back(entry.note);
  p.approximated.push_back(std::move(entry));
}

}  // namespace

void explain_step(Prediction& p, const StepProgram& program, std::span<const KernelTime> times,
                  const Timeline& timeline, const Gpu& gpu) {
  const OpTrace& trace = *program.trace;
  p.step.utilization = utilization(program, times, timeline, gpu);
  p.step.latency = exposed_latency(program, times, timeline, gpu);
  const std::vector<LaunchedKernel> kernels = launched_kernels(program);
  p.modules = modules_of(trace);
  explain_time(p, kernels, times, timeline, KernelClasses(trace));
  add_up_children(p.modules);
  p.notes = trace.notes;
  for (const std::string& note : assumed_kernels(gpu)) p.notes.push_back(note);
  for (const std::uint32_t op : program.approximated) note_approximated(p, trace.ops[op]);
  if (const auto assumed = kernels_of_another(gpu.architecture); !assumed.empty()) p.notes.emplace_back(assumed);
  for (std::string& note : notes_of_units(trace, gpu)) p.notes.push_back(std::move(note));
}

}  // namespace ridgeline
