#include "sim/report/sensitivity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/units/parse.h"

namespace ridgeline {

std::string sensitivity_table(const Sensitivity& sensitivity) {
  auto resources = kResources;
  std::stable_sort(resources.begin(), resources.end(),
                   [&](Resource a, Resource b) { return sensitivity.saved_by(a) > sensitivity.saved_by(b); });
  std::string out = "\n  10 % more of one resource saves\n";
  for (const Resource resource : resources) {
    const Seconds saved = sensitivity.saved_by(resource);
    const bool of_sms = resource == Resource::sm_count;
    out += fmt::format("  {:>9}  {:>5.2f} %   {}{}\n", saved.value() > 0.0 ? to_string(saved) : "0",
                       100.0 * sensitivity.share(resource), title_of(resource),
                       of_sms ? fmt::format(" ({} to {})", sensitivity.sms, sensitivity.more_sms) : "");
  }
  return out;
}

nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity, const char* key, double scale) {
  nlohmann::ordered_json out;
  for (const Resource resource : kResources)
    out[std::string(name_of(resource))] = {{key, scale * sensitivity.saved_by(resource).value()},
                                           {"percent", 100.0 * sensitivity.share(resource)}};
  return out;
}

}  // namespace ridgeline
