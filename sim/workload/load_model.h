// models/NAME.yaml, a path, a HuggingFace config.json or an inline mapping to ModelDescription.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/override.h"
#include "sim/config/value.h"
#include "sim/units/spelling.h"
#include "sim/workload/model.h"

namespace ridgeline {

/// How names of networks are spelled: "-Instruct" and "-hf" name the same network.
const SpellingRules& model_spelling();

/// `name_or_path` is a name of model_names() or program_names(), an alias in its file, any spelling of these
/// ("meta-llama/Llama-3.1-8B-Instruct"), a file (.yaml, or .json in HuggingFace's form) or a folder with a config.json.
/// Override keys are those
/// of a description ("vocabulary"). Throws config::ConfigError with the place of the mistake.
ModelDescription load_model(std::string_view name_or_path, const std::vector<config::Override>& overrides = {});

/// The `model` of a scenario: a name, a path or an inline mapping.
ModelDescription load_model(const config::Value& value, const std::vector<config::Override>& overrides = {});

/// Shipped networks that are programs, sorted: models/blocks/NAME.yaml, which load_model takes by name too.
std::vector<std::string> program_names();
/// Shipped descriptions, sorted.
std::vector<std::string> model_names();

}  // namespace ridgeline
