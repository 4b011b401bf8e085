// Steps of several GPUs that share layers, each with a scenario: as others timed and published them (files of kind
// "published-training"), and own ones ("split-training").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/study/validation/measured_files.h"
#include "sim/study/validation/step_validation.h"
#include "sim/units/quantity.h"

namespace ridgeline {

struct PublishedTraining {
  std::string id;
  std::string publisher;  ///< none for own steps
  Scenario scenario;
  Seconds step_time;
  std::optional<std::int64_t> peak_allocated, peak_reserved;
  bool held_out = false;  ///< no number was taken from it
};

/// Every row in the order of the file, on the host and with the software of the file's machine, with the scale of
/// the host and other keys that a row names ("overrides": those of --set).
std::vector<PublishedTraining> load_published_training(const MeasuredFile& file);

/// Every published row of the index in `folder` on `hardware` (any where empty), predicted; its source is
/// "several GPUs, public, MACHINE", or "several GPUs, ours, MACHINE". Seen are the rows that a number was taken from,
/// where the index says which.
std::vector<ValidatedStep> validate_published_training(const std::string& folder, std::string_view hardware,
                                                       std::string_view engine);

}  // namespace ridgeline
