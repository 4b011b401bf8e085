// What a training step costs the host, by phase: networks so small that the GPU always waits (files of kind
// "host-steps").
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/study/validation/measured_files.h"
#include "sim/timeline/issue_plan.h"
#include "sim/units/quantity.h"

namespace ridgeline {

/// Phases of a step as its script runs them.
enum class HostPhase : std::uint8_t { forward, backward, clipping, optimizer, zero_grad, count_ };
inline constexpr std::size_t kHostPhases = static_cast<std::size_t>(HostPhase::count_);
std::string_view name_of(HostPhase phase);

struct HostStep {
  std::string name;
  Scenario scenario;
  std::array<Seconds, kHostPhases> measured;  ///< zero: the step has no such phase
  double scale = 1.0;                         ///< of its host then
  bool quiet = false;                         ///< the host did nothing else then
  bool held_out = false;                      ///< no fit sees it
  std::uint64_t network = 0, row = 0;         ///< hash of the network's class; of the line
};

/// In the order of the file. Throws UserError for a network that cannot be described.
std::vector<HostStep> load_host_steps(const MeasuredFile& file);

/// The phase that each group of a plan belongs to.
std::vector<HostPhase> phases_of(const IssuePlan& plan);
/// Seconds of host work by phase.
std::array<Seconds, kHostPhases> host_time_by_phase(const IssuePlan& plan);

}  // namespace ridgeline
