// A training configuration of another tool as a scenario: LLaMA-Factory's YAML, DeepSpeed's JSON, torchtitan's TOML,
// Megatron-LM's launch script and others (data/tools).
//
//   const TrainingFile result = read_training_file("train.yaml");
//   result.scenario;   // tree of a scenario; each value has the place in the tool's file that it comes from
//
// Every key of the file is one of: used, known to change neither time nor memory, refused (a ConfigError at its place),
// or not known, which `unknown` lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/override.h"

namespace ridgeline::training_files {

struct UsedKey {
  std::string key, value;  ///< of the tool
  config::Origin origin;
  std::vector<std::string> targets;
};

/// Statements of the question beside the file, which count more than the file.
struct Asked {
  config::Node tree;                 ///< of a scenario
  std::optional<std::int64_t> gpus;  ///< of its cluster
};

struct TrainingFile {
  std::string file, tool;  ///< "LLaMA-Factory", or several joined by " and "
  config::Node scenario;
  std::vector<config::Override> model_changes;  ///< of a network that the scenario names
  std::int64_t gpus = 1, gpus_per_node = 8;
  std::vector<UsedKey> used;
  std::vector<std::string> without_effect, unknown;
  std::vector<std::string> notes;  ///< what was taken where the file leaves it open, a sentence each
};

/// The tool whose configuration it is; "" for none that is known. Throws UserError for text that is of no format.
std::string tool_of_file(const std::string& file);

/// Throws ConfigError for what is no configuration of a known tool, for a key that cannot be modelled and for counts
/// that do not divide.
TrainingFile read_training_file(const std::string& file, const Asked& asked = {});

}  // namespace ridgeline::training_files
