// Inside of the API: a request taken apart, and answers as text.
#pragma once

#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/serve/api.h"

namespace ridgeline::serve {

struct Api::Asked {
  const Request& request;
  Target target;
  std::stop_token stop;
  const OnProgress& progress;

  /// Throws UserError unless the parameters are among `names` and those that every question takes.
  void takes(std::vector<std::string> names) const {
    names.insert(names.end(), {"client", "sequence", "token"});
    target.refuse_others(names);
  }
  [[nodiscard]] std::string engine() const {
    const std::string engine = target.get("engine");
    return engine.empty() ? "analytic" : engine;
  }
};

inline std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

inline Reply json_reply(const nlohmann::ordered_json& json) { return {.body = text_of(json)}; }

/// A scenario in YAML or JSON (empty: all of it in `sets`), and what is changed in it: "KEY=VALUE".
ScenarioSource source_of(const std::string& text, const std::vector<std::string>& sets, bool datasheet);

/// Answers about what is shipped: hardware, clusters, hosts, software, models, exercises, schema, memory.
std::optional<Reply> library_reply(const Target& target);

}  // namespace ridgeline::serve
