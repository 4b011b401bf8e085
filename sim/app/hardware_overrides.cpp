#include "sim/app/hardware_overrides.h"

namespace ridgeline::app {

std::vector<config::Override> hardware_overrides(std::span<const std::string> sets) {
  constexpr std::string_view kPrefix = "hardware.";
  std::vector<config::Override> overrides;
  for (const std::string& text : sets) {
    config::Override change = config::parse_override(text);
    change.origin = "--set " + text;
    if (change.key.starts_with(kPrefix)) change.key = change.key.substr(kPrefix.size());
    overrides.push_back(std::move(change));
  }
  return overrides;
}

}  // namespace ridgeline::app
