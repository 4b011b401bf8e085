// Mistakes of a description, collected and told at once: one line each, in the order of the file.
#pragma once

#include <utility>
#include <vector>

#include "sim/config/config_error.h"

namespace ridgeline::config {

class Problems {
 public:
  /// Runs `step`; remembers the ConfigError that it throws. True when there was none.
  template <typename Step>
  bool attempt(Step&& step) {
    try {
      std::forward<Step>(step)();
      return true;
    } catch (const ConfigError& error) {
      add(error);
      return false;
    }
  }
  void add(ConfigError error) { all_.push_back(std::move(error)); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// Throws them as one ConfigError, if there are any.
  void raise() const;

 private:
  std::vector<ConfigError> all_;
};

}  // namespace ridgeline::config
