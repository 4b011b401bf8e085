// The rows of a tool's tables over the settings of a file: what they set, what they refuse, what they say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/training_files/facts.h"
#include "sim/training_files/settings.h"
#include "sim/training_files/tool_table.h"
#include "sim/training_files/training_file.h"

namespace ridgeline::training_files {

/// Other configurations that a file names, or holds.
struct Included {
  std::vector<std::pair<std::string, config::Origin>> files;
  Settings held;
};

/// Sorts every setting into `facts` and the lists of `result`. Throws ConfigError at a setting that is refused.
Included apply_rows(const Settings& settings, const std::vector<const ToolTable*>& tables, Facts& facts,
                    TrainingFile& result);

/// The rules of the tables, those of included ones first. `settings` are those of all files.
void apply_rules(const std::vector<const ToolTable*>& tables, const Settings& settings, Facts& facts,
                 TrainingFile& result);

}  // namespace ridgeline::training_files
