#include "sim/report/json/prediction_json.h"

#include <nlohmann/json.hpp>

#include "sim/report/json/kernel_json.h"
#include "sim/report/json/sensitivity_json.h"
#include "sim/report/text/module_text.h"
#include "sim/report/text/names.h"

namespace ridgeline {

using nlohmann::ordered_json;

namespace {

constexpr int kModuleLevels = 3;  // "layers.7.attention"

ordered_json step_json(const StepPrediction& step) {
  return {{"time_s", step.time.value()},
          {"low_s", step.low.value()},
          {"high_s", step.high.value()},
          {"host_time_s", step.host_time.value()},
          {"gpu_busy_s", step.gpu_busy.value()},
          {"kernel_count", step.kernel_count},
          {"samples_per_s", step.samples_per_s},
          {"tokens_per_s", step.tokens_per_s},
          {"mfu", step.mfu},
          {"sm_utilization", step.sm_utilization},
          {"kernel_active_fraction", step.kernel_active_fraction},
          {"validated", step.validated},
          {"clock_mhz", step.clock.value() * 1e-6},
          {"power_w", step.power.value()},
          {"energy_j", step.energy.energy.value()},
          {"energy_low_j", step.energy.low.value()},
          {"energy_high_j", step.energy.high.value()}};
}

ordered_json host_json(const StepPrediction& step) {
  const HostShare& host = step.host;
  ordered_json out{{"name", host.name},
                   {"scale", host.scale},
                   {"known", host.known},
                   {"time_s", step.host_time.value()},
                   {"exposed_s", host.exposed.value()},
                   {"share", step.time.value() > 0.0 ? ratio(host.exposed, step.time) : 0.0},
                   {"tipping_scale", host.tipping}};
  if (!host.known) out["scales_seen"] = {host.least_seen, host.most_seen};
  return out;
}

ordered_json utilization_json(const Utilization& u) {
  return {{"kernel_active", u.kernel_active}, {"sm", u.sm}, {"tensor", u.tensor}, {"dram", u.dram}};
}

ordered_json latency_json(const ExposedLatency& l) {
  return {{"math_s", l.math.value()},
          {"memory_s", l.memory.value()},
          {"overlapped_s", l.overlapped.value()},
          {"in_kernels_s", l.in_kernels.value()},
          {"gaps_s", l.gaps.value()},
          {"communication_s", l.communication.value()},
          {"host_exposed_s", l.host_exposed.value()},
          {"host_hidden_s", l.host_hidden.value()}};
}

ordered_json memory_json(const MemoryPrediction& memory) {
  ordered_json breakdown;
  for (std::size_t i = 0; i < kCategories; ++i) breakdown[std::string(kCategoryNames[i])] = memory.at_peak[i];
  breakdown["cached_unused"] = memory.cached_unused;
  ordered_json out{
      {"peak_allocated_bytes", memory.peak_allocated},
      {"peak_reserved_bytes", memory.peak_reserved},
      {"context_bytes", memory.context},
      {"device_used_bytes", memory.device_used},
      {"capacity_bytes", memory.capacity},
      {"fits", memory.fits},
      {"verdict", verdict(memory)},
      {"needed_bytes", memory.needed},
      {"needed_low_bytes", memory.needed_low},
      {"needed_high_bytes", memory.needed_high},
      {"breakdown", std::move(breakdown)},
      {"peak", {{"op", memory.peak_op}, {"phase", phase_name(memory.peak_phase)}, {"layer", memory.peak_layer}}}};
  if (const auto& oom = memory.out_of_memory)
    out["out_of_memory"] = {{"op", oom->op},
                            {"phase", phase_name(oom->phase)},
                            {"layer", oom->layer},
                            {"category", kCategoryNames[static_cast<std::size_t>(oom->category)]},
                            {"requested_bytes", oom->requested_bytes},
                            {"missing_bytes", oom->missing_bytes},
                            {"needed_bytes", memory.needed},
                            {"would_fit", memory.would_fit}};
  return out;
}

/// Peaks that a recording counted; nothing of what they are made of.
ordered_json recorded_memory_json(const MemoryPrediction& m) {
  return {{"peak_allocated_bytes", m.peak_allocated},
          {"peak_reserved_bytes", m.peak_reserved},
          {"context_bytes", m.context},
          {"device_used_bytes", m.device_used},
          {"capacity_bytes", m.capacity},
          {"fits", m.fits},
          {"verdict", verdict(m)}};
}

ordered_json parallel_json(const ParallelPrediction& parallel) {
  ordered_json uses = ordered_json::array(), ranks = ordered_json::array();
  for (const CommunicationUse& use : parallel.communication)
    uses.push_back({{"kind", name_of(use.kind)},
                    {"group", name_of(use.group)},
                    {"count", use.count},
                    {"bytes", use.bytes},
                    {"time_s", use.time.value()},
                    {"exposed_s", use.exposed.value()}});
  for (const RankClass& one : parallel.ranks) {
    ranks.push_back({{"class", one.name},
                     {"ranks", one.ranks},
                     {"step_s", one.step.value()},
                     {"memory",
                      {{"peak_allocated_bytes", one.memory.peak_allocated},
                       {"peak_reserved_bytes", one.memory.peak_reserved},
                       {"communicator_bytes", one.communicator_bytes},
                       {"device_used_bytes", one.memory.device_used},
                       {"fits", one.memory.fits}}}});
    if (parallel.ranks.size() == 1) continue;
    ranks.back()["busy_s"] = one.busy.value();
    ranks.back()["bubble_s"] = one.bubble.value();
  }
  return {{"gpus", parallel.gpus},
          {"exposed_communication_s", parallel.exposed.value()},
          {"hidden_communication_s", parallel.hidden.value()},
          {"bubble_s", parallel.bubble.value()},
          {"efficiency", parallel.efficiency},
          {"limit", parallel.limit},
          {"slowest_board_energy", parallel.board},
          {"communication", std::move(uses)},
          {"ranks", std::move(ranks)}};
}

}  // namespace

ordered_json prediction_json(const Prediction& prediction) {
  ordered_json by_class, by_phase, limited_by, advice = ordered_json::array(), kernels = ordered_json::array();
  for (std::size_t i = 0; i < kTimeClasses; ++i)
    by_class[std::string(kTimeClassNames[i])] = prediction.time_by_class[i].value();
  by_class["idle"] = prediction.idle.value();
  for (std::size_t i = 0; i < kPhases; ++i) by_phase[std::string(kPhaseNames[i])] = prediction.time_by_phase[i].value();
  for (std::size_t i = 0; i < kLimiters; ++i)
    limited_by[std::string(kLimiterNames[i])] = prediction.limited_by[i].value();
  for (const Advice& item : prediction.advice)
    advice.push_back({{"change", item.change},
                      {"time_saved_s", item.time_saved.value()},
                      {"memory_saved_bytes", item.memory_saved_bytes},
                      {"why", item.why}});
  for (const KernelGroup& group : prediction.kernels)
    kernels.push_back({{"name", group.name},
                       {"shape", group.shape},
                       {"count", group.count},
                       {"time_s", group.time.value()},
                       {"limiter", name_of(group.limiter)},
                       {"op", group.op},
                       {"class", name_of(group.kernel_class)},
                       {"flops", group.flops},
                       {"read_bytes", group.read_bytes},
                       {"written_bytes", group.written_bytes},
                       {"dram_bytes", group.dram_bytes},
                       {"l2_hit_rate", group.l2_bytes > 0 ? group.l2_hit_bytes / group.l2_bytes : 0.0},
                       {"occupancy", group.time.value() > 0 ? group.occupied_s / group.time.value() : 0.0},
                       {"tensor_cores", group.on_tensor_cores}});
  for (std::size_t i = 0; i < prediction.kernels.size(); ++i)
    if (const auto& profile = prediction.kernels[i].profile) kernels[i]["profile"] = profile_json(*profile);
  ordered_json out{
      {"scenario", prediction.scenario},
      {"hardware", prediction.hardware},
      {"engine", prediction.engine},
      {"step", step_json(prediction.step)},
      {"host", host_json(prediction.step)},
      {"utilization", utilization_json(prediction.step.utilization)},
      {"exposed_latency", latency_json(prediction.step.latency)},
      {"memory", prediction.memory.source == MemorySource::simulated ? memory_json(prediction.memory) : ordered_json()},
      {"time_by_class", std::move(by_class)},
      {"time_by_phase", std::move(by_phase)},
      {"modules", module_json(prediction.modules, kModuleLevels, false)},
      {"limited_by", std::move(limited_by)},
      {"advice", std::move(advice)},
      {"kernels", std::move(kernels)},
      {"notes", prediction.notes}};
  if (prediction.memory.source == MemorySource::as_recorded)
    out["memory_as_recorded"] = recorded_memory_json(prediction.memory);
  if (const auto& generation = prediction.generation)
    out["generation"] = {{"first_token_s", generation->first_token.value()},
                         {"per_token_s", generation->per_token.value()},
                         {"cache_bytes", generation->cache_bytes}};
  if (prediction.parallel) out["parallel"] = parallel_json(*prediction.parallel);
  if (prediction.sensitivity) out["sensitivity"] = sensitivity_json(*prediction.sensitivity, "time_saved_s", 1.0);
  return out;
}

}  // namespace ridgeline
