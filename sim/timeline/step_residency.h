// What each launch of the steady step finds in the L2. Programs that touch the same bytes in the same order find the
// same, whatever the speed of the chip: so a sweep over clocks and bandwidths works it out once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/step_program.h"
#include "sim/timeline/known_stretches.h"
#include "sim/timeline/launch_repeats.h"
#include "sim/timeline/list_operands.h"

namespace ridgeline {

/// Entries are the launches of StepProgram::steady_step(), in order.
struct StepResidency {
  std::vector<std::uint64_t> packed;  ///< of each launch: equal for equal shares
  std::vector<double> shares;         ///< that hit, to 1/32, of all accesses of all launches: reads, then writes
  std::vector<std::uint32_t> begin;   ///< of each launch in `shares`, and their end
  [[nodiscard]] std::span<const double> of(std::size_t launch) const {
    return std::span(shares).subspan(begin[launch], begin[launch + 1] - begin[launch]);
  }
  /// What launches [from, until) of a stretch find, behind those that are here. `begin` has no end yet.
  void append(const StretchResidency& stretch, std::size_t from, std::size_t until);
  [[nodiscard]] std::uint64_t bytes() const {
    return packed.size() * sizeof packed[0] + shares.size() * sizeof shares[0] + begin.size() * sizeof begin[0];
  }
};

/// Rounds the shares that a launch finds to 1/32; a number for all of them. More than ten are folded.
std::uint64_t quantise(std::vector<double>& shares);

/// Hashes of what each of a program's launches touches, beside StepProgram::launches.
std::vector<std::uint64_t> accesses_of_launches(const StepProgram& program);

/// Of a program on a chip with this L2. `known`: stretches of launches that were seen on such an L2 before.
StepResidency residency_of_step(const StepProgram& program, const L2Spec& l2);
/// What is known of the program already.
struct ResidencyInputs {
  std::span<const std::uint64_t> accesses;  ///< accesses_of_launches()
  const ListOperands& lists;                ///< of its trace
  const LaunchRepeats* repeats = nullptr;   ///< repeats_of_launches(); null: not known
};
StepResidency residency_of_step(const StepProgram& program, const L2Spec& l2, const ResidencyInputs& inputs,
                                KnownStretches& known);

/// Two of one op trace that are equal here have the same StepResidency.
struct ResidencyKey {
  std::uint64_t accesses = 0;                     ///< hash of what the launches touch, in their order
  double capacity = 0.0, full = 0.0, none = 0.0;  ///< of the L2 and its ramp
  bool operator==(const ResidencyKey&) const = default;
};
/// `accesses`: accesses_of_launches(), `sequence`: sequence_of_launches() of the program.
ResidencyKey residency_key(std::span<const std::uint64_t> accesses, std::uint64_t sequence, const L2Spec& l2);

/// A hash of which of its launches a program makes in which order, up to the end of its steady step: programs of one
/// layout share it.
std::uint64_t sequence_of_launches(const StepProgram& program);

}  // namespace ridgeline
