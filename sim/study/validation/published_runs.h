// What published steps ran beyond what their rows say: measurements/public/runs.yaml, by source and version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/override.h"

namespace ridgeline {

class PublishedRuns {
 public:
  /// Throws config::ConfigError for an unknown key.
  explicit PublishedRuns(const std::string& file);

  struct Run {
    bool comparable = true;                   ///< its source says everything that decides the time
    std::vector<config::Override> overrides;  ///< of the row's scenario
  };
  /// All entries whose patterns (a * stands for anything) match this id, in order.
  [[nodiscard]] Run run_of(std::string_view id) const;

 private:
  struct Entry {
    std::vector<std::string> patterns;
    bool comparable = true;
    std::vector<config::Override> overrides;
  };
  std::vector<Entry> entries_;
};

/// Whether `text` reads as `pattern`, in which a * stands for any characters, none too.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace ridgeline
