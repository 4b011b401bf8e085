// A question somebody asks: which model, trained how, on which GPU, with which software and host.
//
// Or which recorded step, in the place of model and training. Read from scenarios/NAME.yaml, from command-line flags,
// or both; `--set` changes any key of scenario, hardware, model, host and software. Everything is resolved and checked
// here, so that what follows cannot meet a mistake.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/allocator/settings.h"
#include "sim/config/node.h"
#include "sim/config/override.h"
#include "sim/hardware/gpu.h"
#include "sim/hardware/host.h"
#include "sim/hardware/load_gpu.h"
#include "sim/hardware/software.h"
#include "sim/network/cluster.h"
#include "sim/scenario/sequence_lengths.h"
#include "sim/scenario/whole_run.h"
#include "sim/workload/model.h"
#include "sim/workload/training.h"

namespace ridgeline {

namespace trace {
class RecordingFile;
}

/// A step that was recorded, in the place of a model and how it is trained.
struct RecordedWorkload {
  std::shared_ptr<const trace::RecordingFile> file;
  /// For kernels of which the recording does not say what they work on; none: they keep their recorded time.
  std::optional<Gpu> recorded_on;
  double samples = 0.0, tokens = 0.0;  ///< of a step; 0: not known
  std::optional<Precision> precision;
};

/// What was measured for this very scenario, shown beside the prediction. Never an input of it.
struct MeasuredBeside {
  std::optional<Seconds> step_time;
  std::optional<double> samples_per_s;
  std::optional<Bytes> device_used, peak_allocated, peak_reserved;
  std::string source;
};

/// The question as it was asked, for whoever cites its answer.
struct AskedScenario {
  std::string file;                       ///< that it was read from; empty: none
  config::Node tree;                      ///< of the file or the text, with what was changed in the scenario itself
  std::vector<config::Override> changes;  ///< all of them, in order
  std::string hardware, software, host;   ///< names or paths
  std::string model;                      ///< likewise; empty where it stands in the scenario, or the step is recorded
  bool datasheet = false;                 ///< measured numbers were left out
  std::vector<std::string> notes{};       ///< on the file that `from` names, a sentence each
};

struct Scenario {
  std::string title;
  Gpu gpu;
  /// The GPU as its file has it, where overrides changed it: then `gpu` is a chip that nobody measured.
  std::optional<Gpu> shipped;
  std::optional<Cluster> cluster;  ///< of several such GPUs
  Host host;
  Software software;
  ModelDescription model;
  TrainingDescription training;
  /// What the step does, where it was recorded: then nothing of `model` and `training` means anything.
  std::shared_ptr<const RecordedWorkload> recorded;
  AllocatorSettings allocator;
  bool compile = false, cuda_graphs = false;
  std::optional<SequenceLengths> lengths{};  ///< of sequences; training.sequence_length is a typical micro-batch's
  bool assumes_precision = false;  ///< nobody named one: training.precision is what networks of that size usually have
  MeasuredBeside measured;
  std::optional<WholeRun> run;                 ///< how much is trained
  std::shared_ptr<const AskedScenario> asked;  ///< null where load_scenario did not make it
};

/// Where a scenario comes from. `overrides` are applied in order after the file; their keys are dotted paths of the
/// scenario ("training.micro_batch", "hardware.dram.bandwidth", "model.vocabulary", "host.scale").
struct ScenarioSource {
  std::optional<std::string> file;  ///< none: `text`, or everything from the overrides; a recording stands for itself
  bool recording = false;           ///< `file` is a recording, whatever it looks like
  std::string text, text_name;      ///< YAML (or JSON) in place of a file, and what messages call it
  std::vector<config::Override> overrides;
  Numbers numbers = Numbers::measured;
};

/// The tree of a scenario's file; of a recording, that of a scenario which names it.
config::Node load_scenario_tree(const std::string& file, bool recording = false);

/// Throws config::ConfigError (a UserError) with file:line:column, key, what was given and what is allowed.
Scenario load_scenario(const ScenarioSource& source);

}  // namespace ridgeline
