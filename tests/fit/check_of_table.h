// The fitting program run on a committed table in which one text was changed.
#pragma once

#include <string>

namespace ridgeline::fit {

/// Exit status of `ridgeline_fit --check` of one class of data/laws/TABLE.yaml in which the first `from` of that class
/// reads `to`: 0 where the class is what the fit makes of the measurements, 1 where not.
int check_of_table(const std::string& table, const std::string& of_class, const std::string& from,
                   const std::string& to);

}  // namespace ridgeline::fit
