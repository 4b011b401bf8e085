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
/// Publishers of steps that make a range of runs on machines that nobody here measured.
inline constexpr std::size_t kFewestPublishers = 5;

/// Measured over predicted time of steps on machines that nobody here measured, each publisher with the same weight.
struct RunErrors {
  double low = 1, high = 1;  ///< 3 % and 97 % quantiles, as those of rows of several kinds
  std::size_t publishers = 0, rows = 0;
};
/// Published, comparable, seen by no fit, and beside a host that nobody here measured.
bool of_unknown_machine(const ValidatedStep& step);
/// The same without the steps of the publisher `left_out`.
RunErrors errors_of_unknown_runs(std::span<const ValidatedStep> steps, std::string_view left_out = {});

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
/// and the median of their errors in percent. `most`: the largest scenario among measured steps. `runs`: [low, high,
/// publishers, rows] of published steps that no fit saw, on hosts that nobody here measured, publishers in equal parts.
nlohmann::ordered_json residual_table(std::span<const ValidatedCase> cases, std::span<const ValidatedStep> steps = {});
/// The file: a line for each kind.
std::string residual_text(const nlohmann::ordered_json& table);

}  // namespace ridgeline
