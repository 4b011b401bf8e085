// Predicted against measured kernels: the committed measurements, by GPU and family.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/ranges/operation_kind.h"
#include "sim/units/quantity.h"

namespace ridgeline {

/// One measured kernel case and what each kind of prediction says.
struct ValidatedCase {
  std::string hardware;  ///< file in hw/ it was predicted with
  std::string die{};     ///< compute capability and SMs, which boards of one die share
  OperationKind kind;    ///< of the first operation, under the analytic engine
  std::string op, dtype;
  std::string source;      ///< "ours"; "wide": ours of unusual shapes; "compiled": of torch.compile; "calls": of the
                           ///< dispatcher; "public"; "public, serving": as serving libraries run them
  std::string software{};  ///< file in hw/software it was predicted with
  std::string seen_by{};   ///< the fit or the description that saw it, in words; none where empty
  Seconds measured;
  std::string shape{};                         ///< of a single call, as it was drawn; empty for others
  std::map<std::string, Seconds> predicted{};  ///< by prediction kind
  std::optional<Seconds> by_bytes{};  ///< predicted as an operation without a law, from its bytes; memory-bound alone
};

/// The kinds of prediction compared: with measured numbers, with datasheet numbers and estimates alone, the
/// roofline, and the simulated hierarchy where it was asked for.
inline constexpr std::string_view kPredictionKinds[] = {"analytic", "analytic-datasheet", "roofline", "simulate"};

/// Predicts every committed case that no constant was fitted on: held-out cases of the H200, all of the H100, published
/// cases longer than four times their launch floor. `hardware` empty = all; `folder` holds the index.
/// `simulated`: with the prediction kind "simulate", which takes some seconds more.
std::vector<ValidatedCase> validate_kernels(const std::string& folder, std::string_view hardware,
                                            bool simulated = false);

}  // namespace ridgeline
