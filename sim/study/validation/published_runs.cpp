#include "sim/study/validation/published_runs.h"

#include <algorithm>

#include "sim/config/parse_yaml.h"
#include "sim/config/value.h"

namespace ridgeline {

PublishedRuns::PublishedRuns(const std::string& file) {
  const config::Node tree = config::load_yaml(file);
  const config::Mapping root(config::Value(tree), {"runs"});
  for (const config::Value& item : root["runs"].list()) {
    const config::Mapping run(item, {"rows", "says", "assumes", "comparable", "set"});
    Entry& entry = entries_.emplace_back();
    for (const config::Value& pattern : run["rows"].list()) entry.patterns.push_back(pattern.text());
    entry.comparable = run["comparable"].boolean(true);
    (void)run["says"].text();  // no entry without its evidence
    if (!run.has("set")) continue;
    for (const config::Entry& change : run["set"].node().entries)
      entry.overrides.push_back({change.key, change.value.scalar, file});
  }
}

PublishedRuns::Run PublishedRuns::run_of(std::string_view id) const {
  Run result;
  for (const Entry& entry : entries_) {
    const bool matches = std::any_of(entry.patterns.begin(), entry.patterns.end(),
                                     [&](const std::string& pattern) { return matches_pattern(pattern, id); });
    if (!matches) continue;
    result.comparable = result.comparable && entry.comparable;
    result.overrides.insert(result.overrides.end(), entry.overrides.begin(), entry.overrides.end());
  }
  return result;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*')
    return !text.empty() && text.front() == pattern.front() && matches_pattern(pattern.substr(1), text.substr(1));
  for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (matches_pattern(pattern.substr(1), text.substr(skipped))) return true;
  return false;
}

}  // namespace ridgeline
