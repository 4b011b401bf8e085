// The numbers of a hardware file as a search changes them: which way is better, and how a changed one is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/override.h"
#include "sim/hardware/keys.h"

namespace ridgeline::invariants {

struct ChipKey {
  std::string key;  ///< below `hardware`: "dram.bandwidth"
  double value = 0;
  std::string unit;
  Better better = Better::neither;
  bool whole = false;  ///< counts
  bool flag = false;   ///< value is 0 or 1
};

/// Every number and flag of a hardware file with its measured section over it; directions are those of hardware_keys().
/// What no law of time reads (memory alone, price) is better neither way here.
std::vector<ChipKey> keys_of(const std::string& hardware);

/// `key` times `factor` (counts to the nearest other whole number; flags become true where factor > 1) as --set takes
/// it.
config::Override changed(const ChipKey& key, double factor);
/// `factor` (above 1) times as good.
config::Override improved(const ChipKey& key, double factor);
/// The same with counts at the nearest whole number, which may be that of the chip: a place of an axis.
config::Override on_axis(const ChipKey& key, double factor);

/// What is twice as fast by its unit: rates, clocks and powers twice as much, seconds half; cycles, shares and energies
/// stay.
std::vector<config::Override> twice_as_fast(const std::string& hardware);

/// A hardware file with the numbers of `hardware` changed by `overrides` (keys below `hardware`).
std::string written_file(const std::string& hardware, const std::vector<config::Override>& overrides);

/// "dram" of "dram.bandwidth".
std::string_view section_of(std::string_view key);

}  // namespace ridgeline::invariants
