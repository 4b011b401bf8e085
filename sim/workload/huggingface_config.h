// A HuggingFace config.json rewritten as a description of ours, each key keeping its place in the file.
#pragma once

#include "sim/config/node.h"
#include "sim/config/value.h"

namespace ridgeline {

/// `config` is the tree of a config.json (JSON is YAML). Known model_type: bert, gpt2, llama, mistral. Keys that change
/// neither time nor memory are ignored. Throws config::ConfigError.
config::Node description_from_huggingface(const config::Value& config);

}  // namespace ridgeline
