#include "sim/scenario/said_in_place.h"

#include <algorithm>
#include <string_view>

#include "sim/config/value.h"

namespace ridgeline {

void say_in_place(const Scenario& scenario, const UserError& mistake) {
  const std::string_view said = mistake.what();
  const std::size_t colon = said.find(": ");
  if (!scenario.asked || colon == std::string_view::npos) throw mistake;
  config::Value key(scenario.asked->tree);
  for (std::string_view left = said.substr(0, colon); !left.empty();) {
    const std::size_t dot = std::min(left.find('.'), left.size());
    if (!key.is_mapping()) throw mistake;
    key = key[left.substr(0, dot)];
    if (!key.exists()) throw mistake;
    left.remove_prefix(std::min(dot + 1, left.size()));
  }
  key.fail(said.substr(colon + 2));
}

}  // namespace ridgeline
