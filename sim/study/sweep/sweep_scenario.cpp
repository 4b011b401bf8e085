#include "sim/study/sweep/sweep_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/config/data_folder.h"
#include "sim/config/files_read.h"
#include "sim/hierarchy/make_engine.h"
#include "sim/units/parse.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

std::string hardware_of(const Sweep& sweep, const std::vector<config::Override>& overrides) {
  std::string name;
  if (const config::Node* node = sweep.scenario.find("hardware")) name = node->scalar;
  for (const config::Override& change : overrides)
    if (change.key == "hardware") name = change.value;
  return name;
}

/// "4.8 TB/s" times 2 is "9.6 TB/s", from the rows of a hardware sheet.
config::Override multiplied(const config::Override& change, double factor, const std::string& hardware,
                            Remembered<HardwareSheet>& sheets) {
  const auto sheet = sheets.get(hardware, [&] { return load_hardware_sheet(hardware); });
  const std::string key = change.key.substr(std::string_view("hardware.").size());
  const auto row =
      std::find_if(sheet->values.begin(), sheet->values.end(), [&](const SheetRow& r) { return r.key == key; });
  const config::Origin origin{std::make_shared<const std::string>(change.origin), 0, 0};
  if (row == sheet->values.end())
    throw config::ConfigError(origin, change.key, fmt::format("{} does not say how much this is", hardware));
  const auto number = parse_measure(row->value);
  if (!number)
    throw config::ConfigError(origin, change.key, fmt::format("is no number in {}: {}", hardware, row->value));
  config::Override result = change;
  result.value = fmt::format("{}{}{}", number->value * factor, row->unit.empty() ? "" : " ", row->unit);
  return result;
}

/// Names a description: hardware, host, model and the like, alone or in a case.
bool names_a_file(const AxisValue& value) {
  return std::any_of(value.overrides.begin(), value.overrides.end(),
                     [](const config::Override& change) { return change.key.find('.') == std::string::npos; });
}

}  // namespace

SharedScenario scenario_of(const Sweep& sweep, const std::vector<std::size_t>& values, Descriptions& descriptions,
                           Remembered<HardwareSheet>& sheets) {
  std::vector<config::Override> overrides;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (const config::Override& change : sweep.axes[i].values[values[i]].overrides) overrides.push_back(change);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const AxisValue& value = sweep.axes[i].values[values[i]];
    if (value.factor <= 0) continue;
    const std::string hardware = hardware_of(sweep, overrides);
    for (config::Override& change : overrides)
      if (change.key == value.overrides.front().key && change.value.empty())
        change = multiplied(change, value.factor, hardware, sheets);
  }
  // A whole description first, then changes of its parts, whatever the order of the axes.
  std::stable_sort(overrides.begin(), overrides.end(), [](const config::Override& a, const config::Override& b) {
    return std::count(a.key.begin(), a.key.end(), '.') < std::count(b.key.begin(), b.key.end(), '.');
  });
  return load_shared_scenario(sweep.scenario, overrides, descriptions);
}

void check_axes(const Sweep& sweep) {
  Descriptions descriptions;
  Remembered<HardwareSheet> sheets;
  std::vector<std::size_t> first(sweep.axes.size(), 0);
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis) {
    std::optional<std::string> mistake;
    const std::size_t values = sweep.axes[axis].values.size();
    for (std::size_t i = 0; i < values; ++i) {
      std::vector<std::size_t> chosen = first;
      chosen[axis] = i;
      try {
        scenario_of(sweep, chosen, descriptions, sheets);
        mistake.reset();
        first[axis] = i;  // what the following axes are tried with
        break;
      } catch (const UserError& error) {
        if (!mistake) mistake = error.what();
      }
    }
    if (mistake) throw UserError(*mistake);
  }
  const SharedScenario any = scenario_of(sweep, first, descriptions, sheets);
  try {
    make_engine(sweep.engine, *any.gpu);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", sweep.file, error.what()));
  }
}

std::vector<std::string> files_of_sweep(const Sweep& sweep) {
  const config::FilesRead files;
  config::FilesRead::note(config::data_folder("hw") / "residuals.json");
  Descriptions descriptions;
  Remembered<HardwareSheet> sheets;
  const std::vector<std::size_t> first(sweep.axes.size(), 0);
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis)
    for (std::size_t i = 0; i < sweep.axes[axis].values.size(); ++i) {
      if (i > 0 && !names_a_file(sweep.axes[axis].values[i])) continue;
      std::vector<std::size_t> chosen = first;
      chosen[axis] = i;
      try {
        (void)scenario_of(sweep, chosen, descriptions, sheets);
      } catch (const UserError&) {
        continue;  // its points say so
      }
    }
  return files.paths();
}

}  // namespace ridgeline
