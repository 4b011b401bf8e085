// hw/residuals.json: ranges of measured over predicted times, made from validated kernels and steps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sim/study/validation/kernel_validation.h"
#include "sim/study/validation/step_validation.h"

namespace ridgeline {

/// Rows that make a range of their own: the least and the greatest of n cases hold (n - 1) / (n + 1) of further ones,
/// nine in ten from 19 on.
inline constexpr std::size_t kOwnRange = 20;

/// By GPU: the versions of software of its rows, and by engine
///
///   kinds      by key of OperationKind, of kFewestRows and more, and by size ("any": all): [low, high, rows, longest
///              measured time in us].
///              kOwnRange rows make the range alone; of n fewer, 1 - n / 20 of the weight goes to the GPU's other
///              kinds.
///   families   the range of a kind without rows: the GPU's kinds in equal parts, one of fewer than
///              kOwnRange rows by their number; of fewer than kEnoughKinds, the rest of the weight goes to all GPUs.
///
/// `elsewhere`, by engine: the range of a GPU without rows, from all dies in equal parts. `steps`, by GPU: how many,
/// and the median of their errors in percent. `most`: the largest scenario among measured steps.
nlohmann::ordered_json residual_table(std::span<const ValidatedCase> cases, std::span<const ValidatedStep> steps = {});
/// The file: a line for each kind.
std::string residual_text(const nlohmann::ordered_json& table);

}  // namespace ridgeline
