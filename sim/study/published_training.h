// Steps of several GPUs as others timed and published them, each with a scenario (files of kind "published-training").
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/study/measured_files.h"
#include "sim/units/quantity.h"

namespace ridgeline {

struct PublishedTraining {
  std::string id;
  Scenario scenario;
  Seconds step_time;
  bool held_out = false;  ///< no number was taken from it
};

/// Every `nth` row in the order of the file, on the host and with the software of the file's machine.
std::vector<PublishedTraining> load_published_training(const MeasuredFile& file, int nth = 1);

}  // namespace ridgeline
