// Random questions: a network, how it is trained and on what, as changes that --set takes.
#pragma once

#include <string>
#include <vector>

#include "sim/config/override.h"
#include "sim/scenario/scenario.h"
#include "tests/invariants/draw.h"

namespace ridgeline::invariants {

using Overrides = std::vector<config::Override>;

struct Question {
  std::string hardware;  ///< a name of hw/; empty where the settings name a cluster
  std::string engine = "analytic";
  Overrides settings;  ///< of the scenario, without the hardware
  Overrides chip;      ///< changes of the hardware

  [[nodiscard]] Scenario load() const { return load_with({}); }
  /// With further changes of the chip, after its own.
  [[nodiscard]] Scenario load_with(const Overrides& more) const;
  /// On another description of hardware, without the changes of the chip.
  [[nodiscard]] Scenario load_on(const std::string& file) const;
  /// The command that repeats it.
  [[nodiscard]] std::string command(const Overrides& more = {}) const;
};

/// "analytic" mostly; where `asked` is not empty, that.
std::string random_engine(Draw& draw, const std::string& asked, bool with_roofline);

/// A network and settings that people use, small enough to be predicted in milliseconds.
Overrides common_settings(Draw& draw, const std::string& engine);
/// Anything that a scenario may say, on a GPU that it may say it of: few questions are refused.
Overrides any_settings(Draw& draw, const std::string& engine, const std::string& hardware);
/// A shipped network with fewer layers; `index` counts through them.
Overrides shipped_network(std::size_t index, std::int64_t layers);
std::size_t shipped_networks();

/// One to `most` numbers of a chip changed by factors between 1/`widest` and `widest`; clocks go together. Changes that
/// the loader refuses are drawn again.
Overrides random_chip(Draw& draw, const std::string& hardware, int most, double widest);

}  // namespace ridgeline::invariants
