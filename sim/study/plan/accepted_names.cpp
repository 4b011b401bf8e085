#include "sim/study/plan/accepted_names.h"

#include "sim/config/asked.h"
#include "sim/units/user_error.h"

namespace ridgeline {

std::vector<std::string> accepted_names(const config::Node& tree, std::vector<config::Override> changes,
                                        std::string_view key, Descriptions& descriptions) {
  changes.push_back({std::string(key), "'?'", "plan"});  // what no choice has
  const config::AskedOf asked;
  try {
    (void)load_shared_scenario(tree, changes, descriptions);
  } catch (const UserError&) {  // that is what it was asked for
    const auto found = asked.notes().find(std::string(key));
    if (found != asked.notes().end())
      for (const config::Asked& one : found->second)
        if (one.kind == config::Asked::Kind::choice) return one.names;
  }
  return {};
}

}  // namespace ridgeline
