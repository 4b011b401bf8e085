// A question somebody asks: which model, trained how, on which GPU, with which software and host.
//
// Read from scenarios/NAME.yaml, from command-line flags, or both; `--set` changes any key of scenario, hardware,
// model, host and software. Everything is resolved and checked here, so that what follows cannot meet a mistake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/allocator/settings.h"
#include "sim/config/override.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/software.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

/// What was measured for this very scenario, shown beside the prediction. Never an input of it.
struct MeasuredBeside {
  std::optional<Seconds> step_time;
  std::optional<double> samples_per_s;
  std::optional<Bytes> device_used, peak_allocated, peak_reserved;
  std::string source;
};

struct Scenario {
  std::string title;
  Gpu gpu;
  /// The GPU as its file has it, where overrides changed it: then `gpu` is a chip that nobody measured.
  std::optional<Gpu> shipped;
  Host host;
  Software software;
  ModelDescription model;
  TrainingDescription training;
  AllocatorSettings allocator;
  bool compile = false, cuda_graphs = false;
  MeasuredBeside measured;
};

/// Where a scenario comes from. `overrides` are applied in order after the file; their keys are dotted paths of the
/// scenario ("training.micro_batch", "hardware.dram.bandwidth", "model.vocabulary", "host.scale").
struct ScenarioSource {
  std::optional<std::string> file;  ///< none: `text`, or everything from the overrides
  std::string text, text_name;      ///< YAML (or JSON) in place of a file, and what messages call it
  std::vector<config::Override> overrides;
  Numbers numbers = Numbers::measured;
};

/// Throws config::ConfigError (a UserError) with file:line:column, key, what was given and what is allowed.
Scenario load_scenario(const ScenarioSource& source);

}  // namespace ridgeline
