// Predicted against measured training steps: our own on the H200 and H100, and published ones.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/answer/prediction.h"

namespace ridgeline {

struct MeasuredStep {
  std::string name, source;  ///< source: "h200", "h200/more", "h200/compile/heldout"; "public"
  std::string seen_by;       ///< which fit saw it, in words; none where empty
  std::string publisher;     ///< repository or page that published it; none for own steps
  bool compiled = false, transformer = true;
  bool host_fitted = false;  ///< the scale of its host was fitted on its step time
  std::optional<Seconds> step_time, host_time, gpu_busy;
  std::optional<std::int64_t> kernel_count, peak_allocated, peak_reserved, device_used;
};

struct ValidatedStep {
  MeasuredStep measured;
  Scenario scenario;
  Prediction predicted;
};

/// The scenario of one row of h200/steps.jsonl.gz (and h100, h200/more). Empty for models without a description (unet,
/// mlp).
std::optional<ScenarioSource> scenario_of_measured_step(const nlohmann::json& row, const std::string& hardware);

/// Names of the steps of h100/steps.jsonl.gz that the scale of their host (hw/hosts/h100-virtual-machine.yaml) was
/// fitted on: those whose SHA-256 is divisible by 3.
std::span<const std::string_view> steps_that_fit_the_h100_host();

/// Steps of one GPU on `hardware` that were measured for this program, without a prediction.
std::vector<ValidatedStep> own_steps(const std::string& folder, std::string_view hardware);

/// Repository or page of a source as rows state it: "pytorch/ao" of "pytorch/ao@36027d82:README.md (8 H100)".
std::string publisher_of(std::string_view source);

/// Every step of the index in `folder` that can be described, predicted with the measured numbers of its GPU.
std::vector<ValidatedStep> validate_steps(const std::string& folder, std::string_view hardware,
                                          std::string_view engine);

}  // namespace ridgeline
