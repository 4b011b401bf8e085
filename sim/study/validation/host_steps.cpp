#include "sim/study/validation/host_steps.h"

#include <nlohmann/json.hpp>

#include "sim/study/validation/measured_ops.h"

namespace ridgeline {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, kHostPhases> kNames{"forward", "backward", "clipping", "optimizer", "zero_grad"};
/// The machine of these rows against those whose scales the costs are told with, chosen by hand: with 1.18, forward and
/// backward costs share the work of 13 host-bound steps beside the first H200 as generations beside it do, which have
/// forward passes alone; with 1.055 those steps and five beside an H100 ask for the scales that the loop of
/// tools/host_scale.py has there (1.12; 2.07 and 2.26). `ridgeline_fit --check host_scale` fails where they do not.
constexpr double kSlowerThanItsLoop = 1.055, kSlowerBackward = 1.18;
constexpr int kQuietSteps = 5;        // fewer say what neighbours did
constexpr double kLeastPhase = 1e-5;  // a phase that does nothing takes a microsecond

Scenario scenario_of(const json& row) {
  json training{
      {"micro_batch", row["batch"]},   {"sequence_length", row["tokens"]},
      {"precision", row["precision"]}, {"tf32", false},
      {"attention", row["attention"]}, {"optimizer", {{"name", "adamw"}, {"implementation", row["optimizer"]}}}};
  if (row["clip"].get<double>() > 0.0) training["gradient_clipping"] = row["clip"];
  ScenarioSource source;
  source.text =
      json{{"hardware", "nvidia-h200-sxm-141gb"}, {"host", "default"}, {"model", row["config"]}, {"training", training}}
          .dump();
  source.text_name = row["name"];
  source.overrides.push_back({"host.scale", std::to_string(kSlowerThanItsLoop * row["scale"].get<double>()), ""});
  source.overrides.push_back({"host.parts.backward", std::to_string(kSlowerBackward), ""});
  return load_scenario(source);
}

}  // namespace

std::string_view name_of(HostPhase phase) { return kNames.at(static_cast<std::size_t>(phase)); }

std::vector<HostStep> load_host_steps(const MeasuredFile& file) {
  std::vector<HostStep> result;
  for_each_row(file, [&](const json& row) {
    HostStep step{.name = row["name"],
                  .scenario = scenario_of(row),
                  .measured = {},
                  .scale = row["scale"],
                  .quiet = row["quiet"].get<int>() >= kQuietSteps,
                  .held_out = false,
                  .network = hash_of(row["class"].get<std::string>()),
                  .row = hash_of(row.dump())};
    step.held_out = held_out_by_shape(step.network);
    for (std::size_t i = 0; i < kHostPhases; ++i) {
      const double seconds = row["host_ms"][std::string(kNames[i])].get<double>() * 1e-3;
      if (seconds > kLeastPhase) step.measured[i] = Seconds{seconds};
    }
    result.push_back(std::move(step));
  });
  return result;
}

std::vector<HostPhase> phases_of(const IssuePlan& plan) {
  std::vector<HostPhase> result;
  result.reserve(plan.groups.size());
  HostPhase now = HostPhase::forward;
  for (const HostGroup& group : plan.groups) {
    switch (group.host_class) {
      case HostClass::backward_call: now = HostPhase::backward; break;
      case HostClass::unscale_fixed:
      case HostClass::per_parameter_unscale:
      case HostClass::clip_fixed:
      case HostClass::per_parameter_clip: now = HostPhase::clipping; break;
      case HostClass::foreach_fixed:
      case HostClass::fused_fixed:
      case HostClass::per_parameter_foreach:
      case HostClass::per_parameter_fused:
      case HostClass::per_parameter_for_loop: now = HostPhase::optimizer; break;
      case HostClass::per_parameter_zero_grad: now = HostPhase::zero_grad; break;
      default: break;
    }
    result.push_back(now);
  }
  return result;
}

std::array<Seconds, kHostPhases> host_time_by_phase(const IssuePlan& plan) {
  std::array<Seconds, kHostPhases> result;
  const std::vector<HostPhase> phases = phases_of(plan);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const HostGroup& group = plan.groups[i];
    const double seconds = static_cast<double>(group.launches) * group.share + group.rest;
    result[static_cast<std::size_t>(phases[i])] += Seconds{seconds};
  }
  return result;
}

}  // namespace ridgeline
