#include "sim/report/json/sensitivity_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "sim/report/text/sensitivity_text.h"

namespace ridgeline {

nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity, const char* key, double scale) {
  nlohmann::ordered_json out;
  for (const Resource resource : kResources)
    out[std::string(name_of(resource))] = {{key, scale * sensitivity.saved_by(resource).value()},
                                           {"percent", 100.0 * sensitivity.share(resource)}};
  for (const LinkGain& gain : sensitivity.links)
    out[std::string(name_of(gain.resource))] = {{key, scale * gain.saved.value()},
                                                {"percent", 100.0 * share_of(gain.saved, sensitivity)}};
  nlohmann::ordered_json keys = nlohmann::ordered_json::object();
  for (const KeyGain& gain : sensitivity.keys)
    keys[std::string(gain.key->key)] = {{key, scale * gain.saved.value()},
                                        {"percent", 100.0 * share_of(gain.saved, sensitivity)}};
  out["keys"] = std::move(keys);
  return out;
}

}  // namespace ridgeline
