// The measured section of a hardware file as rows, and written anew in their order.
//
// The rest of the file, with its comments, stays as it is to the letter. Within the section whole-line comments of
// people stay (at its top); those written here begin with kConditionMark and are replaced.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/node.h"
#include "sim/hardware/hardware_sheet.h"

namespace ridgeline {

inline constexpr std::string_view kConditionMark = "# Probe:";

/// The fields of `measured:` in the order of the file; empty when it has none.
std::vector<SheetRow> measured_rows(const config::Node& tree);

/// `text` of a hardware file with the section replaced (or added at the end): rows grouped by section in their order,
/// each condition as a comment.
std::string with_measured_section(std::string_view text, const std::vector<SheetRow>& rows,
                                  const std::vector<std::string>& conditions);

}  // namespace ridgeline
