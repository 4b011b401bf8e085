#include "sim/config/problems.h"

#include <algorithm>
#include <tuple>

namespace ridgeline::config {

void Problems::raise() const {
  if (all_.empty()) return;
  std::vector<ConfigError> sorted = all_;
  const auto place = [](const ConfigError& e) {
    return std::tuple(e.origin().name ? *e.origin().name : std::string(), e.origin().line, e.origin().column);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const ConfigError& a, const ConfigError& b) { return place(a) < place(b); });
  throw ConfigError(sorted);
}

}  // namespace ridgeline::config
