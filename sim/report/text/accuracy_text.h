// Error tables for the terminal, for programs and for the documentation.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sim/study/validation/accuracy.h"
#include "sim/study/validation/accuracy_overview.h"

namespace ridgeline {

std::string accuracy_text(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps);
nlohmann::ordered_json accuracy_json(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps);
/// JSON lines: every kernel with its kind, measured and predicted times.
std::string case_lines(std::span<const ValidatedCase> cases);
/// docs/accuracy.md in full, every step with its own line.
std::string accuracy_markdown(std::span<const FamilyAccuracy> families, std::span<const StepAccuracy> steps,
                              std::span<const ValidatedStep> each);
/// The summary at the top of docs/accuracy.md: a line a row.
std::string accuracy_summary(std::span<const OverviewRow> rows);
/// The five rows between the markers of the README.
std::string accuracy_lines(std::span<const OverviewRow> rows);

}  // namespace ridgeline
